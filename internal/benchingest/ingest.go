package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tocsin-project/tocsin/internal/clickhouse"
	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/ingest/decode"
	"github.com/tocsin-project/tocsin/internal/kafka"
	"github.com/tocsin-project/tocsin/internal/pipeline"
)

// pipelineText keeps of the shipped pipeline's attributes the one that the workloads are about: 3 regions.
const pipelineText = `name: telemetry
topic: %s
stream: requests
decoder: otlp_proto
attributes: {region: [cloud.region]}
`

// runIngest reads the topic into ClickHouse with Tocsin's ingest loop, exactly as the daemon runs it.
func runIngest(ctx context.Context, c config) (r result, err error) {
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	reg := prometheus.NewRegistry()
	db, err := openDB(c, logger, reg)
	if err != nil {
		return r, err
	}
	defer db.Close()
	kc := kafka.Config{Brokers: []string{c.Kafka}}
	kc.SetDefaults()
	client, err := kafka.NewClient(kc, logger, kafka.NewMetrics(reg))
	if err != nil {
		return r, fmt.Errorf("kafka: %w", err)
	}
	defer client.Close()
	group, err := client.NewGroup(kafka.GroupConfig{ID: c.Group, Topics: []string{c.Topic}})
	if err != nil {
		return r, fmt.Errorf("kafka: %w", err)
	}
	p, err := pipeline.Parse("bench.yaml", []byte(fmt.Sprintf(pipelineText, c.Topic)))
	if err != nil {
		return r, fmt.Errorf("pipeline: %w", err)
	}
	source, err := decode.Source(p)
	if err != nil {
		return r, err
	}
	var cfg ingest.Config
	cfg.SetDefaults()
	cfg.Start = ingest.Start{Beginning: true}
	loop, err := ingest.New(cfg, ingest.Deps{Log: kafka.IngestLog(client), Group: kafka.IngestGroup(group), Store: clickhouse.NewStore(db),
		Sources: []ingest.Source{source}, Clock: ingest.NewClock(cfg.Clock, nil), Logger: logger, Metrics: ingest.NewMetrics(reg)})
	if err != nil {
		return r, err
	}
	if c.Profile != "" {
		f, err := os.Create(c.Profile)
		if err != nil {
			return r, fmt.Errorf("profile: %w", err)
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return r, fmt.Errorf("profile: %w", err)
		}
		defer pprof.StopCPUProfile()
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	m := startMeter()
	go func() { done <- loop.Run(ctx) }()
	defer func() {
		cancel()
		if runErr := <-done; err == nil && runErr != nil {
			err = runErr
		}
	}()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10*time.Minute + c.Patience); ; <-tick.C {
		h := loop.Health()
		at := int64(0)
		for _, ph := range h.Partitions {
			at += ph.Position
		}
		if at >= sum(c.Ends) {
			r = m.stop()
			return r, heapProfile(c)
		}
		if time.Now().After(deadline) {
			return r, fmt.Errorf("ingest is stuck at %d of %d records: %s", at, sum(c.Ends), h.LastError)
		}
	}
}

// heapProfile writes what the process holds and has allocated beside the CPU profile, if there is one.
func heapProfile(c config) error {
	if c.Profile == "" {
		return nil
	}
	f, err := os.Create(c.Profile + ".heap")
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	defer f.Close()
	if err := pprof.WriteHeapProfile(f); err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	return nil
}

func openDB(c config, logger *slog.Logger, reg prometheus.Registerer) (*clickhouse.DB, error) {
	cfg := clickhouse.Config{Addresses: []string{c.ClickHouse}, Database: c.Database}
	cfg.SetDefaults()
	db, err := clickhouse.Open(cfg, logger, clickhouse.NewMetrics(reg))
	if err != nil {
		return nil, fmt.Errorf("clickhouse: %w", err)
	}
	return db, nil
}

func sum(ns []int64) (all int64) {
	for _, n := range ns {
		all += n
	}
	return all
}
