// Command benchdetect measures what a tick of Tocsin's detector costs at many path-slices and twenty rules, and beside it what
// Prometheus' rules engine and TSDB need for the same series and rules: processor time and memory, each side in a process of its own.
// Both have to come to the same findings. It also measures how soon a restarted detector has done its first tick.
//
// It is for `make bench-detect`. Prometheus is bin/promrules, a module of its own in internal/tools.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Children are this program again, told by these variables what to be.
const (
	envRole   = "TOCSIN_BENCHDETECT_ROLE"
	envConfig = "TOCSIN_BENCHDETECT_CONFIG"
)

const (
	roleTick    = "tocsin"
	roleRestart = "restart"
	rolePrepare = "prepare"
	roleStored  = "stored"
	sideShipped = "shipped" // roleTick with the rules that Tocsin ships, which Prometheus cannot say
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "benchdetect:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has run
	}
}

func run(ctx context.Context) error {
	if role := os.Getenv(envRole); role != "" {
		return child(ctx, role)
	}
	var b bench
	flag.IntVar(&b.slices, "n", 100_000, "path-slices, a multiple of 20")
	flag.IntVar(&b.warm, "warm", 361, "ticks before the measured ones; an hour has 360")
	flag.IntVar(&b.ticks, "ticks", 30, "measured ticks of Tocsin, best a multiple of 6: once a minute it tidies up")
	flag.IntVar(&b.promTicks, "prometheus-ticks", 6, "measured ticks of Prometheus, as long as one takes")
	flag.IntVar(&b.runs, "runs", 3, "runs of each, of which the median counts")
	flag.StringVar(&b.only, "only", "", "some only, by comma: tocsin, shipped, restart, stored (both need tocsin, too), same, lean, recorded, offset")
	flag.StringVar(&b.prometheus, "prometheus", "bin/promrules", "the program promrules")
	flag.StringVar(&b.engine, "chlocal", "bin/chlocal", "the program chlocal")
	flag.IntVar(&b.concurrency, "concurrency", 0, "rules that Prometheus may evaluate at once; 0 is its default, one after another")
	flag.StringVar(&b.profile, "cpuprofile", "", "write CPU profiles here, with the name of what ran appended")
	flag.StringVar(&b.record, "record", "", "add each run to this file; the medians are over all that are in it")
	flag.BoolVar(&b.report, "report", false, "write the tables into docs/detect-results.md, too")
	flag.BoolVar(&b.show, "show-rules", false, "only print the rules, in both languages")
	flag.Parse()
	return b.run(ctx)
}

func child(ctx context.Context, role string) error {
	var c config
	if err := json.Unmarshal([]byte(os.Getenv(envConfig)), &c); err != nil {
		return fmt.Errorf("read %s: %w", envConfig, err)
	}
	r, err := result{}, error(nil)
	switch role {
	case roleTick:
		r, err = runTicks(c)
	case roleRestart:
		r, err = runRestart(c)
	case rolePrepare:
		r, err = runPrepare(ctx, c)
	case roleStored:
		r, err = runStored(ctx, c)
	default:
		err = fmt.Errorf("no role %q", role)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}
