package realkafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const shutdownGrace = 20 * time.Second

// node is one process of the cluster.
type node struct {
	id         int
	dir        string
	ports      map[Listener]int
	advertised map[Listener]string
	command    func() *exec.Cmd

	mu      sync.Mutex
	log     *os.File
	cmd     *exec.Cmd
	exited  chan struct{} // of cmd
	stopped bool
}

// told is the address that clients are told.
func (n *node) told(l Listener) string {
	if a, ok := n.advertised[l]; ok {
		return a
	}
	return addr(n.ports[l])
}

func (n *node) start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.running() {
		return fmt.Errorf("broker %d runs already", n.id)
	}
	if n.log == nil {
		f, err := os.OpenFile(filepath.Join(n.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("start broker %d: %w", n.id, err)
		}
		n.log = f
	}
	cmd := n.command()
	cmd.Dir, cmd.Stdout, cmd.Stderr = n.dir, n.log, n.log
	endWithParent(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start broker %d: %w", n.id, err)
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	n.cmd, n.exited, n.stopped = cmd, exited, false
	return nil
}

// running needs the lock.
func (n *node) running() bool {
	if n.cmd == nil {
		return false
	}
	select {
	case <-n.exited:
		return false
	default:
		return true
	}
}

// ended is closed when the process that was started last has ended.
func (n *node) ended() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.exited == nil {
		c := make(chan struct{})
		close(c)
		return c
	}
	return n.exited
}

func (n *node) kill() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.running() {
		return nil
	}
	if err := n.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill broker %d: %w", n.id, err)
	}
	<-n.exited
	return nil
}

func (n *node) shutdown(ctx context.Context) error {
	n.mu.Lock()
	running, exited := n.running(), n.exited
	if running {
		if n.stopped {
			_ = n.signal(syscall.SIGCONT)
		}
		_ = n.signal(syscall.SIGTERM)
	}
	n.mu.Unlock()
	if !running {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, shutdownGrace)
	defer cancel()
	select {
	case <-exited:
		return nil
	case <-ctx.Done():
		return n.kill()
	}
}

func (n *node) halt() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stopped = true
	return n.signal(syscall.SIGSTOP)
}

func (n *node) goOn() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stopped = false
	return n.signal(syscall.SIGCONT)
}

// signal needs the lock.
func (n *node) signal(s syscall.Signal) error {
	if !n.running() {
		return fmt.Errorf("signal broker %d: %w", n.id, os.ErrProcessDone)
	}
	if err := n.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("signal broker %d: %w", n.id, err)
	}
	return nil
}

func (n *node) output() string {
	out, _ := os.ReadFile(filepath.Join(n.dir, "log")) // best effort: it explains another error
	return string(out)
}

func (n *node) closeLog() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.log != nil {
		_ = n.log.Close()
		n.log = nil
	}
}

// listens waits until something accepts connections at the port.
func (n *node) listens(ctx context.Context, port int) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if conn, err := net.DialTimeout("tcp", addr(port), time.Second); err == nil {
			return conn.Close()
		}
		select {
		case <-n.ended():
			return fmt.Errorf("it ended while it started: %s", lastLines(n.output()))
		case <-ctx.Done():
			return fmt.Errorf("it does not listen: %w: %s", ctx.Err(), lastLines(n.output()))
		case <-tick.C:
		}
	}
}
