package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// reportCollector sets the Collector beside Tocsin. Ratios are of medians.
func (b *bench) reportCollector(w workload, all map[string][]result) {
	both := func(r result) float64 { return w.micros(r.CPU + r.DatabaseCPU) }
	own := median(all[roleIngest], both)
	if len(all[roleCollector]) == 0 {
		return
	}
	fmt.Printf("  process and database, µs of CPU a span (smallest to largest): %s %s\n", roleIngest, spread(all[roleIngest], both))
	for _, v := range variants {
		rs := all[v.name]
		fmt.Printf("  %s %s: %.1f times Tocsin's\n", v.name, spread(rs, both), median(rs, both)/own)
	}
	fmt.Println("  failure rates of the last hour afterwards, read by the database:")
	for _, reader := range []string{roleIngest, roleCollector, roleCollectorNull} {
		qs := tocsinQueries
		if reader != roleIngest {
			qs = spanQueries[reader]
		}
		for _, q := range qs {
			bytes := func(r result) float64 { return float64(r.Queries[q.Name].Bytes) }
			equal := q.Name
			if equal == byName {
				equal = byPath
			}
			fmt.Printf("  %-14s %-19s %9.3f MB %9.0f rows %7.1f ms  %7.1f times Tocsin's bytes\n", reader, q.Name, median(all[reader], bytes)/1e6,
				median(all[reader], func(r result) float64 { return float64(r.Queries[q.Name].Rows) }),
				median(all[reader], func(r result) float64 { return float64(r.Queries[q.Name].Took) / float64(time.Millisecond) }),
				median(all[reader], bytes)/median(all[roleIngest], func(r result) float64 { return float64(r.Queries[equal].Bytes) }))
		}
	}
}

func spread(rs []result, value func(result) float64) string {
	var vs []float64
	for _, r := range rs {
		vs = append(vs, value(r))
	}
	return fmt.Sprintf("%.2f (%.2f to %.2f)", median(rs, value), slices.Min(vs), slices.Max(vs))
}

// sweepSettings tries each setting once, to see that the first one does the Collector justice.
func (b *bench) sweepSettings(ctx context.Context, w workload, c config, t truth, lib string) error {
	fmt.Printf("workload %s: %d spans\n  %-38s %-14s %9s %9s %9s %8s %8s %6s\n", w.Name, w.Spans, "setting", "", "CPU µs", "database", "wall µs", "peak MB", "db MB", "load")
	for _, s := range settings {
		for _, v := range variants {
			r, err := b.collect(ctx, c, t, lib, v, s, 0)
			if err != nil {
				return fmt.Errorf("setting %s: %w", s.name, err)
			}
			fmt.Printf("  %-38s %-14s %9.3f %9.3f %9.3f %8.0f %8.0f %6.1f\n", s.name, v.name, w.micros(r.CPU), w.micros(r.DatabaseCPU), w.micros(r.Wall),
				float64(r.PeakBytes)/1e6, float64(r.DatabasePeak)/1e6, r.LoadAverage)
		}
	}
	return nil
}
