package kafkalocal

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// ErrDiskFull is wrapped by errors about too little free disk.
var ErrDiskFull = errors.New("too little free disk")

// ErrWriteFailed is wrapped by the reason for stopping when kfake could not write what it had acknowledged.
var ErrWriteFailed = errors.New("a write to the data directory failed")

// ErrLocked is wrapped when another process serves the data directory.
var ErrLocked = errors.New("data directory is in use")

// watchHealth stops the broker rather than let it acknowledge what it cannot keep: on a full disk kfake answers OK to
// offset commits that it has lost.
func (b *Broker) watchHealth(o Options) {
	defer b.watch.Done()
	tick := time.NewTicker(o.DiskCheckEvery)
	defer tick.Stop()
	for {
		var cause error
		select {
		case <-b.closing:
			return
		case cause = <-b.failed:
		case <-tick.C:
			if o.DataDir != "" {
				cause = checkDisk(o.DataDir, o.MinFreeBytes)
			}
		}
		if cause != nil {
			b.log.Error("embedded Kafka stops", "err", cause)
			b.stop(cause)
			return
		}
	}
}

func checkDisk(dir string, floor uint64) error {
	free, err := freeBytes(dir)
	if err != nil {
		return fmt.Errorf("look up free disk of %s: %w", dir, err)
	}
	if free < floor {
		return fmt.Errorf("%w for embedded Kafka in %s: %d MiB free, %d MiB needed", ErrDiskFull, dir, free>>20, floor>>20)
	}
	return nil
}

// slogAdapter turns kfake's log into ours and takes failed writes for what they are.
type slogAdapter struct {
	log    *slog.Logger
	failed chan<- error
}

var _ kfake.Logger = (*slogAdapter)(nil)

// Logf runs on kfake's own loop and must not wait for it: stopping is left to the watch.
func (a *slogAdapter) Logf(level kfake.LogLevel, format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	if level <= kfake.LogLevelWarn && strings.HasPrefix(format, "persist ") {
		select {
		case a.failed <- fmt.Errorf("%w: %s", ErrWriteFailed, msg):
		default: // An earlier failure is already on its way.
		}
	}
	switch level {
	case kfake.LogLevelError:
		a.log.Error(msg)
	case kfake.LogLevelWarn:
		a.log.Warn(msg)
	default: // kfake's Info is one line a request.
		a.log.Debug(msg)
	}
}
