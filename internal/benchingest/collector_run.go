package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tocsin-project/tocsin/internal/chlocal"
	"github.com/tocsin-project/tocsin/internal/measured"
)

// collect is one run of a Collector into an empty database.
func (b *bench) collect(ctx context.Context, c config, t truth, lib string, v variant, s setting, i int) (r result, err error) {
	dir, err := os.MkdirTemp("", "benchingest-collector-")
	if err != nil {
		return r, fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	engine, err := chlocal.Start(ctx, chlocal.Options{Binary: b.engine, LibPath: lib, DataDir: filepath.Join(dir, "clickhouse"), Logger: logger})
	if err != nil {
		return r, fmt.Errorf("start ClickHouse: %w", err)
	}
	defer engine.Stop(context.WithoutCancel(ctx)) //nolint:errcheck // its data is thrown away
	c.ClickHouse = engine.Addr()
	group := fmt.Sprint("bench-", c.Topic, "-", v.name, "-", s.name, "-", i)
	if err := b.collectorTables(ctx, c, v, s, engine.URL(), dir); err != nil {
		return r, fmt.Errorf("make the Collector's tables: %w", err)
	}
	r.LoadAverage = measured.Load()
	before, _ := processCPU(engine.Pid())
	began := time.Now()
	col, err := b.startCollector(c, s, c.Topic, group, dir, false)
	if err != nil {
		return r, err
	}
	defer col.kill()
	if err := col.until(ctx, func() (bool, error) {
		rows, err := query(ctx, engine.URL(), v.landed())
		if err != nil {
			return false, err
		}
		n, _ := strconv.ParseInt(rows[0][0], 10, 64)
		return n >= c.Spans, nil
	}); err != nil {
		return r, err
	}
	r.Wall = time.Since(began)
	r.CPU, r.PeakBytes = processCPU(col.cmd.Process.Pid)
	if err := col.stop(); err != nil {
		return r, err
	}
	if err := settled(ctx, engine.URL()); err != nil {
		return r, err
	}
	after, peak := processCPU(engine.Pid())
	r.DatabaseCPU, r.DatabasePeak = after-before, peak
	if err := compareSpans(ctx, engine.URL(), v, t); err != nil {
		return r, err
	}
	r.Queries, err = costs(ctx, engine.URL(), spanQueries[v.name])
	return r, err
}

// collectorTables lets the exporter make its own tables, and the counting view's beside them.
func (b *bench) collectorTables(ctx context.Context, c config, v variant, s setting, engine, dir string) error {
	if _, err := query(ctx, engine, "CREATE DATABASE "+collectorDatabase); err != nil {
		return err
	}
	col, err := b.startCollector(c, s, "no_spans", "bench-tables", dir, true)
	if err != nil {
		return err
	}
	defer col.kill()
	if err := col.until(ctx, func() (bool, error) { // the traces, and a table and a view of trace ids
		rows, err := query(ctx, engine, "SELECT toString(count()) FROM system.tables WHERE database = 'otel' AND name LIKE 'otel_traces%'")
		return err == nil && rows[0][0] == "3", err
	}); err != nil {
		return err
	}
	if err := col.stop(); err != nil {
		return err
	}
	if !v.null {
		return nil
	}
	rows, err := query(ctx, engine, "SELECT name, type FROM system.columns WHERE database = 'otel' AND table = 'otel_traces' ORDER BY position")
	if err != nil {
		return err
	}
	var columns []string
	for _, r := range rows {
		columns = append(columns, "`"+r[0]+"` "+r[1])
	}
	for _, statement := range []string{
		"DROP TABLE otel.otel_traces_trace_id_ts_mv SYNC", "DROP TABLE otel.otel_traces_trace_id_ts SYNC", "DROP TABLE otel.otel_traces SYNC",
		"CREATE TABLE otel.otel_traces (" + strings.Join(columns, ", ") + ") ENGINE = Null", countedTable, countingView,
	} {
		if _, err := query(ctx, engine, statement); err != nil {
			return err
		}
	}
	return nil
}

// compareSpans holds what a Collector stored to the truth, path by path.
func compareSpans(ctx context.Context, engine string, v variant, t truth) error {
	rows, err := query(ctx, engine, v.totals())
	if err != nil {
		return err
	}
	wrong := 0
	for _, r := range rows {
		total, _ := strconv.ParseInt(r[4], 10, 64)
		failed, _ := strconv.ParseInt(r[5], 10, 64)
		if t[pathKey{r[0], r[1], r[2], r[3]}] != (counts{total, failed}) {
			wrong++
		}
	}
	if wrong > 0 || len(rows) != len(t) {
		return fmt.Errorf("%s: of %d paths %d are counted wrong, %d are stored", v.name, len(t), wrong, len(rows))
	}
	return nil
}

// collectorProcess is a running Collector.
type collectorProcess struct {
	cmd  *exec.Cmd
	said bytes.Buffer
	done chan struct{}
	err  error
}

// collectorStuck is how long a Collector may take in all.
const collectorStuck = 10 * time.Minute

func (b *bench) startCollector(c config, s setting, topic, group, dir string, createSchema bool) (*collectorProcess, error) {
	j, err := s.json(c, topic, group, createSchema)
	if err != nil {
		return nil, err
	}
	path := configFile(dir, topic)
	if err := os.WriteFile(path, j, 0o600); err != nil {
		return nil, fmt.Errorf("write the Collector's configuration: %w", err)
	}
	p := &collectorProcess{cmd: exec.Command(b.collector, "--config", path), done: make(chan struct{})}
	if s.gogc != "" {
		p.cmd.Env = append(os.Environ(), "GOGC="+s.gogc)
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the Collector: %w", err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// until asks a few times a second whether something is so.
func (p *collectorProcess) until(ctx context.Context, f func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, collectorStuck)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := f(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the Collector: %w", ctx.Err())
		case <-p.done:
			return fmt.Errorf("the Collector ended: %w: %s", p.err, tail(p.said.Bytes()))
		case <-tick.C:
		}
	}
}

func (p *collectorProcess) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return nil
	case <-time.After(time.Minute):
		return errors.New("the Collector does not end")
	}
}

func (p *collectorProcess) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

func tail(b []byte) string { return string(b[max(0, len(b)-1500):]) }
