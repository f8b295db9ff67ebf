package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

func pathOf(service string) signal.Path { return signal.Path{Service: service, Operation: "x"} }

// requests makes a batch of n cells with ten requests each, and two dead letters.
func requests(start, end int64, n int) *ingest.Batch {
	b := &ingest.Batch{Stream: signal.Requests, Time: at(0), Range: ingest.Range{Topic: "telemetry", Incarnation: 1, Partition: 3, Start: start, End: end},
		Marker: ingest.Marker{Records: uint64(end - start), Events: uint64(10 * n), Rejected: 2, Late: 1, MaxEventTime: at(5), Watermark: at(4), RecordTime: at(6),
			Revision: "r1", Clock: at(7)}}
	for i := range n {
		b.Cells = append(b.Cells, ingest.NewCell(signal.Cell{Bucket: at(0), Key: signal.Key{Path: pathOf(fmt.Sprint("s", i))}, Outcomes: [signal.NumOutcomes]uint64{9, 1}}))
	}
	for i := range int64(2) {
		b.DeadLetters = append(b.DeadLetters, ingest.DeadLetter{Offset: start + i, Time: at(0), Reason: "syntax", Detail: "no JSON", Payload: []byte("{\x00"), Size: 2})
	}
	return b
}

// totals is what counting everything that is stored gives.
func totals(t *testing.T, db *DB) string {
	t.Helper()
	return one[string](t, db, `SELECT toString((SELECT (sum(successes), sum(failures), countIf(marker = 1)) FROM cells)) || ' ' ||
		toString((SELECT count() FROM dead_letters)) || ' ' || toString((SELECT uniqExact(id) FROM keys))`)
}

// Dead letters that are left of a range whose block never came are not stored again with another range.
func TestDeadLettersOfAForgottenRange(t *testing.T) {
	db := migrated(t)
	forgotten, again := requests(0, 100, 1), requests(0, 3, 1)
	if err := NewStore(db).storeLetters(t.Context(), forgotten); err != nil {
		t.Fatal(err)
	}
	again.Again = true
	again.DeadLetters = append(again.DeadLetters, ingest.DeadLetter{Offset: 2, Time: at(0), Reason: "syntax"})
	for range 2 {
		if err := NewStore(db).Insert(t.Context(), again); err != nil {
			t.Fatal(err)
		}
	}
	got, err := NewStore(db).Letters(t.Context(), signal.Requests, ingest.Range{Topic: "telemetry", Incarnation: 1, Partition: 3, Start: 1, End: 1 << 62})
	if err != nil || fmt.Sprint(got) != "[1 2]" {
		t.Errorf("dead letters from 1 on: %v, %v", got, err)
	}
	if got := totals(t, db); got != "(9,1,1) 3 1" {
		t.Errorf("stored %s", got)
	}
}

func TestBatchCountsOnce(t *testing.T) {
	db := migrated(t)
	for range 3 { // a new store each time, as after a restart
		if err := NewStore(db).Insert(t.Context(), requests(0, 100, 50)); err != nil {
			t.Fatal(err)
		}
	}
	if got := totals(t, db); got != "(450,50,1) 2 50" {
		t.Errorf("after three inserts of one batch: %s", got)
	}
	if err := NewStore(db).Insert(t.Context(), requests(100, 200, 50)); err != nil {
		t.Fatal(err)
	}
	if got := totals(t, db); got != "(900,100,2) 4 50" {
		t.Errorf("after a second batch with the same rows: %s", got)
	}
	if got := one[int64](t, db, "SELECT missing_offsets FROM ingest_progress"); got != 0 {
		t.Errorf("%d offsets are missing in ingest_progress", got)
	}
}

