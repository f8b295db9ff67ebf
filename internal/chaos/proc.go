package chaos

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// process is a child in a group of its own, so that a key pressed in the terminal is for the campaign alone. It dies with
// the campaign: its standard input closes then, and on Linux the kernel ends it even where it is stopped.
type process struct {
	cmd   *exec.Cmd
	stdin *os.File
	done  chan struct{}
	err   error // valid after done

	mu      sync.Mutex
	stopped bool
}

// startProcess appends the child's output to a file. stdout, if not nil, gets what it prints there instead.
func startProcess(cmd *exec.Cmd, logFile string, stdout *os.File) (*process, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", cmd.Path, err)
	}
	defer log.Close() // the child has its own
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	defer r.Close()
	p := &process{cmd: cmd, stdin: w, done: make(chan struct{})}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r, log, log
	if stdout != nil {
		cmd.Stdout = stdout
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd)
	started := make(chan error, 1)
	// The kernel tells the child of the end of the thread that started it, so this one waits for the child's.
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		w.Close()
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// kill ends it as a crash would, also where it is stopped.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
	_ = p.stdin.Close()
}

// stop is SIGSTOP: a machine that sleeps.
func (p *process) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = p.cmd.Process.Signal(syscall.SIGSTOP) == nil
}

func (p *process) cont() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	p.stopped = false
}

var errKilled = errors.New("it did not end in order and was killed")

// end asks it to end in good order.
func (p *process) end(within time.Duration) error {
	p.cont()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-p.done:
		_ = p.stdin.Close()
		return nil
	case <-t.C:
		p.kill()
		return errKilled
	}
}

func killProcess(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }
