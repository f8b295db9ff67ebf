package main

import (
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/ingest/decode"
	"github.com/tocsin-project/tocsin/internal/measured"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// BenchmarkSpan is one span of the dense workloads, decoded: by the counting floor, and as Tocsin does it.
func BenchmarkSpan(b *testing.B) {
	for _, w := range []workload{workloads[0], workloads[2]} {
		w.Spans = 300_000
		var records [][]byte
		for g := newWorld(w, 1_800_000_000e9); g.more(); {
			records = append(records, g.message())
		}
		b.Run(w.Name+"/floor", func(b *testing.B) {
			a := aggregate{groups: map[string]*group{}}
			defer cpuPerSpan(b)()
			for i := 0; i < b.N; i += w.Message {
				a.record(records[i/w.Message%len(records)])
			}
		})
		b.Run(w.Name+"/tocsin", func(b *testing.B) {
			p, err := pipeline.Parse("p.yaml", []byte("name: p\ntopic: t\nstream: requests\ndecoder: otlp_proto\nattributes: {region: [cloud.region]}\n"))
			if err != nil {
				b.Fatal(err)
			}
			e, _ := decode.ByName("otlp_proto")
			d := e.New(p).(ingest.ShapedDecoder)
			n := 0
			defer cpuPerSpan(b)()
			for i := 0; i < b.N; i += w.Message {
				d.DecodeShaped(ingest.Record{Value: records[i/w.Message%len(records)]}, func(list []ingest.Counted) { n += len(list) },
					func(signal.Event) { n++ }, func(l ingest.DeadLetter) { b.Fatal(l) })
			}
		})
	}
}

// BenchmarkPoison is one span of a partition that has a broken record in a hundred, and of one that has none.
func BenchmarkPoison(b *testing.B) {
	p, err := pipeline.Parse("p.yaml", []byte("name: p\ntopic: t\nstream: requests\ndecoder: otlp_proto\nattributes: {region: [cloud.region]}\n"))
	if err != nil {
		b.Fatal(err)
	}
	src, err := decode.Source(p)
	if err != nil {
		b.Fatal(err)
	}
	at := time.Unix(1_800_000_000, 0)
	w := workloads[0]
	w.Spans = 100 * w.Message
	var whole [][]byte
	for g := newWorld(w, at.UnixNano()); g.more(); {
		whole = append(whole, g.message())
	}
	poisoned := append([][]byte(nil), whole...)
	poisoned[50] = poisoned[50][:len(poisoned[50])-7]
	for _, c := range []struct {
		name    string
		records [][]byte
		letters int
	}{{"none", whole, 0}, {"one in a hundred", poisoned, 1}} {
		b.Run(c.name, func(b *testing.B) {
			r, letters, rounds := src.Reader(), 0, 0
			defer cpuPerSpan(b)()
			for i := 0; i < b.N; i += w.Spans {
				rounds++
				for _, v := range c.records {
					r.ReadShaped(ingest.Record{Time: at.Add(time.Minute), Value: v}, at.Add(time.Minute), func([]ingest.Counted) {},
						func(signal.Event) {}, func(ingest.DeadLetter) { letters++ })
				}
			}
			if letters != c.letters*rounds {
				b.Fatalf("%d dead letters in %d rounds", letters, rounds)
			}
		})
	}
}

// cpuPerSpan reports processor time, which says more than the clock's on a machine that others use.
func cpuPerSpan(b *testing.B) func() {
	began := measured.SelfCPU()
	return func() { b.ReportMetric(float64(measured.SelfCPU()-began)/float64(b.N), "cpu-ns/op") }
}