func TestWritersOfOneBatchCountOnce(t *testing.T) {
	db := migrated(t)
	const writers, batches = 4, 10
	var group sync.WaitGroup
	errs := make([]error, writers)
	for w := range writers {
		store := NewStore(db)
		group.Go(func() {
			for n := range int64(batches) {
				errs[w] = errors.Join(errs[w], store.Insert(context.Background(), requests(n*100, n*100+100, 20)))
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if got, want := totals(t, db), fmt.Sprintf("(%d,%d,%d) %d 20", batches*180, batches*20, batches, 2*batches); got != want {
		t.Errorf("stored %s, want %s", got, want)
	}
}

// A hundred idle partitions say so every five seconds. That must not be twenty inserts a second.
func TestHeartbeatsShareInserts(t *testing.T) {
	db := migrated(t)
	store := NewStore(db)
	const partitions = 100
	beat := func(p int) error {
		return store.Insert(t.Context(), &ingest.Batch{Stream: signal.Gauges, Time: at(0), Range: ingest.Range{Topic: "g", Partition: int32(p)},
			Marker: ingest.Marker{Heartbeat: true, Watermark: at(p), Clock: at(p)}})
	}
	for p := range partitions { // that they are known is stored beforehand
		if err := store.known(t.Context(), registered{signal.Gauges, "g", 0, int32(p)}); err != nil {
			t.Fatal(err)
		}
	}
	reg := prometheus.NewRegistry()
	db.metrics = NewMetrics(reg)
	var group errgroup.Group
	for p := range partitions {
		group.Go(func() error { return beat(p) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := one[string](t, db, "SELECT toString((uniqExact(partition), sum(toUnixTimestamp(watermark)))) FROM heartbeats FINAL"); got != fmt.Sprintf("(%d,%d)", partitions, partitions*start.Unix()+partitions*(partitions-1)/2) {
		t.Errorf("stored %s", got)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	inserts := 0.0
	for _, f := range families {
		if f.GetName() == "tocsin_clickhouse_inserts_total" {
			for _, m := range f.GetMetric() {
				inserts += m.GetCounter().GetValue()
			}
		}
	}
	if inserts == 0 || inserts > partitions/4 {
		t.Errorf("%v inserts for %d heartbeats", inserts, partitions)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := store.beat(gone, &ingest.Batch{Stream: signal.Gauges, Marker: ingest.Marker{Heartbeat: true}}); err == nil {
		t.Log("it was stored before anybody looked") // either is right
	}
}

// A table that somebody has changed refuses inserts as something that does not pass, whichever way they take; mended, it takes the
// same batches without a restart.
func TestATableThatWasChanged(t *testing.T) {
	for _, protocol := range []string{"http", "driver"} {
		db := migrated(t)
		if store := NewStore(db); store.Insert(t.Context(), requests(0, 100, 3)) != nil {
			t.Fatal("the first batch is not stored")
		}
		if protocol == "driver" {
			db.cfg.Protocol = "native" // cells go the way of the other streams; the connection stays
		}
		store := NewStore(db)
		for i, change := range [][2]string{
			{"RENAME COLUMN retries TO tries", "RENAME COLUMN tries TO retries"},
			{"DROP COLUMN latency", "ADD COLUMN latency Array(UInt64) AFTER retries"},
		} {
			alter := func(what string) {
				t.Helper()
				for _, q := range []string{"ALTER TABLE cells DELETE WHERE 1 SETTINGS mutations_sync = 2", "ALTER TABLE cells " + what + " SETTINGS alter_sync = 2, mutations_sync = 2"} {
					if err := db.exec(t.Context(), "alter", q); err != nil {
						t.Fatal(err)
					}
				}
			}
			b := requests(int64(100*(i+1)), int64(100*(i+2)), 3)
			alter(change[0])
			for range 2 {
				err := store.Insert(t.Context(), b)
				if err == nil || Retryable(err) {
					t.Fatalf("%s, %s: %v", protocol, change[0], err)
				}
			}
			alter(change[1])
			if err := store.Insert(t.Context(), b); err != nil {
				t.Errorf("%s, after %s: %v", protocol, change[1], err)
			}
		}
	}
}

func TestOnlyRejectedRecordsStillLeaveAMarker(t *testing.T) {
	db := migrated(t)
	store := NewStore(db)
	b := requests(5, 7, 0)
	if err := store.Insert(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if got := totals(t, db); got != "(0,0,1) 2 0" {
		t.Errorf("stored %s", got)
	}
	if ok, err := store.Stored(t.Context(), b.Stream, b.Range); err != nil || !ok {
		t.Errorf("stored %v, %v; want true", ok, err)
	}
	p, err := NewTimeline(db).Progress(t.Context())
	if err != nil || len(p.Marks) != 1 || p.Marks[0].End != 7 {
		t.Errorf("progress %+v, %v; want the end at 7", p, err)
	}
}

func TestStoredAndPosition(t *testing.T) {
	db := migrated(t)
	store := NewStore(db)
	position := func() ingest.Position {
		t.Helper()
		p, err := store.Position(t.Context(), signal.Requests, "telemetry", 3)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := position(); p.Found {
		t.Errorf("an empty ledger gives %+v", p)
	}
	b := requests(10, 20, 5)
	if ok, err := store.Stored(t.Context(), b.Stream, b.Range); err != nil || ok {
		t.Errorf("before the insert: stored %v, %v", ok, err)
	}
	if err := store.Insert(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	other := b.Range
	other.Start--
	for r, want := range map[ingest.Range]bool{b.Range: true, other: false} {
		if ok, err := store.Stored(t.Context(), b.Stream, r); err != nil || ok != want {
			t.Errorf("%+v: stored %v, %v; want %v", r, ok, err, want)
		}
	}
	want := ingest.Position{Incarnation: 1, End: 20, RecordTime: at(6), Watermark: at(4), Found: true}
	if d := cmp.Diff(want, position()); d != "" {
		t.Errorf("position (-want +got):\n%s", d)
	}
	beat := &ingest.Batch{Stream: signal.Requests, Range: ingest.Range{Topic: "telemetry", Incarnation: 1, Partition: 3, Start: 20, End: 20},
		Marker: ingest.Marker{Heartbeat: true, Watermark: at(30), RecordTime: at(6), Clock: at(40)}}
	if err := store.Insert(t.Context(), beat); err != nil {
		t.Fatal(err)
	}
	want.Watermark = at(30)
	if d := cmp.Diff(want, position()); d != "" {
		t.Errorf("position after a heartbeat (-want +got):\n%s", d)
	}
	anew := requests(0, 4, 5)
	anew.Range.Incarnation = 2
	if err := store.Insert(t.Context(), anew); err != nil {
		t.Fatal(err)
	}
	want = ingest.Position{Incarnation: 2, End: 4, RecordTime: at(6), Watermark: at(4), Found: true}
	if d := cmp.Diff(want, position()); d != "" {
		t.Errorf("position in a new life (-want +got):\n%s", d)
	}
}

func TestDamagedBatchIsNotStored(t *testing.T) {
	db := migrated(t)
	store := NewStore(db)
	b := requests(0, 10, 5)
	if err := store.Insert(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := db.conn.Exec(t.Context(), "DELETE FROM cells WHERE marker = 0 AND key = "+fmt.Sprint(b.Cells[0].Key().ID)+" SETTINGS mutations_sync = 1"); err != nil {
		t.Fatal(err)
	}
	if ok, err := store.Stored(t.Context(), b.Stream, b.Range); err != nil || ok {
		t.Errorf("stored %v, %v; want false: a row is missing", ok, err)
	}
	p, err := NewTimeline(db).Progress(t.Context())
	if err != nil || len(p.Marks) != 1 || p.Marks[0].End != 0 {
		t.Errorf("progress %+v, %v; want nothing to count", p, err)
	}
}

func TestProgressStopsAtAGap(t *testing.T) {
	db := migrated(t)
	store, line := NewStore(db), NewTimeline(db)
	end := func() detect.Mark {
		t.Helper()
		p, err := line.Progress(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return p.Marks[0]
	}
	insert := func(from, to int64, watermark time.Time) {
		t.Helper()
		b := requests(from, to, 3)
		b.Marker.Watermark = watermark
		if err := store.Insert(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	insert(1000, 1010, at(1)) // a partition begins where its first batch does
	insert(1020, 1030, at(3))
	if m := end(); m.End != 1010 || !m.Watermark.Equal(at(1)) {
		t.Errorf("mark %+v before a gap, want 1010 at %v", m, at(1))
	}
	insert(1010, 1020, at(2))
	if m := end(); m.End != 1030 || !m.Watermark.Equal(at(3)) {
		t.Errorf("mark %+v after the gap closed, want 1030 at %v", m, at(3))
	}
}

func TestEndedLifeHoldsNobodyUp(t *testing.T) {
	db := migrated(t)
	store := NewStore(db)
	old, anew := requests(0, 10, 3), requests(0, 5, 3)
	anew.Range.Incarnation, anew.Marker.Watermark = 2, at(100)
	for _, b := range []*ingest.Batch{old, anew} {
		if err := store.Insert(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	p, err := NewTimeline(db).Progress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Marks) != 2 || p.Marks[0].End != 10 || p.Marks[1].End != 5 || !p.Marks[0].Watermark.Equal(at(100)) {
		t.Errorf("marks %+v, want both lives, the old one not behind the new", p.Marks)
	}
}

func TestLargestBatchIsOneBlock(t *testing.T) {
	db := migrated(t)
	gauges := func(start int64, rows int) *ingest.Batch {
		b := requests(start, start+10, 0)
		b.Stream, b.DeadLetters, b.Gauges = signal.Gauges, nil, make([]signal.Gauge, rows)
		return b
	}
	if err := NewStore(db).Insert(t.Context(), gauges(0, blockRowsMax-1)); err != nil {
		t.Fatal(err)
	}
	if parts := one[uint64](t, db, "SELECT uniqExact(_part) FROM gauges"); parts != 1 {
		t.Errorf("%d parts, want 1", parts)
	}
	err := NewStore(db).Insert(t.Context(), gauges(10, blockRowsMax))
	var e *Error
	if !errors.As(err, &e) || e.Reason != ReasonTooLarge || e.Retry() {
		t.Errorf("one row more gives %v, want too_large for good", err)
	}
}

func TestTimesOutOfRange(t *testing.T) {
	db := migrated(t)
	b := requests(0, 1, 1)
	b.Time = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	c := b.Cells[0].Signal()
	c.Bucket = time.Date(2107, 3, 4, 0, 0, 0, 0, time.UTC)
	b.Cells[0] = ingest.NewCell(c)
	b.DeadLetters[0].Time = time.Date(1, 1, 1, 1, 0, 0, 0, time.UTC)
	if err := NewStore(db).Insert(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if got := one[string](t, db, "SELECT toString(bucket) FROM cells WHERE marker = 0"); got != "2107-03-04 00:00:00.000" {
		t.Errorf("bucket %s", got)
	}
}

func TestLedgerOutlivesTheRows(t *testing.T) {
	db := fresh(t)
	store, line := NewStore(db), NewTimeline(db)
	b := requests(0, 10, 5)
	if err := store.Insert(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	// The insert was four days ago.
	for _, sql := range []string{
		"ALTER TABLE cells MODIFY COLUMN inserted_at DateTime('UTC') DEFAULT now()",
		"INSERT INTO cells SELECT * REPLACE (1 AS incarnation, now() - INTERVAL 4 DAY AS inserted_at) FROM cells",
		"DELETE FROM cells WHERE inserted_at > now() - INTERVAL 1 DAY SETTINGS mutations_sync = 1",
		"OPTIMIZE TABLE cells FINAL",
	} {
		if err := db.conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	if got := one[string](t, db, "SELECT toString((countIf(marker = 0), countIf(marker = 1))) FROM cells"); got != "(0,1)" {
		t.Fatalf("rows and markers after four days: %s, want (0,1)", got)
	}
	if ok, err := store.Stored(t.Context(), b.Stream, b.Range); err != nil || !ok {
		t.Errorf("stored %v, %v; want true", ok, err)
	}
	if p, err := line.Progress(t.Context()); err != nil || len(p.Marks) != 1 || p.Marks[0].End != 10 {
		t.Errorf("progress %+v, %v; want the end at 10", p, err)
	}
}

func TestErrorsSayWhetherToRetry(t *testing.T) {
	for _, c := range []struct {
		name   string
		db     *DB
		reason Reason
		retry  bool
	}{
		{"nobody there", open(t, "127.0.0.1:1", "tocsin"), ReasonUnreachable, true},
		{"not migrated", empty(t), ReasonSchema, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := NewStore(c.db).Insert(t.Context(), requests(0, 1, 1))
			var e *Error
			if !errors.As(err, &e) || e.Reason != c.reason || e.Retry() != c.retry || Retryable(err) != c.retry {
				t.Fatalf("error %v with reason %q, want %s, retry %v", err, e.Reason, c.reason, c.retry)
			}
			if !strings.Contains(err.Error(), "telemetry/1/3/0-1") {
				t.Errorf("error %q does not name the batch", err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var e *Error
	if err := migrated(t).Ping(ctx); !errors.As(err, &e) || e.Reason != ReasonCanceled || e.Retry() {
		t.Errorf("a cancelled request gives %v", err)
	}
}

// One topic can feed two streams, whose batches then cover the same range.
func TestStreamsOfOneTopicDoNotHideEachOther(t *testing.T) {
	db := migrated(t)
	store := NewStore(db)
	for _, s := range []signal.Stream{signal.Requests, signal.Gauges} {
		b := requests(0, 10, 0)
		b.Stream = s
		if err := store.Insert(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if ok, err := store.Stored(t.Context(), s, b.Range); err != nil || !ok {
			t.Errorf("%s: stored %v, %v; want true", s, ok, err)
		}
	}
	if got := one[uint64](t, db, "SELECT count() FROM dead_letters"); got != 4 {
		t.Errorf("%d dead letters, want 4", got)
	}
}
