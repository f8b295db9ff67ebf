//go:build linux || darwin

package kafkalocal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// dirLock is an advisory lock that the kernel drops with the process, however it ends.
type dirLock struct{ f *os.File }

func lockDir(dir string) (*dirLock, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock data directory of embedded Kafka: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			pid, _ := io.ReadAll(io.LimitReader(f, 32))
			return nil, fmt.Errorf("%w: %s belongs to process %s", ErrLocked, dir, strings.TrimSpace(string(pid)))
		}
		return nil, fmt.Errorf("lock data directory of embedded Kafka: %w", err)
	}
	// The number only helps a person who finds the directory locked; the lock holds without it.
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &dirLock{f}, nil
}

// release may be called on nil and twice.
func (l *dirLock) release() {
	if l != nil {
		_ = l.f.Close()
	}
}

func freeBytes(dir string) (uint64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return st.Bavail * uint64(st.Bsize), nil
}
