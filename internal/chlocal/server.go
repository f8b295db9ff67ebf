package chlocal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// Options say what to start. Binary, LibPath, DataDir and Logger are required.
type Options struct {
	Binary  string // the program chlocal; see FindBinary
	LibPath string // from Install
	DataDir string // made if missing; one Server at a time
	Logger  *slog.Logger

	Listen         string        // default 127.0.0.1:0, which takes a free port
	Database       string        // default tocsin
	MemoryMaxBytes int64         // default chlocal's, 4 GiB
	Threads        int           // default chlocal's, 2
	StartTimeout   time.Duration // default 30 s

	// Restart starts the engine again on the same address when it dies. It gives up, and closes Done, after
	// restartsMax tries in a row of which none answered for as long as steady.
	Restart bool
}

const (
	restartsMax   = 8
	steady        = 2 * time.Second
	backoffMin    = 100 * time.Millisecond
	backoffMax    = 5 * time.Second
	stopWait      = 12 * time.Second // chlocal ends itself within ten seconds
	lineMaxBytes  = 64 << 10
	startDefault  = 30 * time.Second
	listenDefault = "127.0.0.1:0"
)

// Server is a running chlocal, or with Options.Restart a succession of them on one address. Whoever starts it stops
// it; if this process dies without that, so does chlocal.
type Server struct {
	opts   Options
	logger *slog.Logger
	addr   string
	done   chan struct{}
	stop   context.CancelFunc
	kill   context.CancelFunc

	mu       sync.Mutex
	child    *child
	restarts int
	err      error
}

// FindBinary looks for chlocal beside the running program and then in PATH.
func FindBinary() (string, error) {
	if self, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), "chlocal")); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath("chlocal")
	if err != nil {
		return "", errors.New("the program chlocal is neither beside this one nor in PATH: build it with `go build ./cmd/chlocal`")
	}
	return path, nil
}

// Start returns once the engine answers. ctx is for starting only: the server runs until Stop.
func Start(ctx context.Context, opts Options) (*Server, error) {
	if opts.Listen == "" {
		opts.Listen = listenDefault
	}
	if opts.StartTimeout == 0 {
		opts.StartTimeout = startDefault
	}
	running, stop := context.WithCancel(context.Background())
	forced, kill := context.WithCancel(context.Background())
	s := &Server{opts: opts, logger: opts.Logger.With("component", "chlocal"), done: make(chan struct{}), stop: stop, kill: kill}
	first, err := s.start(ctx)
	if err != nil {
		stop()
		kill()
		return nil, err
	}
	// A restart takes the port that the first start got, so that clients find the engine again.
	s.addr, s.opts.Listen, s.child = first.ready.Addr, first.ready.Addr, first
	go s.supervise(running, forced, first)
	return s, nil
}

// Addr is host:port of the HTTP interface. It stays the same over restarts.
func (s *Server) Addr() string { return s.addr }

// URL is Addr as a URL, for curl and database/sql.
func (s *Server) URL() string { return "http://" + s.addr }

// Version is the engine's.
func (s *Server) Version() string { return s.current().ready.Version }

// Pid is the process id of chlocal at this moment; tests kill it.
func (s *Server) Pid() int { return s.current().cmd.Process.Pid }

// Restarts counts how often the engine was started again.
func (s *Server) Restarts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.restarts
}

// Done is closed when no engine runs and none will be started: after Stop, after a death without Restart, or when
// restarting was given up.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err says why the server is done; nil after Stop. It is valid once Done is closed.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Stop ends the engine in good order, by force when ctx ends first or it takes too long, and returns when it is gone.
// It may be called twice and by several goroutines.
func (s *Server) Stop(ctx context.Context) error {
	s.stop()
	timer := time.NewTimer(stopWait)
	defer timer.Stop()
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
	case <-timer.C:
	}
	s.kill()
	<-s.done
	return errors.New("chlocal did not stop in time and was killed")
}

func (s *Server) current() *child {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.child
}

// supervise owns the children from the first start to Done.
func (s *Server) supervise(running, forced context.Context, c *child) {
	defer close(s.done)
	defer s.kill()
	defer s.stop()
	failures := 0
	for {
		began := time.Now()
		if c != nil {
			select {
			case <-c.gone:
			case <-running.Done():
				c.end(forced)
				return
			}
			s.logger.Warn("The engine died", "pid", c.cmd.Process.Pid, "err", c.err, "restart", s.opts.Restart)
			if !s.opts.Restart {
				s.fail(fmt.Errorf("chlocal died: %w", c.err))
				return
			}
		}
		if time.Since(began) > steady {
			failures = 0
		}
		if failures++; failures > restartsMax {
			s.fail(fmt.Errorf("chlocal was started %d times and did not stay up", restartsMax))
			return
		}
		select {
		case <-running.Done():
			return
		case <-time.After(min(backoffMin<<(failures-1), backoffMax)):
		}
		var err error
		if c, err = s.start(running); err != nil {
			if running.Err() != nil {
				return
			}
			s.logger.Warn("Could not restart the engine", "attempt", failures, "err", err)
			continue
		}
		s.mu.Lock()
		s.child, s.restarts = c, s.restarts+1
		s.mu.Unlock()
		s.logger.Info("The engine is back", "pid", c.cmd.Process.Pid, "attempt", failures)
	}
}

func (s *Server) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *Server) args() []string {
	args := []string{"-log-json", "-data", s.opts.DataDir, "-lib", s.opts.LibPath, "-listen", s.opts.Listen}
	if s.opts.Database != "" {
		args = append(args, "-database", s.opts.Database)
	}
	if s.opts.MemoryMaxBytes > 0 {
		args = append(args, "-memory-max-bytes", strconv.FormatInt(s.opts.MemoryMaxBytes, 10))
	}
	if s.opts.Threads > 0 {
		args = append(args, "-threads", strconv.Itoa(s.opts.Threads))
	}
	return args
}
