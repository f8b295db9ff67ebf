// Command run is `make chaos`: a seeded campaign of faults against Tocsin's ingest, after which everything must be stored
// exactly once.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/tocsin-project/tocsin/internal/chaos"
)

func main() {
	chaos.Child()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ok, err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(ctx context.Context) (bool, error) {
	o := chaos.Options{Out: os.Stdout}
	flag.Uint64Var(&o.Seed, "seed", uint64(time.Now().UnixNano()%1_000_000), "what the faults and the records are drawn by")
	flag.IntVar(&o.Faults, "faults", 1000, "faults to inject")
	flag.Uint64Var(&o.Events, "events", 20_000_000, "events to write")
	flag.DurationVar(&o.Duration, "duration", 20*time.Minute, "after it no further fault is injected and nothing more is written")
	flag.StringVar(&o.Broker, "broker", "embedded", "embedded, or real for Apache Kafka")
	flag.IntVar(&o.Members, "members", 4, "daemons in the group")
	flag.IntVar(&o.Parallel, "parallel", 4, "faults at a time")
	flag.StringVar(&o.Break, "break", "", "take a rule away, to see it noticed: reservations or tokens")
	keep := flag.Bool("keep", false, "keep the files of a run that found nothing")
	flag.StringVar(&o.Binary, "tocsin", "bin/tocsin", "the program tocsin")
	flag.StringVar(&o.Engine, "chlocal", "bin/chlocal", "the program chlocal")
	flag.Parse()
	var err error
	for _, program := range []*string{&o.Binary, &o.Engine} {
		if *program, err = filepath.Abs(*program); err != nil {
			return false, err
		}
	}
	if o.Dir, err = os.MkdirTemp("", "tocsin-chaos-"); err != nil {
		return false, fmt.Errorf("make a folder: %w", err)
	}
	r, err := chaos.Run(ctx, o)
	if err != nil {
		return false, fmt.Errorf("%w (seed %d, files in %s)", err, o.Seed, o.Dir)
	}
	r.Write(os.Stdout)
	if r.OK() && !*keep {
		return true, os.RemoveAll(o.Dir)
	}
	return r.OK(), nil
}
