package chlocal

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// child is one process.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer // the child ends when this closes, also by our own death
	ready Ready
	gone  chan struct{} // closed when the process is reaped and its output read
	err   error         // how it ended; valid after gone
	said  said
}

// start runs chlocal and waits until it is ready, dead, late or no longer wanted.
func (s *Server) start(ctx context.Context) (*child, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.StartTimeout, fmt.Errorf("chlocal was not ready within %s", s.opts.StartTimeout))
	defer cancel()
	c := &child{cmd: exec.Command(s.opts.Binary, s.args()...), gone: make(chan struct{}), said: said{ready: make(chan Ready, 1)}}
	ownGroup(c.cmd)
	dieWithParent(c.cmd)
	c.cmd.Env = append(os.Environ(), "TZ=UTC")
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start chlocal: %w", err)
	}
	c.stdin = stdin
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start chlocal: %w", err)
	}
	stderr, err := c.cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("start chlocal: %w", err)
	}
	started := make(chan error, 1)
	// The kernel delivers the parent-death signal when the thread that started the child ends, not the process. This
	// goroutine keeps its thread to itself until the child is gone.
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := c.cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		c.err = c.wait(stdout, stderr, s.logger)
		close(c.gone)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start chlocal: %w", err)
	}
	select {
	case <-c.gone:
	case <-ctx.Done():
	case c.ready = <-c.said.ready:
		return c, nil
	}
	select {
	case <-c.gone:
	default:
		_ = c.cmd.Process.Kill()
		<-c.gone
		return nil, fmt.Errorf("start chlocal: %w", context.Cause(ctx))
	}
	return nil, fmt.Errorf("start chlocal: %w", c.err)
}

// wait reads the child's output to its end and reaps it.
func (c *child) wait(stdout, stderr io.Reader, logger *slog.Logger) error {
	var reading sync.WaitGroup
	reading.Go(func() {
		lines(stdout, func(line string) {
			var r Ready
			if json.Unmarshal([]byte(line), &r) == nil && r.Addr != "" {
				c.said.setReady(r)
			}
		})
	})
	reading.Go(func() { lines(stderr, func(line string) { c.said.fail(relay(line, logger)) }) })
	reading.Wait()
	err := c.cmd.Wait()
	switch why := c.said.lastFailure(); {
	case why != "":
		return errors.New(why)
	case err != nil:
		return err
	default:
		return errors.New("it ended by itself")
	}
}

// end stops the child in good order, or at once when forced ends.
func (c *child) end(forced context.Context) {
	c.stdin.Close()
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.gone:
	case <-forced.Done():
		_ = c.cmd.Process.Kill()
		<-c.gone
	}
}

// lines calls line for each one, cutting those that are too long.
func lines(r io.Reader, line func(string)) {
	b := bufio.NewReaderSize(r, lineMaxBytes)
	for {
		text, rest, err := b.ReadLine()
		if len(text) > 0 {
			line(string(text))
		}
		for rest && err == nil {
			_, rest, err = b.ReadLine()
		}
		if err != nil {
			return
		}
	}
}

// relay logs a line of the child under its own level and returns its message if that was an error. What is not JSON
// comes from the engine or the Go runtime.
func relay(line string, logger *slog.Logger) (failure string) {
	var fields map[string]any
	if json.Unmarshal([]byte(line), &fields) != nil {
		logger.Warn("Engine output", "line", line)
		return ""
	}
	message, _ := fields[slog.MessageKey].(string)
	var level slog.Level
	text, _ := fields[slog.LevelKey].(string)
	if level.UnmarshalText([]byte(text)) != nil {
		level = slog.LevelInfo
	}
	if level >= slog.LevelError {
		// Returned to the caller or told as the reason of the death; an error is not reported twice.
		return message
	}
	var attrs []slog.Attr
	for k, v := range fields {
		if k != slog.MessageKey && k != slog.LevelKey && k != slog.TimeKey {
			attrs = append(attrs, slog.Any(k, v))
		}
	}
	logger.LogAttrs(context.Background(), level, message, attrs...)
	return ""
}

// said is what the readers of the output found out: the ready line and the last error.
type said struct {
	ready chan Ready

	mu      sync.Mutex
	failure string
}

// setReady takes the first ready line only.
func (s *said) setReady(r Ready) {
	select {
	case s.ready <- r:
	default:
	}
}

func (s *said) fail(message string) {
	if message == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = message
}

func (s *said) lastFailure() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}
