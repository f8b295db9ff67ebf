package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/tocsin-project/tocsin/cmd/chlocal/internal/engine"
	"github.com/tocsin-project/tocsin/cmd/chlocal/internal/front"
	"github.com/tocsin-project/tocsin/internal/chlocal"
)

const (
	lockWait  = 5 * time.Second // a killed predecessor with much memory takes a moment to go
	queryWait = 3 * time.Second // at stop, before running queries are killed
	killWait  = 2 * time.Second // for killed queries to end
	flushWait = 300 * time.Millisecond
	closeWait = 10 * time.Second // for everything; then the process ends as it is, which loses nothing acknowledged
)

// run serves until ctx ends or the pipe on stdin closes. It writes one line to ready once it answers.
func run(ctx context.Context, o options, stdin *os.File, ready io.Writer, logger *slog.Logger) error {
	began := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watchPipe(stdin, cancel)
	// The engine takes its time zone from the environment; what it shows and parses must not depend on the machine.
	os.Setenv("TZ", "UTC")
	// The port comes first: it is the cheaper thing to fail on.
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer listener.Close()
	if o.lib == "" {
		if o.lib, err = chlocal.Install(ctx, chlocal.InstallOptions{Progress: os.Stderr}); err != nil {
			return err
		}
	}
	e, err := engine.Open(ctx, engine.Options{LibPath: o.lib, DataDir: o.data, Database: o.database, LockWait: lockWait,
		MemoryMaxBytes: o.memoryMax, Threads: o.threads})
	if err != nil {
		return err
	}
	f := front.New(e, front.Options{Database: o.database, Reader: o.reader, QueriesMax: o.queriesMax, BodyMaxBytes: o.bodyMax, Logger: logger})
	server := &http.Server{Handler: f, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn)}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	logger.Info("Serving ClickHouse on this machine", "addr", listener.Addr().String(), "engine", e.Version(), "data", o.data,
		"took", time.Since(began).Round(time.Millisecond).String())
	line, _ := json.Marshal(chlocal.Ready{Addr: listener.Addr().String(), Version: e.Version()})
	fmt.Fprintf(ready, "%s\n", line)

	select {
	case err = <-served:
		err = fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop(server, f, e, logger)
	}()
	select {
	case <-stopped:
	case <-time.After(closeWait):
		err = errors.Join(err, fmt.Errorf("the engine did not close within %s", closeWait))
	}
	return err
}

// stop lets running queries finish for a while, then kills them, then closes the engine.
func stop(server *http.Server, f *front.Front, e *engine.Engine, logger *slog.Logger) {
	began := time.Now()
	wait := func(d time.Duration) error {
		ctx, cancel := context.WithTimeout(context.Background(), d)
		defer cancel()
		return f.Drain(ctx)
	}
	defer server.Close()
	if wait(queryWait) != nil {
		if err := e.KillAll(); err != nil {
			logger.Warn("Could not kill the running queries", "err", err)
		}
		if wait(killWait) != nil {
			logger.Warn("Queries did not end; leaving the engine as it is")
			return // closing a connection in use would crash
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushWait)
	defer cancel()
	_ = server.Shutdown(ctx) // the last responses are on their way
	f.Close()
	e.Close()
	logger.Info("Closed", "took", time.Since(began).Round(time.Millisecond).String())
}

// watchPipe calls gone when stdin is a pipe and its other end closes, so that the engine never outlives the program
// that started it, however that died. A terminal or /dev/null is not watched.
func watchPipe(stdin *os.File, gone func()) {
	info, err := stdin.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		gone()
	}()
}
