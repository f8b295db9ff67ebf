package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/detect/timelinetest"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// feeder is an ingest loop of one partition a stream.
type feeder struct {
	store *Store
	ends  map[signal.Stream]int64
}

func newFeeder(db *DB) *feeder { return &feeder{NewStore(db), map[signal.Stream]int64{}} }

func (f *feeder) batch(s signal.Stream, records int) *ingest.Batch {
	from := f.ends[s]
	f.ends[s] += int64(records)
	return &ingest.Batch{Stream: s, Time: start, Range: ingest.Range{Topic: string(s), Start: from, End: f.ends[s]},
		Marker: ingest.Marker{Records: uint64(records), Events: uint64(records), Revision: "test"}}
}

func (f *feeder) insert(t testing.TB, b *ingest.Batch) {
	t.Helper()
	if err := f.store.Insert(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

func (f *feeder) feed(t *testing.T, r timelinetest.Rows) {
	t.Helper()
	for _, s := range signal.Streams {
		n := map[signal.Stream]int{signal.Requests: len(r.Cells), signal.Gauges: len(r.Gauges), signal.Tickets: len(r.Tickets),
			signal.Changes: len(r.Changes), signal.Alerts: len(r.Alerts)}[s]
		if n == 0 {
			continue
		}
		b := f.batch(s, n)
		switch s {
		case signal.Requests:
			for _, c := range r.Cells {
				b.Cells = append(b.Cells, ingest.NewCell(c))
			}
		case signal.Gauges:
			b.Gauges = r.Gauges
		case signal.Tickets:
			b.Tickets = r.Tickets
		case signal.Changes:
			b.Changes = r.Changes
		case signal.Alerts:
			b.Alerts = r.Alerts
		}
		f.insert(t, b)
	}
}

func (f *feeder) progress(t *testing.T, watermark, clock time.Time) {
	t.Helper()
	for _, s := range signal.Streams {
		b := f.batch(s, 0)
		b.Marker = ingest.Marker{Heartbeat: true, Watermark: watermark, Clock: clock}
		f.insert(t, b)
	}
}

func TestContract(t *testing.T) {
	db := migrated(t)
	timelinetest.Run(t, func(t *testing.T) timelinetest.Subject {
		truncate(t, db)
		f := newFeeder(db)
		log := NewIncidentLog(db)
		return timelinetest.Subject{
			Timeline: func() detect.Timeline { return NewTimeline(db) },
			Feed:     f.feed,
			Progress: f.progress,
			Events: func(t *testing.T, after uint64) []incident.Event {
				events, _, _, err := log.After(t.Context(), respond.Cursor{Tick: after}, 1000)
				if err != nil {
					t.Fatal(err)
				}
				return events
			},
		}
	})
}

// Detectors that claim one tick at the same moment: one record stays, and whoever is not superseded works on that one.
func TestClaimersOfOneTickAgree(t *testing.T) {
	db := migrated(t)
	const claimers, ticks = 4, 5
	lines := make([]*Timeline, claimers)
	epochs := make([]uint64, claimers)
	for i := range lines {
		lines[i] = NewTimeline(db)
		var err error
		if epochs[i], err = lines[i].Lead(t.Context(), "test"); err != nil {
			t.Fatal(err)
		}
	}
	for n := uint64(1); n <= ticks; n++ {
		claimed := make([]detect.Inputs, claimers)
		errs := make([]error, claimers)
		var group sync.WaitGroup
		for i, line := range lines {
			group.Go(func() {
				claimed[i], errs[i] = line.Claim(context.Background(), detect.Tick{Number: n, Epoch: epochs[i], To: at(int(n)*100 + i)})
			})
		}
		group.Wait()
		for i, err := range errs[:claimers-1] {
			if !errors.Is(err, detect.ErrSuperseded) {
				t.Errorf("tick %d, claimer %d of %d: %v, want ErrSuperseded", n, i, claimers, err)
			}
		}
		if errs[claimers-1] != nil {
			t.Fatal(errs[claimers-1])
		}
		if got := one[int64](t, db, "SELECT toUnixTimestamp64Milli(any(`to`)) FROM ticks WHERE tick = "+fmt.Sprint(n)); got != claimed[claimers-1].Tick.To.UnixMilli() {
			t.Errorf("tick %d is stored to %v, and the leader works on %v", n, fromMillis(got), claimed[claimers-1].Tick.To)
		}
	}
	if rows := one[uint64](t, db, "SELECT count() FROM ticks"); rows != ticks {
		t.Errorf("%d rows for %d ticks", rows, ticks)
	}
}

// States of the detector are large. The newest have to be there for a restart, one an hour for replays of the past.
func TestOldCheckpointsAreThinnedOut(t *testing.T) {
	db := fresh(t)
	line := NewTimeline(db)
	epoch, err := line.Lead(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []uint64{30, 60, 360, 365, 690, 720} {
		tick := detect.Tick{Number: n, Epoch: epoch, To: at(int(n)), Clock: at(int(n))}
		if err := line.Commit(t.Context(), tick, detect.Outputs{Checkpoint: []byte("state")}); err != nil {
			t.Fatal(err)
		}
	}
	// Nobody waits for what is deleted.
	const want = "[360,365,690,720]"
	for deadline := time.Now().Add(20 * time.Second); ; {
		left := one[string](t, db, `SELECT toString(arraySort(groupArray(tick))) FROM checkpoints`)
		if left == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("checkpoints of ticks %s are left, want %s: the last hour's, and one an hour", left, want)
		}
	}
}
