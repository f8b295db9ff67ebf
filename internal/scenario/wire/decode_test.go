package wire_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/ingest/decode"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/scenario/wire"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// TestIngestReadsTheSameRequests sends requests through every encoding and back through the decoder that reads it.
func TestIngestReadsTheSameRequests(t *testing.T) {
	s := shortDemo(t)
	for _, encoding := range []wire.Encoding{wire.OTLPProto, wire.OTLPJSON, wire.Native} {
		t.Run(string(encoding), func(t *testing.T) {
			p, err := pipeline.Parse("p.yaml", []byte("{name: p, topic: t, stream: requests, decoder: "+string(encoding)+"}"))
			if err != nil {
				t.Fatal(err)
			}
			entry, ok := decode.ByName(p.Decoder)
			if !ok {
				t.Fatalf("no decoder %s", p.Decoder)
			}
			decoder, enc := entry.New(p), wire.NewEncoder(s, wire.Options{Encoding: encoding})
			want, got := map[string]signal.Request{}, map[string]signal.Request{}
			for slice := range s.Generate(1) {
				// From before the incident to well into it.
				if slice.From.Before(s.Start.Add(13*time.Minute)) || !slice.From.Before(s.Start.Add(15*time.Minute)) {
					continue
				}
				for _, r := range slice.Requests {
					want[r.TraceID] = r
				}
				slice.Gauges, slice.Tickets, slice.Changes = nil, nil, nil
				records, err := enc.Encode(slice)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range records {
					decoder.Decode(ingest.Record{Time: r.Time, Value: r.Value}, func(e signal.Event) {
						got[e.(*signal.Request).TraceID] = *e.(*signal.Request)
					}, func(d ingest.DeadLetter) { t.Fatalf("%s: %s", d.Reason, d.Detail) })
				}
			}
			if len(want) < 5000 || len(got) != len(want) {
				t.Fatalf("%d of %d requests come out", len(got), len(want))
			}
			for id, w := range want {
				g := got[id]
				if d := g.Latency - w.Latency; d.Abs() <= 1 {
					g.Latency = w.Latency // milliseconds with a fraction may lose a nanosecond
				}
				if diff := cmp.Diff(w, g); diff != "" {
					t.Fatalf("a request changes (-sent +read):\n%s", diff)
				}
			}
		})
	}
}
