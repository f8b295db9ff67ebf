package chlocaltest

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.uber.org/goleak"

	"github.com/tocsin-project/tocsin/internal/chlocal"
)

// shared is the engine that serves all tests of a process.
var shared struct {
	mu     sync.Mutex
	server *chlocal.Server
	err    error
	dir    string
}

// StartShared returns the address of the engine that this package's tests share, starting it for the first who asks.
// Main stops it; without Main it ends with the test process and leaves its folder in the temporary one.
func StartShared(t testing.TB) (addr string) {
	t.Helper()
	binary, library := prepared(t)
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil && shared.err == nil {
		sweep()
		shared.dir, shared.err = os.MkdirTemp("", dirPrefix)
		if shared.err == nil {
			shared.server, shared.err = chlocal.Start(context.Background(), chlocal.Options{Binary: binary, LibPath: library,
				DataDir: filepath.Join(shared.dir, "clickhouse"), Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
		}
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	select {
	case <-shared.server.Done():
		t.Fatalf("the shared engine is gone: %v", shared.server.Err())
	default:
	}
	return shared.server.Addr()
}

const (
	dirPrefix = "tocsin-chlocal-"
	staleAge  = 10 * time.Minute
)

// sweep removes the folders of test processes that were killed before Shutdown: those whose engine has let go of its
// lock. The age spares a folder whose engine is about to start.
func sweep() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || time.Since(info.ModTime()) < staleAge {
			continue
		}
		if unlock, ok := tryLock(filepath.Join(dir, "clickhouse", "chlocal.lock")); ok {
			os.RemoveAll(dir)
			unlock()
		}
	}
}

// Shutdown stops the shared engine, if there is one, and removes its folder.
func Shutdown() {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		if err := shared.server.Stop(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "chlocaltest:", err)
		}
		shared.server = nil
	}
	if shared.dir != "" {
		os.RemoveAll(shared.dir)
	}
}

// Main is a TestMain for packages whose tests share an engine: it runs the tests, stops the engine, and then fails if
// a goroutine was left behind.
func Main(m *testing.M, opts ...goleak.Option) {
	code := m.Run()
	Shutdown()
	http.DefaultClient.CloseIdleConnections()
	if code == 0 {
		if err := goleak.Find(opts...); err != nil {
			fmt.Fprintln(os.Stderr, "goleak:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// NewDatabase makes a fresh database in the shared engine and drops it when the test ends.
func NewDatabase(t testing.TB) (addr, database string) {
	t.Helper()
	addr = StartShared(t)
	database = "test_" + strings.ToLower(rand.Text()[:12])
	Exec(t, addr, "CREATE DATABASE "+database)
	t.Cleanup(func() { Exec(t, addr, "DROP DATABASE "+database+" SYNC") })
	return addr, database
}

// Conn opens a fresh database of the shared engine with clickhouse-go, as the product does.
func Conn(t testing.TB) (conn driver.Conn, database string) {
	t.Helper()
	addr, database := NewDatabase(t)
	return Open(t, addr, database), database
}

// Open connects to a database; the connection is closed when the test ends.
func Open(t testing.TB, addr, database string) driver.Conn {
	t.Helper()
	conn, err := clickhouse.Open(&clickhouse.Options{Addr: []string{addr}, Protocol: clickhouse.HTTP,
		Auth: clickhouse.Auth{Database: database}, Compression: &clickhouse.Compression{Method: clickhouse.CompressionLZ4}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// Exec runs one statement over plain HTTP and returns its output, tab-separated.
func Exec(t testing.TB, addr, statement string) string {
	t.Helper()
	resp, err := http.Post("http://"+addr+"/", "text/plain", strings.NewReader(statement))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", statement, out)
	}
	return string(out)
}
