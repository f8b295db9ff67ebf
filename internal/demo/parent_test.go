package demo

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The demo is killed as a whole: everything it started ends, and it starts again on the same folders within seconds.
func TestKilledParentLeavesNothing(t *testing.T) {
	programDir, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	begin := func(fresh bool) (*exec.Cmd, *bufio.Scanner) {
		t.Helper()
		cmd := exec.Command(filepath.Join(programDir, "tocsin"), "demo", "--dir", dir, "--listen", "127.0.0.1:0", fmt.Sprintf("--fresh=%t", fresh))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _, _ = cmd.Process.Wait() })
		return cmd, bufio.NewScanner(out)
	}
	await := func(s *bufio.Scanner, text string) {
		t.Helper()
		for s.Scan() {
			if strings.Contains(s.Text(), text) {
				return
			}
		}
		t.Fatalf("the demo ended before it said %q", text)
	}
	cmd, out := begin(true)
	await(out, "Tocsin is ready")
	await(out, "times real time") // it is at work
	children := childrenOf(t, dir)
	if len(children) < 2 {
		t.Fatalf("the demo has %d children, want the daemon and ClickHouse", len(children))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = cmd.Process.Wait()
	eventually(t, 15*time.Second, "its children end", func() bool { return len(childrenOf(t, dir)) == 0 })

	began := time.Now()
	_, out = begin(false)
	await(out, "Tocsin is ready")
	took := time.Since(began)
	t.Logf("started again in %s", took.Round(10*time.Millisecond))
	go func() { _, _ = io.Copy(io.Discard, readerOf(out)) }()
}

// readerOf drains what is left of the output, so that the demo does not block on a full pipe.
func readerOf(s *bufio.Scanner) io.Reader {
	r, w := io.Pipe()
	go func() {
		for s.Scan() {
		}
		_ = w.Close()
	}()
	return r
}

// childrenOf lists the processes that work on a folder, apart from the demo itself.
func childrenOf(t *testing.T, dir string) (pids []int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	text, err := exec.CommandContext(ctx, "ps", "-eo", "pid=,args=").Output()
	if err != nil {
		t.Skipf("ps is needed to see the children: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) > 2 && strings.Contains(line, dir) && !strings.Contains(line, " demo ") {
			pid, err := strconv.Atoi(f[0])
			if err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
