package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// daemon is `tocsin run` as a child. It dies with its parent: its standard input is a pipe that ends then.
type daemon struct {
	cmd   *exec.Cmd
	stdin *os.File
	done  chan struct{}
	err   error
}

// startDaemon starts the program on a configuration; its log goes to a file.
func startDaemon(binary, config, logFile string) (*daemon, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the daemon's log: %w", err)
	}
	defer log.Close() // the child has its own
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	d := &daemon{stdin: w, done: make(chan struct{})}
	d.cmd = exec.Command(binary, "run", "--config.file", config, "--exit-with-parent")
	d.cmd.Stdin, d.cmd.Stdout, d.cmd.Stderr = r, log, log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C in the terminal is for the parent, which stops us in order
	if err := d.cmd.Start(); err != nil {
		w.Close()
		return nil, fmt.Errorf("starting the daemon: %w", err)
	}
	go func() {
		d.err = d.cmd.Wait()
		close(d.done)
	}()
	return d, nil
}

func (d *daemon) running() bool {
	select {
	case <-d.done:
		return false
	default:
		return true
	}
}

// kill ends it as a crash would.
func (d *daemon) kill() {
	_ = d.cmd.Process.Kill()
	<-d.done
	_ = d.stdin.Close()
}

// stop ends it in good order, by force when ctx ends or it takes too long.
func (d *daemon) stop(ctx context.Context) error {
	defer d.stdin.Close()
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-d.done:
	case <-ctx.Done():
		d.kill()
		return errors.New("the daemon had to be killed")
	case <-time.After(20 * time.Second):
		d.kill()
		return errors.New("the daemon did not end within 20 s and was killed")
	}
	return nil
}
