package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tocsin-project/tocsin/internal/chlocal"
	"github.com/tocsin-project/tocsin/internal/measured"
)

// stopped measures the memory of ingest while ClickHouse is away: it reads at full rate until a quarter is stored, then
// the database is stopped for b.outage, and then it has to come to the truth all the same.
func (b *bench) stopped(ctx context.Context, w workload, addr, lib string) error {
	c, t, _, err := fill(ctx, addr, w)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "benchingest-clickhouse-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	options := chlocal.Options{Binary: b.engine, LibPath: lib, DataDir: dir, Logger: logger}
	engine, err := chlocal.Start(ctx, options)
	if err != nil {
		return fmt.Errorf("start ClickHouse: %w", err)
	}
	defer func() { engine.Stop(context.WithoutCancel(ctx)) }() //nolint:errcheck // its data is thrown away
	options.Listen = engine.Addr()
	c.ClickHouse, c.Database, c.Group, c.Patience = engine.Addr(), "tocsin", "bench-outage-"+c.Topic, b.outage
	db, err := openDB(c, logger, prometheus.NewRegistry())
	if err != nil {
		return err
	}
	err = db.Migrate(ctx)
	db.Close()
	if err != nil {
		return fmt.Errorf("make tables: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	j, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), envRole+"="+roleIngest, envConfig+"="+string(j))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start ingest: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer cmd.Process.Kill() //nolint:errcheck // it has ended, or must
	if err := untilStored(ctx, engine.URL(), sum(c.Ends)/4, ended); err != nil {
		return err
	}
	if err := engine.Stop(ctx); err != nil {
		return fmt.Errorf("stop ClickHouse: %w", err)
	}
	fmt.Printf("workload %s, ClickHouse stopped for %s: resident memory of ingest by time, load\n", w.Name, b.outage)
	began := time.Now()
	for next := time.Duration(0); ; {
		now, _ := measured.Resident(cmd.Process.Pid)
		fmt.Printf("  %6s %4.0f MB %5.1f\n", time.Since(began).Round(time.Second), float64(now)/1e6, measured.Load())
		if next += b.outage / 10; next > b.outage {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			return fmt.Errorf("ingest ended: %w", err)
		case <-time.After(time.Until(began.Add(next))):
		}
	}
	if engine, err = chlocal.Start(ctx, options); err != nil {
		return fmt.Errorf("start ClickHouse again: %w", err)
	}
	_, peak := processCPU(cmd.Process.Pid)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("ingest: %w", err)
		}
	}
	if err := compare(ctx, engine.URL(), t); err != nil {
		return err
	}
	fmt.Printf("  peak %.0f MB until then; totals equal the truth afterwards\n", float64(peak)/1e6)
	return nil
}

// untilStored waits for records to be stored.
func untilStored(ctx context.Context, engine string, records int64, ended <-chan error) error {
	for {
		rows, err := query(ctx, engine, "SELECT toString(sum(marker_records)) FROM cells WHERE marker = 1")
		if err != nil {
			return err
		}
		if n, _ := strconv.ParseInt(rows[0][0], 10, 64); n >= records {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			return errors.Join(errors.New("ingest ended too early"), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
