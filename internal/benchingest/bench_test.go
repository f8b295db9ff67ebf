package main

import (
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/ingest/decode"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// BenchmarkSpan is one span of the live workload, decoded: by the counting floor, and as Tocsin does it.
func BenchmarkSpan(b *testing.B) {
	w := workloads[0]
	w.Spans = 30_000
	var records [][]byte
	for g := newWorld(w, 1_800_000_000e9); g.more(); {
		records = append(records, g.message())
	}
	b.Run("floor", func(b *testing.B) {
		a := aggregate{groups: map[string]*group{}}
		defer cpuPerSpan(b)()
		for i := 0; i < b.N; i += w.Message {
			a.record(records[i/w.Message%len(records)])
		}
	})
	b.Run("tocsin", func(b *testing.B) {
		p, err := pipeline.Parse("p.yaml", []byte("name: p\ntopic: t\nstream: requests\ndecoder: otlp_proto\nattributes: {region: [cloud.region]}\n"))
		if err != nil {
			b.Fatal(err)
		}
		e, _ := decode.ByName("otlp_proto")
		d := e.New(p).(ingest.ShapedDecoder)
		n := 0
		defer cpuPerSpan(b)()
		for i := 0; i < b.N; i += w.Message {
			d.DecodeShaped(ingest.Record{Value: records[i/w.Message%len(records)]}, func(*ingest.Shape, int64, time.Duration) { n++ },
				func(signal.Event) { n++ }, func(l ingest.DeadLetter) { b.Fatal(l) })
		}
	})
}

// cpuPerSpan reports processor time, which says more than the clock's on a machine that others use.
func cpuPerSpan(b *testing.B) func() {
	began := selfCPU()
	return func() { b.ReportMetric(float64(selfCPU()-began)/float64(b.N), "cpu-ns/op") }
}
