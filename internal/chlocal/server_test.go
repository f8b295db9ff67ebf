package chlocal_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/tocsin-project/tocsin/internal/chlocal"
	"github.com/tocsin-project/tocsin/internal/chlocal/chlocaltest"
)

const restartMax = 5 * time.Second

func within(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(limit)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("not within %s: %s", limit, what)
		case <-tick.C:
		}
	}
}

func answers(addr string) bool {
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + addr + "/?query=SELECT+1")
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestAKilledEngineComesBackWithEveryAcknowledgedInsert(t *testing.T) {
	t.Parallel()
	opts := chlocaltest.Options(t)
	opts.Restart = true
	s := chlocaltest.StartServer(t, opts)
	conn := chlocaltest.Open(t, s.Addr(), "tocsin")
	if err := conn.Exec(t.Context(), "CREATE TABLE t (id UInt64, s String) ENGINE = MergeTree ORDER BY id SETTINGS non_replicated_deduplication_window = 100000"); err != nil {
		t.Fatal(err)
	}
	const rows = 1000
	insert := func(id uint64) error {
		token := clickhouse.Context(t.Context(), clickhouse.WithSettings(clickhouse.Settings{"insert_deduplication_token": fmt.Sprint(id)}))
		batch, err := conn.PrepareBatch(token, "INSERT INTO t")
		if err != nil {
			return err
		}
		for range rows {
			if err := batch.Append(id, "some payload text for the row"); err != nil {
				return err
			}
		}
		return batch.Send()
	}
	var mu sync.Mutex
	var acknowledged, unknown []uint64
	var next atomic.Uint64
	for kill := range 4 {
		var wg sync.WaitGroup
		var sent atomic.Int64
		for range 3 {
			wg.Go(func() {
				for {
					id := next.Add(1)
					err := insert(id)
					mu.Lock()
					if err == nil {
						acknowledged = append(acknowledged, id)
						sent.Add(1)
					} else {
						unknown = append(unknown, id)
					}
					mu.Unlock()
					if err != nil {
						return
					}
				}
			})
		}
		within(t, 10*time.Second, "inserts go through", func() bool { return sent.Load() > 10 })
		syscall.Kill(s.Pid(), syscall.SIGKILL)
		began := time.Now()
		wg.Wait()
		within(t, restartMax, "the engine answers again", func() bool { return answers(s.Addr()) && s.Restarts() == kill+1 })
		t.Logf("back after %s", time.Since(began))
	}
	check := func(what string) {
		t.Helper()
		got := map[uint64]uint64{}
		found, err := conn.Query(t.Context(), "SELECT id, count() FROM t GROUP BY id")
		if err != nil {
			t.Fatal(err)
		}
		defer found.Close()
		for found.Next() {
			var id, n uint64
			if err := found.Scan(&id, &n); err != nil {
				t.Fatal(err)
			}
			got[id] = n
		}
		for _, id := range acknowledged {
			if got[id] != rows {
				t.Errorf("%s: acknowledged insert %d has %d of %d rows", what, id, got[id], rows)
			}
		}
		for _, id := range unknown {
			if got[id] != 0 && got[id] != rows {
				t.Errorf("%s: insert %d is there in part: %d rows", what, id, got[id])
			}
		}
	}
	check("after the kills")
	if len(unknown) == 0 {
		t.Error("no insert was hit by a kill")
	}
	for _, id := range unknown { // as the product does: the same rows under the same token
		if err := insert(id); err != nil {
			t.Fatal(err)
		}
	}
	acknowledged, unknown = append(acknowledged, unknown...), nil
	check("after repeating the unacknowledged")
}

func TestAKilledParentLeavesNoEngine(t *testing.T) {
	t.Parallel()
	opts := chlocaltest.Options(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), parentEnv+"="+opts.DataDir, "TOCSIN_TEST_BINARY="+opts.Binary, "TOCSIN_TEST_LIB="+opts.LibPath)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	var addr string
	if _, err := fmt.Fscan(bufio.NewReader(out), &pid, &addr); err != nil {
		t.Fatal(err)
	}
	if !alive(pid) || !answers(addr) {
		t.Fatal("the engine does not run")
	}
	cmd.Process.Kill()
	cmd.Wait()
	within(t, restartMax, "the engine is gone", func() bool { return !alive(pid) && !answers(addr) })
	s := chlocaltest.StartServer(t, opts)
	if !answers(s.Addr()) {
		t.Error("no new engine on the folder")
	}
}

