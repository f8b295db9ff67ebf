// Package chlocaltest gives tests a real ClickHouse engine: it builds chlocal, installs the library once into the
// user's cache, starts the engine and stops it. It is for tests only.
//
// A package whose tests share one engine calls Main from TestMain and NewDatabase or Conn in each test; a test that
// kills or restarts its engine takes one of its own with Start or StartServer.
package chlocaltest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/chlocal"
)

// Start gives the test an engine of its own and returns its address.
func Start(t testing.TB) (addr string) {
	t.Helper()
	return StartServer(t, Options(t)).Addr()
}

// StartServer starts an engine with the given options and stops it when the test ends.
func StartServer(t testing.TB, opts chlocal.Options) *chlocal.Server {
	t.Helper()
	s, err := chlocal.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Options returns what StartServer needs, for a temporary data folder. It skips the test if there is no npm to install
// the library with.
func Options(t testing.TB) chlocal.Options {
	t.Helper()
	binary, library := prepared(t)
	return chlocal.Options{Binary: binary, LibPath: library, DataDir: filepath.Join(t.TempDir(), "clickhouse"), Logger: testLogger(t)}
}

var (
	buildOnce, libraryOnce sync.Once
	binaryPath, libPath    string
	buildErr, libErr       error
)

func prepared(t testing.TB) (binary, library string) {
	t.Helper()
	libraryOnce.Do(func() {
		libPath, libErr = chlocal.Install(context.Background(), chlocal.InstallOptions{Progress: os.Stderr})
	})
	if errors.Is(libErr, chlocal.ErrNoNPM) {
		t.Skip(libErr)
	}
	if libErr != nil {
		t.Fatal(libErr)
	}
	buildOnce.Do(func() { binaryPath, buildErr = build() })
	if buildErr != nil {
		t.Fatal(buildErr)
	}
	return binaryPath, libPath
}

// build makes chlocal in a folder of this checkout's in the user's cache. Go leaves the file alone when it is up to
// date, so that only the first test process after a change pays for linking.
func build() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("build chlocal: %w", err)
	}
	path := filepath.Join(cache, "tocsin", "test-bin", fmt.Sprintf("%x", hash(root)), "chlocal")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", fmt.Errorf("build chlocal: %w", err)
	}
	unlock, err := lock(path + ".lock") // the test processes of several packages start at once
	if err != nil {
		return "", fmt.Errorf("build chlocal: %w", err)
	}
	defer unlock()
	cmd := exec.Command("go", "build", "-o", path, "./cmd/chlocal")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build chlocal: %w\n%s", err, out)
	}
	return path, nil
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd() // go test runs in the package's folder
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find the module: no go.mod above the test's folder")
		}
		dir = parent
	}
}

// testLogger shows the engine's warnings in the test's output. The supervisor may log when the test is just over,
// which testing forbids: what comes then is dropped.
func testLogger(t testing.TB) *slog.Logger {
	w := &testWriter{t: t}
	t.Cleanup(w.close)
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

type testWriter struct {
	mu sync.Mutex
	t  testing.TB
}

var _ io.Writer = (*testWriter)(nil)

func (w *testWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.t != nil {
		w.t.Logf("%s", p[:max(len(p)-1, 0)])
	}
	return len(p), nil
}

func (w *testWriter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.t = nil
}

const stopTimeout = 15 * time.Second
