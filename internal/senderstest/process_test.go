package senderstest

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/chlocal/chlocaltest"
)

func TestMain(m *testing.M) { chlocaltest.Main(m) }

// patience is how long anything may take on a busy machine.
const patience = time.Minute

// program is the path of a sender, or the end of the test.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "bin", "senders", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("bin/senders/%s is not there: make senders builds it", name)
	}
	return path
}

// process is a running sender. It ends with the test.
type process struct {
	t    *testing.T
	mu   sync.Mutex
	said []string
	news chan struct{} // has room for one
	done chan struct{}
}

func start(t *testing.T, path string, args ...string) *process {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), path, args...)
	cmd.Dir = t.TempDir()
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, news: make(chan struct{}, 1), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.mu.Lock()
			p.said = append(p.said, lines.Text())
			p.mu.Unlock()
			select {
			case p.news <- struct{}{}:
			default:
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(patience):
			_ = cmd.Process.Kill()
			t.Errorf("%s does not end", filepath.Base(path))
		}
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(path), strings.Join(p.said, "\n"))
		}
	})
	return p
}

// says waits for a line and gives what its group matched.
func (p *process) says(pattern string) string {
	p.t.Helper()
	line := regexp.MustCompile(pattern)
	for end := time.After(patience); ; {
		p.mu.Lock()
		for _, l := range p.said {
			if m := line.FindStringSubmatch(l); m != nil {
				p.mu.Unlock()
				return m[len(m)-1]
			}
		}
		p.mu.Unlock()
		select {
		case <-p.news:
		case <-p.done:
			p.t.Fatalf("it ended without saying %s", pattern)
		case <-end:
			p.t.Fatalf("it does not say %s", pattern)
		}
	}
}

// freeAddress is one that nobody listens on at this moment.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// file writes a configuration.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
