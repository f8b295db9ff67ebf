//go:build linux && (amd64 || arm64)

package engine

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/chlocal"
)

// The library can be opened once in a process, so one test does all that needs it inside.
func TestGoStaysInChargeOfItsProcess(t *testing.T) {
	lib, err := chlocal.Install(t.Context(), chlocal.InstallOptions{Progress: os.Stderr})
	if errors.Is(err, chlocal.ErrNoNPM) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	before := handlers()
	e, err := Open(t.Context(), Options{LibPath: lib, DataDir: t.TempDir(), Database: "tocsin", MemoryMaxBytes: 1 << 30, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for !stop.Load() {
				c, err := e.Connect()
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := c.Exec("SELECT sum(sipHash64(number)), groupArray(number) FROM numbers(100000)"); err != nil {
					t.Error(err)
				}
				c.Close()
			}
		})
	}
	for range 2 {
		go func() {
			for x := 0; !stop.Load(); x++ { // asynchronous preemption (SIGURG) must be able to stop it
			}
		}()
	}
	for range 20 {
		runtime.GC()
		if nilDereference() == nil {
			t.Fatal("a nil dereference was not turned into a panic")
		}
		_ = make([]byte, 10<<20)
	}
	stop.Store(true)
	wg.Wait()
	after := handlers()
	for s, handler := range before {
		if handler > 1 && after[s] != handler { // signals that Go leaves alone may get a handler of the engine's
			t.Errorf("signal %d (%s) is no longer Go's", s, syscall.Signal(s))
		}
	}
}

func handlers() (h [signals + 1]uint64) {
	for s := 1; s <= signals; s++ {
		var a sigaction
		rtSigaction(s, nil, &a)
		h[s] = a.handler
	}
	return h
}

//go:noinline
func nilDereference() (recovered any) {
	defer func() { recovered = recover() }()
	var p *struct{ x [10]int }
	return p.x[3] //nolint:govet // it is meant to crash
}

func TestAFolderHasOneOwner(t *testing.T) {
	dir := t.TempDir()
	first, err := lockFolder(t.Context(), dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockFolder(t.Context(), dir, 0); err == nil {
		t.Fatal("two owners")
	}
	time.AfterFunc(100*time.Millisecond, first.release) // a predecessor on its way out
	second, err := lockFolder(context.Background(), dir, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	second.release()
}

func TestErrorsKeepCodeAndName(t *testing.T) {
	for text, want := range map[string]Error{
		"Code: 60. DB::Exception: Unknown table 'x'. (UNKNOWN_TABLE)":          {Code: 60, Name: "UNKNOWN_TABLE", Text: "Code: 60. DB::Exception: Unknown table 'x'. (UNKNOWN_TABLE)"},
		"Std: Code: 76. DB::Exception: Cannot lock file. (CANNOT_OPEN_FILE)\n": {Code: 76, Name: "CANNOT_OPEN_FILE", Text: "Code: 76. DB::Exception: Cannot lock file. (CANNOT_OPEN_FILE)"},
		"something else": {Code: 1002, Name: "UNKNOWN_EXCEPTION", Text: "Code: 1002. DB::Exception: something else. (UNKNOWN_EXCEPTION)"},
	} {
		if got := parseError(text); *got != want {
			t.Errorf("%q: got %+v", text, *got)
		}
	}
}
