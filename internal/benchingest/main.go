// Command benchingest measures what Tocsin's ingest loop costs for a span, beside what cannot be avoided: loops that
// fetch the same records from the same broker and discard them, walk them, or walk and count them. Broker, database and
// each reader are processes of their own. What was stored is compared with the truth after every run.
//
// It is for `make bench-ingest`. It is no load generator for other installations: it starts what it measures.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Children are this program again, told by these variables what to be.
const (
	envRole   = "TOCSIN_BENCHINGEST_ROLE"
	envConfig = "TOCSIN_BENCHINGEST_CONFIG"
)

const (
	roleBroker = "broker"
	roleIngest = "ingest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "benchingest:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has run
	}
}

func run(ctx context.Context) error {
	if role := os.Getenv(envRole); role != "" {
		return child(ctx, role)
	}
	var b bench
	flag.IntVar(&b.spans, "n", 2_000_000, "spans of each workload")
	flag.IntVar(&b.runs, "runs", 5, "runs of each reader, of which the median counts")
	flag.StringVar(&b.only, "workload", "", "one workload only: live, sparse, cells or poison")
	flag.DurationVar(&b.outage, "outage", 0, "instead of the above, stop ClickHouse for so long and report memory")
	flag.StringVar(&b.engine, "chlocal", "bin/chlocal", "the program chlocal")
	flag.StringVar(&b.profile, "cpuprofile", "", "write the ingest process's CPU profile here")
	flag.StringVar(&b.collector, "collector", "", "run this OpenTelemetry Collector on the same spans too (make senders builds bin/senders/collector)")
	flag.BoolVar(&b.sweep, "sweep", false, "only try the Collector's settings, each once")
	flag.StringVar(&b.record, "record", "", "add each run to this file; the medians are over all that are in it")
	flag.Parse()
	if b.sweep && b.collector == "" {
		return errors.New("-sweep needs -collector")
	}
	return b.run(ctx)
}

func child(ctx context.Context, role string) error {
	var c config
	if err := json.Unmarshal([]byte(os.Getenv(envConfig)), &c); err != nil {
		return fmt.Errorf("read %s: %w", envConfig, err)
	}
	var r result
	var err error
	switch role {
	case roleBroker:
		return runBroker(ctx)
	case roleIngest:
		r, err = runIngest(ctx, c)
	default:
		r, err = runFloor(c, role)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}
