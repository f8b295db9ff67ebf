package clickhouse

import (
	"fmt"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// BenchmarkTick is one tick of the detector with 2,000 keys: progress, claim, commit.
func BenchmarkTick(b *testing.B) {
	db := migrated(b)
	f := newFeeder(db)
	line := NewTimeline(db)
	epoch, err := line.Lead(b.Context(), "bench")
	if err != nil {
		b.Fatal(err)
	}
	var progress, claim, commit time.Duration
	n := uint64(0)
	for b.Loop() {
		b.StopTimer()
		n++
		batch := f.batch(signal.Requests, 1000)
		for i := range 2000 {
			c := signal.Cell{Bucket: at(10 * int(n)), Key: signal.Key{Path: pathOf(fmt.Sprint("s", i))}, Outcomes: [signal.NumOutcomes]uint64{9, 1}}
			c.Latency.Add(20*time.Millisecond, 10)
			batch.Cells = append(batch.Cells, ingest.NewCell(c))
		}
		f.insert(b, batch)
		b.StartTimer()
		t0 := time.Now()
		p, err := line.Progress(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		t1 := time.Now()
		in, err := line.Claim(b.Context(), detect.Tick{Number: n, Epoch: epoch, To: at(10 * int(n)), Marks: p.Marks})
		if err != nil || len(in.Cells) != 2000 {
			b.Fatal(err, len(in.Cells))
		}
		t2 := time.Now()
		if err := line.Commit(b.Context(), in.Tick, detect.Outputs{Transitions: []incident.Transition{{At: at(1)}}}); err != nil {
			b.Fatal(err)
		}
		progress, claim, commit = progress+t1.Sub(t0), claim+t2.Sub(t1), commit+time.Since(t2)
	}
	for name, d := range map[string]time.Duration{"progress-ms": progress, "claim-ms": claim, "commit-ms": commit} {
		b.ReportMetric(float64(d.Microseconds())/1000/float64(n), name)
	}
}

// BenchmarkInsert is one batch of 50,000 cells.
func BenchmarkInsert(b *testing.B) {
	db := migrated(b)
	store := NewStore(db)
	batch := requests(0, 0, 50_000)
	for i := range batch.Cells {
		c := batch.Cells[i].Signal()
		c.Latency.Add(time.Duration(i%100)*time.Millisecond, 10)
		batch.Cells[i] = ingest.NewCell(c)
	}
	n := int64(0)
	for b.Loop() {
		batch.Range.Start, batch.Range.End = n, n+1
		n++
		if err := store.Insert(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)*50_000/b.Elapsed().Seconds(), "rows/s")
}
