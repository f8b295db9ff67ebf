package main

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/tocsin-project/tocsin/internal/chlocal/chlocaltest"
	"github.com/tocsin-project/tocsin/internal/kafkalocal"
	"github.com/tocsin-project/tocsin/internal/kafkalocal/kafkatest"
)

func builtCollector(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../bin/senders/collector")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skip("bin/senders/collector is not there: make senders builds it")
	}
	return path
}

// Every setting is a configuration that the Collector takes.
func TestTheCollectorTakesItsSettings(t *testing.T) {
	path := builtCollector(t)
	for _, s := range settings {
		j, err := s.json(config{Kafka: "127.0.0.1:1", ClickHouse: "127.0.0.1:1"}, "spans", "group", true)
		if err != nil {
			t.Fatal(err)
		}
		file := configFile(t.TempDir(), "collector")
		if err := os.WriteFile(file, j, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), path, "validate", "--config", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", s.name, err, out)
		}
	}
}

// Both Collectors store all spans, and a truth that is another is noticed.
func TestCollectorsAreHeldToTheTruth(t *testing.T) {
	b := bench{collector: builtCollector(t)}
	opts := chlocaltest.Options(t)
	b.engine = opts.Binary
	addr := kafkatest.StartWith(t, kafkalocal.Options{Logger: slog.New(slog.DiscardHandler)}).Addr()
	w := workloads[0]
	w.Spans = 6000
	c, truth, _, err := fill(t.Context(), addr, w)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range variants {
		r, err := b.collect(context.Background(), c, truth, opts.LibPath, v, settings[0], i)
		if err != nil {
			t.Fatal(err)
		}
		if r.CPU <= 0 || r.DatabaseCPU <= 0 || r.PeakBytes <= 0 || r.Wall <= 0 {
			t.Errorf("%s: %+v", v.name, r)
		}
		for _, q := range spanQueries[v.name] {
			if cost := r.Queries[q.Name]; cost.Bytes == 0 || cost.Groups == 0 {
				t.Errorf("%s, failure rates %s: %+v", v.name, q.Name, cost)
			}
		}
	}
	for k, n := range truth {
		truth[k] = counts{n.Total + 1, n.Failed}
		break
	}
	if _, err := b.collect(context.Background(), c, truth, opts.LibPath, variants[0], settings[0], 2); err == nil {
		t.Error("a span too few, and nobody minds")
	}
}

// Medians go over what earlier calls have recorded of the same workload.
func TestRecordedRunsAddUp(t *testing.T) {
	b := bench{record: filepath.Join(t.TempDir(), "runs.jsonl")}
	w, other := workloads[0], workloads[0]
	w.Spans, other.Spans = 100, 200
	for i := range int64(3) {
		if err := b.keep(w, map[string][]result{}, roleIngest, result{CPU: 5, Rows: i, Queries: map[string]cost{byPath: {Bytes: i}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.keep(other, map[string][]result{}, roleIngest, result{Rows: 9}); err != nil {
		t.Fatal(err)
	}
	all, err := b.recorded(w)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.keep(w, all, roleCollector, result{}); err != nil {
		t.Fatal(err)
	}
	var rows []int64
	for _, r := range all[roleIngest] {
		rows = append(rows, r.Rows+100*r.Queries[byPath].Bytes)
	}
	if !reflect.DeepEqual(rows, []int64{0, 101, 202}) || len(all[roleCollector]) != 1 {
		t.Errorf("%v, %d", rows, len(all[roleCollector]))
	}
}
