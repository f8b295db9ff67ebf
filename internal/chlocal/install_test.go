package chlocal_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tocsin-project/tocsin/internal/chlocal"
)

// fakeNPM puts a program called npm first in PATH. It notes each call in the file it returns.
func fakeNPM(t *testing.T, script string) (calls func() int) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "calls")
	text := "#!/bin/sh\necho call >> " + log + "\n" + script + "\n"
	if err := os.WriteFile(filepath.Join(dir, "npm"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() int {
		b, _ := os.ReadFile(log)
		return strings.Count(string(b), "call")
	}
}

const installsPackage = `grep -q integrity package-lock.json && grep -q omit-lockfile-registry-resolved .npmrc || exit 1
mkdir -p node_modules/@chdb/lib-linux-x64-gnu; echo half > node_modules/@chdb/lib-linux-x64-gnu/libchdb.so; sleep 0.2; echo whole > node_modules/@chdb/lib-linux-x64-gnu/libchdb.so`

func TestSeveralInstallersFetchOnce(t *testing.T) {
	calls := fakeNPM(t, installsPackage)
	cache := t.TempDir()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			path, err := chlocal.Install(t.Context(), chlocal.InstallOptions{CacheDir: cache})
			if err != nil {
				t.Error(err)
				return
			}
			if b, _ := os.ReadFile(path); string(b) != "whole\n" {
				t.Errorf("%s holds %q", path, b)
			}
		})
	}
	wg.Wait()
	if _, err := chlocal.Install(t.Context(), chlocal.InstallOptions{CacheDir: cache}); err != nil {
		t.Error(err)
	}
	if n := calls(); n != 1 {
		t.Errorf("npm ran %d times, want once", n)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "*.tmp-*")); left != nil {
		t.Errorf("left behind: %s", left)
	}
}

func TestWhatABrokenInstallLeftIsReplaced(t *testing.T) {
	fakeNPM(t, installsPackage)
	cache := t.TempDir()
	path, err := chlocal.Install(t.Context(), chlocal.InstallOptions{CacheDir: cache})
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile(path, nil, 0o644) // as after a power cut
	os.MkdirAll(filepath.Dir(path)+".tmp-123/node_modules", 0o755)
	if _, err := chlocal.Install(t.Context(), chlocal.InstallOptions{CacheDir: cache}); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(path); string(b) != "whole\n" {
		t.Errorf("the library holds %q", b)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "*.tmp-*")); left != nil {
		t.Errorf("left behind: %s", left)
	}
}

func TestAnInstallThatFailsSaysWhyInOneLine(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"offline":  {`echo "npm http fetch GET http://localhost/x attempt 1 failed with ENOTFOUND"; echo "up to date"`, "is this machine offline?"},
		"checksum": {`printf 'npm error code EINTEGRITY\nnpm error sha512-x\n'; exit 1`, "EINTEGRITY"},
		"silent":   {`exit 0`, "could not install"},
	} {
		t.Run(name, func(t *testing.T) {
			fakeNPM(t, c.script)
			cache := t.TempDir()
			_, err := chlocal.Install(t.Context(), chlocal.InstallOptions{CacheDir: cache, Progress: io.Discard})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, c.want)
			}
			t.Log(err)
		})
	}
	t.Run("no npm", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		_, err := chlocal.Install(t.Context(), chlocal.InstallOptions{CacheDir: t.TempDir()})
		if !errors.Is(err, chlocal.ErrNoNPM) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want one line and ErrNoNPM", err)
		}
		t.Log(err)
	})
}

func TestTheRealNPMOfflineIsUnderstood(t *testing.T) {
	if testing.Short() {
		t.Skip("runs npm")
	}
	t.Setenv("npm_config_registry", "http://127.0.0.1:9/")
	t.Setenv("npm_config_cache", t.TempDir())
	_, err := chlocal.Install(t.Context(), chlocal.InstallOptions{CacheDir: t.TempDir()})
	if errors.Is(err, chlocal.ErrNoNPM) {
		t.Skip(err)
	}
	if err == nil || !strings.Contains(err.Error(), "is this machine offline?") {
		t.Errorf("got %v", err)
	}
}
