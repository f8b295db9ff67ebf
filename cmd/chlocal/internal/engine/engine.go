//go:build linux && (amd64 || arm64)

package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Engine is the one engine of this process: libchdb can be opened once, on one folder.
type Engine struct {
	lib     *library
	args    []string
	lock    *folderLock
	version string
	nextTag atomic.Uint64

	// control keeps the engine alive while no query runs (closing the last connection shuts it down) and carries the
	// KILL statements. Its mutex is needed because a connection runs one statement at a time.
	controlMu sync.Mutex
	control   *Conn
}

// Open loads the library, locks the data folder and starts the engine on it. It waits for the folder's lock as long as
// opts.LockWait, because a killed predecessor takes a moment to let go.
func Open(ctx context.Context, opts Options) (_ *Engine, err error) {
	dir, err := filepath.Abs(opts.DataDir)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	// Without metadata/ at start the engine never starts its background drops, and DROP … SYNC hangs.
	if err := os.MkdirAll(filepath.Join(dir, "metadata"), 0o750); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	lock, err := lockFolder(ctx, dir, opts.LockWait)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			lock.release()
		}
	}()
	config, err := writeConfig(dir, opts)
	if err != nil {
		return nil, err
	}
	lib, err := load(opts.LibPath)
	if err != nil {
		return nil, err
	}
	e := &Engine{lib: lib, lock: lock, args: []string{"--path=" + dir, "--config-file=" + config}}
	if e.control, err = e.first(ctx, opts.LockWait); err != nil {
		return nil, err
	}
	setup := func() error {
		if _, err := e.control.Exec("CREATE DATABASE IF NOT EXISTS " + QuoteIdent(opts.Database)); err != nil {
			return fmt.Errorf("create database %s: %w", opts.Database, err)
		}
		return e.control.Query([]byte("SELECT version()"), "TSVRaw", nil, func(out []byte, _ Summary) error {
			e.version = strings.TrimSpace(string(out))
			return nil
		})
	}
	if err := setup(); err != nil {
		e.control.Close()
		return nil, err
	}
	return e, nil
}

// first opens the connection that starts the engine. The engine has a lock of its own on the folder, which a process
// that does not know ours may hold: its refusal (code 76) is retried as well.
func (e *Engine) first(ctx context.Context, wait time.Duration) (*Conn, error) {
	deadline := time.Now().Add(wait)
	for {
		var c *Conn
		var err error
		said := captureStderr(func() { c, err = e.Connect() })
		if err == nil {
			return c, nil
		}
		if said != "" {
			err = fmt.Errorf("start the engine: %w", parseError(said))
		}
		locked := strings.Contains(said, "Code: 76")
		if !locked || time.Now().After(deadline) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Version is the engine's, such as 26.7.2.1.
func (e *Engine) Version() string { return e.version }

// Connect opens a connection whose statements Kill can find by its tag.
func (e *Engine) Connect() (*Conn, error) {
	handle, conn, err := e.connect()
	if err != nil {
		return nil, err
	}
	return &Conn{engine: e, handle: handle, conn: conn, tag: fmt.Sprintf("chlocal-%d-%d", os.Getpid(), e.nextTag.Add(1))}, nil
}

// Kill cancels what runs on the connection with this tag; it does not wait until it has stopped. The connection's
// log_comment must start with the tag.
func (e *Engine) Kill(tag string) error {
	return e.kill("startsWith(Settings['log_comment'], " + QuoteString(tag+" ") + ")")
}

// KillAll cancels every statement.
func (e *Engine) KillAll() error { return e.kill("query NOT LIKE 'KILL QUERY%'") }

func (e *Engine) kill(where string) error {
	e.controlMu.Lock()
	defer e.controlMu.Unlock()
	if e.control.handle == nil {
		return nil
	}
	_, err := e.control.Exec("KILL QUERY WHERE " + where + " ASYNC")
	return err
}

// Close shuts the engine down once all connections from Connect are closed, which is the caller's duty, and lets the
// folder go.
func (e *Engine) Close() {
	e.controlMu.Lock()
	defer e.controlMu.Unlock()
	keepSignals(e.control.Close)
	e.lock.release()
}
