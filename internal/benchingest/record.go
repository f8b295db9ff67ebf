package main

import (
	"time"

	"github.com/tocsin-project/tocsin/internal/measured"
)

// line is one of the file of records.
type line struct {
	Workload string
	Spans    int
	Reader   string
	Result   result
}

// recorded reads the earlier runs of a workload.
func (b *bench) recorded(w workload) (map[string][]result, error) {
	all := map[string][]result{}
	err := measured.Record[line](b.record).Each(func(l line) {
		if l.Workload == w.Name && l.Spans == w.Spans {
			all[l.Reader] = append(all[l.Reader], l.Result)
		}
	})
	return all, err
}

// keep adds a run.
func (b *bench) keep(w workload, all map[string][]result, reader string, r result) error {
	all[reader] = append(all[reader], r)
	return measured.Record[line](b.record).Add(line{w.Name, w.Spans, reader, r})
}

// micros is a duration by span.
func (w workload) micros(d time.Duration) float64 {
	return float64(d) / float64(time.Microsecond) / float64(w.Spans)
}
