package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tocsin-project/tocsin/internal/chlocal"
)

type bench struct {
	spans, runs           int
	only, engine, profile string
	collector, record     string
	sweep                 bool
	outage                time.Duration
}

// settle is how long the database is watched after a run, at least, and settleMax at most: what it merges then is on the
// run's account.
const (
	settle    = 2 * time.Second
	settleMax = time.Minute
)

func (b *bench) run(ctx context.Context) error {
	lib, err := chlocal.Install(ctx, chlocal.InstallOptions{Progress: os.Stderr})
	if err != nil {
		return fmt.Errorf("install the engine: %w", err)
	}
	addr, stop, err := startBroker()
	if err != nil {
		return err
	}
	defer stop()
	for _, w := range workloads {
		if b.only != "" && b.only != w.Name {
			continue
		}
		w.Spans = b.spans
		measure := b.workload
		switch {
		case b.outage > 0:
			measure = b.stopped
		case w.Poison > 0:
			measure = b.poisoned
		}
		if err := measure(ctx, w, addr, lib); err != nil {
			return fmt.Errorf("workload %s: %w", w.Name, err)
		}
	}
	return nil
}

var floors = []string{modeDiscard, modeWalk, modeAggregate}

func (b *bench) workload(ctx context.Context, w workload, addr, lib string) error {
	c, t, size, err := fill(ctx, addr, w)
	if err != nil {
		return err
	}
	if b.sweep {
		return b.sweepSettings(ctx, w, c, t, lib)
	}
	all, err := b.recorded(w)
	if err != nil {
		return err
	}
	fmt.Printf("workload %s: %d spans of %d bytes in %d records, %d paths by region, %d failures, %.0f spans a second of event time\n",
		w.Name, w.Spans, size/int64(w.Spans), sum(c.Ends), len(t), c.Failed, w.Rate)
	for i := range b.runs {
		for _, mode := range floors { // in turn with ingest, so that all see the same machine
			r, err := call(ctx, mode, c)
			if err != nil {
				return err
			}
			if err := b.keep(w, all, mode, r); err != nil {
				return err
			}
		}
		r, err := b.ingest(ctx, c, t, lib, i)
		if err != nil {
			return err
		}
		if err := b.keep(w, all, roleIngest, r); err != nil {
			return err
		}
		if b.collector == "" {
			continue
		}
		for _, v := range variants {
			r, err := b.collect(ctx, c, t, lib, v, settings[0], i)
			if err != nil {
				return err
			}
			if err := b.keep(w, all, v.name, r); err != nil {
				return err
			}
		}
	}
	b.report(w, all)
	b.reportCollector(w, all)
	return nil
}

