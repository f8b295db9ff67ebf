//go:build linux && (amd64 || arm64)

package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// folderLock is held as long as the engine uses its folder. The kernel drops it with the process.
type folderLock struct{ file *os.File }

// LockFile is the name of the lock in the data folder; it holds the process id of its owner.
const LockFile = "chlocal.lock"

// lockFolder takes the lock, waiting for a predecessor that is on its way out.
func lockFolder(ctx context.Context, dir string, wait time.Duration) (*folderLock, error) {
	f, err := os.OpenFile(filepath.Join(dir, LockFile), os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, fmt.Errorf("lock the data folder: %w", err)
	}
	deadline := time.Now().Add(wait)
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(deadline) {
			owner, _ := io.ReadAll(io.LimitReader(f, 32))
			f.Close()
			if !errors.Is(err, syscall.EWOULDBLOCK) {
				return nil, fmt.Errorf("lock the data folder %s: %w", dir, err)
			}
			return nil, fmt.Errorf("the data folder %s is in use by process %s: stop it or choose another folder", dir, strings.TrimSpace(string(owner)))
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
	// The id is for the message above only; failing to write it harms nothing.
	if err := f.Truncate(0); err == nil {
		fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	return &folderLock{f}, nil
}

func (l *folderLock) release() { l.file.Close() }