func TestTheEngineEndsWhenItsStandardInputCloses(t *testing.T) {
	t.Parallel()
	opts := chlocaltest.Options(t)
	cmd := exec.Command(opts.Binary, "-lib", opts.LibPath, "-data", opts.DataDir, "-listen", "127.0.0.1:0")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || !strings.Contains(line, `"addr":"127.0.0.1:`) {
		t.Fatalf("ready line %q (%v)", line, err)
	}
	ended := make(chan error, 1)
	stdin.Close()
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("ended with %v, want exit code 0", err)
		}
	case <-time.After(restartMax):
		t.Error("still there")
	}
}

func TestStopDoesNotWaitForALongQuery(t *testing.T) {
	t.Parallel()
	s := chlocaltest.StartServer(t, chlocaltest.Options(t))
	pid := s.Pid()
	conn := chlocaltest.Open(t, s.Addr(), "tocsin")
	failed := make(chan error, 1)
	go func() {
		failed <- conn.Exec(context.Background(), "SELECT count() FROM numbers(1000000000000) WHERE sipHash64(number) = 1")
	}()
	within(t, 5*time.Second, "the query runs", func() bool {
		return chlocaltest.Exec(t, s.Addr(), "SELECT count() FROM system.processes WHERE query LIKE '%1000000000000%' AND query NOT LIKE '%processes%'") == "1\n"
	})
	http.DefaultClient.CloseIdleConnections()
	began := time.Now()
	if err := s.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("stopping took %s", took)
	}
	var exception *clickhouse.Exception
	if err := <-failed; !errors.As(err, &exception) {
		t.Errorf("the query got %v, want an exception", err)
	}
	if err := s.Stop(context.Background()); err != nil || s.Err() != nil || alive(pid) {
		t.Errorf("a second stop: %v, %v, alive %t", err, s.Err(), alive(pid))
	}
}

func TestADeathWithoutRestartIsSaid(t *testing.T) {
	t.Parallel()
	s := chlocaltest.StartServer(t, chlocaltest.Options(t))
	syscall.Kill(s.Pid(), syscall.SIGKILL)
	select {
	case <-s.Done():
	case <-time.After(restartMax):
		t.Fatal("not done")
	}
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the reason is %v", err)
	}
}

func TestAStartThatCannotWorkSaysWhyInOneLine(t *testing.T) {
	good := chlocaltest.Options(t)
	running := chlocaltest.StartServer(t, good)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() }) // after the parallel subtests
	garbage := filepath.Join(t.TempDir(), "libchdb.so")
	os.WriteFile(garbage, []byte("not a library"), 0o644)
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o644)
	for name, c := range map[string]struct {
		change func(*chlocal.Options)
		want   string
	}{
		"no program":            {func(o *chlocal.Options) { o.Binary = "/no/such/chlocal" }, "/no/such/chlocal: no such file"},
		"no library":            {func(o *chlocal.Options) { o.LibPath = "/no/such/libchdb.so" }, "load the engine: stat /no/such/libchdb.so: no such file"},
		"not a library":         {func(o *chlocal.Options) { o.LibPath = garbage }, "load the engine: " + garbage},
		"folder in use":         {func(o *chlocal.Options) { o.DataDir = good.DataDir }, fmt.Sprintf("is in use by process %d", running.Pid())},
		"folder is a file":      {func(o *chlocal.Options) { o.DataDir = file }, "data folder: "},
		"port in use":           {func(o *chlocal.Options) { o.Listen = taken.Addr().String() }, "address already in use"},
		"not loopback":          {func(o *chlocal.Options) { o.Listen = "0.0.0.0:0" }, "only loopback addresses"},
		"the engine's database": {func(o *chlocal.Options) { o.Database = "default" }, "a database of its own"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := chlocaltest.Options(t)
			c.change(&opts)
			s, err := chlocal.Start(t.Context(), opts)
			if err == nil {
				s.Stop(context.Background())
				t.Fatal("it started")
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q, want one line with %q", err, c.want)
			}
			t.Log(err)
		})
	}
}
