package chaos

import (
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/ingest/decode"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// What the campaign takes for the truth is what the decoders make of its records when nothing goes wrong.
func TestTruthIsWhatIsDecoded(t *testing.T) {
	g := &generator{seed: 7, perRecord: 50}
	now := time.Now().UnixMilli()
	for _, stream := range streams {
		p, err := pipeline.Parse(stream+".yaml", []byte(pipelineTexts[stream]))
		if err != nil {
			t.Fatal(err)
		}
		source, err := decode.Source(p)
		if err != nil {
			t.Fatal(err)
		}
		w, reader := newWriter(g), source.Reader()
		kinds := map[kind]int{}
		for id := range uint64(3000) {
			e := entry{id, now}
			kinds[e.kind()]++
			value, at := w.make(stream, e)
			got, want := newTally(), newTally()
			letters, events := 0, 0
			reader.Read(ingest.Record{Offset: 1, Time: at, Value: value}, time.Now(), func(ev signal.Event) {
				events++
				switch ev := ev.(type) {
				case *signal.Request:
					got.add(cell{bucketOf(ev.Time.UnixNano()), pathOf(t, ev)}, ev.Outcome, ev.Count)
				case *signal.Gauge:
					got.values[uint64(ev.Value)]++
				case *signal.Ticket:
					got.ids[ev.ID]++
				}
			}, func(ingest.DeadLetter) { letters++ })
			want.count(g, stream, e)
			rows, rejected := g.dead(stream, e)
			if letters != rows || reader.Rejected() != rejected || events != g.events(stream, e) {
				t.Fatalf("%s %d of kind %d: %d dead letters of %d rejections and %d events, want %d, %d, %d", stream, id, e.kind(), letters,
					reader.Rejected(), events, rows, rejected, g.events(stream, e))
			}
			if d := want.differences(got); len(d) > 0 {
				t.Fatalf("%s %d of kind %d: %v", stream, id, e.kind(), d)
			}
		}
		if len(kinds) != len(odd)+1 {
			t.Errorf("%d kinds of records were made, want %d", len(kinds), len(odd)+1)
		}
	}
}

func pathOf(t *testing.T, r *signal.Request) int {
	t.Helper()
	for i, p := range paths {
		if p.service == r.Path.Service && p.route == r.Path.Operation && p.access() == r.Path.Access.String() && p.region == r.Attributes.Get("region") {
			return i
		}
	}
	t.Fatalf("no path %+v", r)
	return 0
}