// ingest is one run of Tocsin into an empty database.
func (b *bench) ingest(ctx context.Context, c config, t truth, lib string, i int) (r result, err error) {
	dir, err := os.MkdirTemp("", "benchingest-clickhouse-")
	if err != nil {
		return r, fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	engine, err := chlocal.Start(ctx, chlocal.Options{Binary: b.engine, LibPath: lib, DataDir: dir, Logger: logger})
	if err != nil {
		return r, fmt.Errorf("start ClickHouse: %w", err)
	}
	defer engine.Stop(context.WithoutCancel(ctx)) //nolint:errcheck // its data is thrown away
	c.ClickHouse, c.Database, c.Group, c.Profile = engine.Addr(), "tocsin", fmt.Sprint("bench-", c.Topic, "-", i), b.profile
	db, err := openDB(c, logger, prometheus.NewRegistry())
	if err != nil {
		return r, err
	}
	err = db.Migrate(ctx)
	db.Close()
	if err != nil {
		return r, fmt.Errorf("make tables: %w", err)
	}
	before, _ := processCPU(engine.Pid())
	if r, err = call(ctx, roleIngest, c); err != nil {
		return r, err
	}
	if err := settled(ctx, engine.URL()); err != nil {
		return r, err
	}
	after, peak := processCPU(engine.Pid())
	r.DatabaseCPU, r.DatabasePeak = after-before, peak
	if err := compare(ctx, engine.URL(), t); err != nil {
		return r, err
	}
	if err := compareLetters(ctx, engine.URL(), c.Letters); err != nil {
		return r, err
	}
	rows, err := query(ctx, engine.URL(), "SELECT toString(countIf(marker = 0)), toString(countIf(marker = 1)) FROM cells")
	if err != nil {
		return r, err
	}
	r.Rows, _ = strconv.ParseInt(rows[0][0], 10, 64)
	r.Inserts, _ = strconv.ParseInt(rows[0][1], 10, 64)
	if b.collector == "" {
		return r, nil
	}
	if _, err := query(ctx, engine.URL(), gatherCells); err != nil {
		return r, fmt.Errorf("gather what is judged: %w", err)
	}
	r.Queries, err = costs(ctx, engine.URL(), tocsinQueries)
	return r, err
}

// compare holds what is stored to the truth, path by path.
func compare(ctx context.Context, engine string, t truth) error {
	type path struct{ service, route, access, region string }
	want, got := map[path]counts{}, map[path]counts{}
	for k, n := range t {
		p := path{k.Service, k.Route, "write", k.Region}
		if k.Method == http.MethodGet {
			p.access = "read"
		}
		want[p] = counts{want[p].Total + n.Total, want[p].Failed + n.Failed}
	}
	rows, err := query(ctx, engine, `SELECT k.service, k.operation, toString(k.access), k.attributes['region'],
		toString(sum(c.successes + c.failures + c.rejected + c.throttled)), toString(sum(c.failures))
		FROM cells AS c ANY LEFT JOIN keys AS k ON c.key = k.id WHERE c.marker = 0 GROUP BY 1, 2, 3, 4`)
	if err != nil {
		return err
	}
	for _, r := range rows {
		total, _ := strconv.ParseInt(r[4], 10, 64)
		failed, _ := strconv.ParseInt(r[5], 10, 64)
		got[path{r[0], r[1], r[2], r[3]}] = counts{total, failed}
	}
	wrong := 0
	for p := range want {
		if got[p] != want[p] {
			wrong++
		}
	}
	if wrong > 0 || len(got) != len(want) {
		return fmt.Errorf("of %d paths %d are counted wrong, %d are stored", len(want), wrong, len(got))
	}
	return nil
}

func (b *bench) report(w workload, all map[string][]result) {
	n := float64(w.Spans)
	micros := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) / n }
	cpu := func(r result) float64 { return micros(r.CPU) }
	floor := median(all[modeAggregate], cpu)
	fmt.Printf("  %-14s %9s %9s %8s %9s %10s %8s %8s %6s\n", "median of "+strconv.Itoa(len(all[roleIngest])), "CPU µs", "database", "ratio", "wall µs", "allocs", "peak MB", "db MB", "load")
	for _, mode := range append(floors, roleIngest, roleCollector, roleCollectorNull) {
		rs := all[mode]
		if len(rs) == 0 {
			continue
		}
		fmt.Printf("  %-14s %9.3f %9.3f %8.2f %9.3f %10.4f %8.0f %8.0f %6.1f\n", mode, median(rs, cpu), median(rs, func(r result) float64 { return micros(r.DatabaseCPU) }),
			median(rs, cpu)/floor, median(rs, func(r result) float64 { return micros(r.Wall) }), median(rs, func(r result) float64 { return float64(r.Allocs) / n }),
			median(rs, func(r result) float64 { return float64(r.PeakBytes) / 1e6 }), median(rs, func(r result) float64 { return float64(r.DatabasePeak) / 1e6 }),
			median(rs, func(r result) float64 { return r.LoadAverage }))
	}
	rs := all[roleIngest]
	fmt.Printf("  ratio is to %s; %.1f spans a row, %.0f inserts; totals equal the truth in each run\n", modeAggregate,
		n/median(rs, func(r result) float64 { return float64(r.Rows) }), median(rs, func(r result) float64 { return float64(r.Inserts) }))
}
