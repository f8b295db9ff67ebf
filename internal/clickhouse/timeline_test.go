package clickhouse

import (
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
			b.Cells = r.Cells
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
