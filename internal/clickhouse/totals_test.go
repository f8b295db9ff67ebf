package clickhouse

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/ingest/series"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// totalAt is a point of a counter by status: one series for each of its two.
func totalAt(pod uint64, failed bool, start, at time.Time, n uint64) series.Point {
	p := series.Point{Request: signal.Request{Time: at, Path: pathOf("checkout"), Count: n, Latency: -1, Attempt: 1},
		Series: pod*2 + 2, Writer: pod, Family: 1, Start: start}
	if failed {
		p.Series++
		p.Outcome, p.Error = signal.Failure, "timeout"
	}
	p.Latencies[3] = n
	return p
}

// partitions are ingest loops that write one topic of points.
type partitions struct {
	store *Store
	ends  [3]int64
}

func (f *partitions) insert(t *testing.T, partition int, points []series.Point) {
	t.Helper()
	b := &ingest.Batch{Stream: signal.Requests, Time: start, Points: points,
		Range:  ingest.Range{Topic: "metrics", Partition: int32(partition), Start: f.ends[partition], End: f.ends[partition] + 10},
		Marker: ingest.Marker{Records: 10, Events: uint64(len(points)), Watermark: start}}
	f.ends[partition] += 10
	for range 2 { // as after an unknown outcome
		if err := f.store.Insert(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
}

// counted sums what a tick saw.
func counted(in detect.Inputs) (n [signal.NumOutcomes]uint64, latency uint64) {
	for _, c := range in.Cells {
		for o := range n {
			n[o] += c.Outcomes[o]
		}
		latency += c.Latency.Total()
	}
	return n, latency
}

// Points of cumulative counters come by any partition, twice, late, and from pods that restart; detectors die between the
// steps of a claim, and another takes over: the counts are what happened.
func TestTotalsBecomeCountsOnce(t *testing.T) {
	db := migrated(t)
	rnd := rand.New(rand.NewPCG(3, 5))
	feed := &partitions{store: NewStore(db)}
	line := NewTimeline(db)
	epoch, err := line.Lead(t.Context(), "first")
	if err != nil {
		t.Fatal(err)
	}
	type pod struct {
		start          time.Time
		total, failing uint64
	}
	pods := []pod{{start: at(-3600), total: 1_000_000, failing: 50}, {start: at(-60), total: 40}, {start: at(-60), total: 40}}
	const ticks = 13
	var truth, truthFailed uint64
	var got [signal.NumOutcomes]uint64
	var latency uint64
	var late []series.Point
	var last detect.Tick
	for n := 1; n <= ticks; n++ {
		now := at(n * 10)
		batches := make([][]series.Point, 3)
		for i := range pods {
			p := &pods[i]
			if n > 3 && rnd.IntN(8) == 0 {
				*p = pod{start: now.Add(-4 * time.Second)}
			}
			if n > 1 {
				good, bad := uint64(rnd.IntN(100)), uint64(rnd.IntN(3))
				p.total, p.failing = p.total+good, p.failing+bad
				truth, truthFailed = truth+good, truthFailed+bad
			}
			points := []series.Point{totalAt(uint64(i), false, p.start, now, p.total)}
			if p.failing > 0 { // the first failure makes the series
				points = append(points, totalAt(uint64(i), true, p.start, now, p.failing))
			}
			to := rnd.IntN(3)
			batches[to] = append(batches[to], points...)
			if rnd.IntN(3) == 0 { // sent again
				to = rnd.IntN(3)
				batches[to] = append(batches[to], points...)
			}
			if n > 2 && n < ticks-2 && rnd.IntN(4) == 0 { // sent again later, behind newer ones
				late = append(late, points...)
			}
		}
		if n%3 == 0 {
			batches[0] = append(batches[0], late...)
			late = nil
		}
		for i, points := range batches {
			if len(points) > 0 {
				slices.SortStableFunc(points, func(a, b series.Point) int { return cmp.Compare(a.Series, b.Series) })
				feed.insert(t, i, points)
			}
		}
		tick := detect.Tick{Number: uint64(n), Epoch: epoch, From: now.Add(-10 * time.Second), To: now}
		p, err := line.Progress(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tick.Marks = p.Marks
		if n%3 == 0 { // somebody counts it, and dies before what it knows is stored
			g, err := line.gains(t.Context(), newRows(last, tick)[0].Ranges)
			if err == nil {
				err = line.storeGains(t.Context(), tick, g)
			}
			if err != nil {
				t.Fatal(err)
			}
			line = NewTimeline(db)
			if tick.Epoch, err = line.Lead(t.Context(), "next"); err != nil {
				t.Fatal(err)
			}
			epoch = tick.Epoch
		}
		last = tick
		in, err := line.Claim(t.Context(), tick)
		if err != nil {
			t.Fatal(err)
		}
		if n%4 == 0 { // it dies when all is stored, and another does it again
			line = NewTimeline(db)
			if tick.Epoch, err = line.Lead(t.Context(), "next"); err != nil {
				t.Fatal(err)
			}
			epoch = tick.Epoch
			if in, err = line.Claim(t.Context(), tick); err != nil {
				t.Fatal(err)
			}
		}
		c, l := counted(in)
		for o := range got {
			got[o] += c[o]
		}
		latency += l
		for i := 1; i < len(in.Cells); i++ {
			if in.Cells[i].Key == in.Cells[i-1].Key && in.Cells[i].Bucket.Equal(in.Cells[i-1].Bucket) {
				t.Errorf("tick %d has two cells of one key and bucket", n)
			}
		}
	}
	if got[signal.Success] != truth || got[signal.Failure] != truthFailed || latency != truth+truthFailed {
		t.Errorf("counted %v and %d durations, want %d and %d", got, latency, truth, truthFailed)
	}
	if s := one[string](t, db, "SELECT toString((sum(successes), sum(failures))) FROM tick_cells"); s != fmt.Sprintf("(%d,%d)", truth, truthFailed) {
		t.Errorf("stored %s, want %d and %d", s, truth, truthFailed)
	}
	if s := one[string](t, db, "SELECT toString(samples[1].3) FROM tick_cells WHERE failures > 0 LIMIT 1"); s != "timeout" {
		t.Errorf("a failure's sample says %q", s)
	}
}

// What is known of series is read once by whoever leads, not at each tick: three days of them would be read every ten seconds. Who takes
// the lead reads it from the table.
func TestTotalsAreReadOnce(t *testing.T) {
	db := migrated(t)
	feed := &partitions{store: NewStore(db)}
	line := NewTimeline(db)
	epoch, err := line.Lead(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	for n, total := range []uint64{5, 12, 20, 31} {
		feed.insert(t, 0, []series.Point{totalAt(1, false, at(-60), at(10*n), total)})
		switch n {
		case 1: // were it read now, nothing would be known
			if err := db.exec(t.Context(), "forget", "ALTER TABLE series_totals DELETE WHERE 1 SETTINGS mutations_sync = 2"); err != nil {
				t.Fatal(err)
			}
		case 3:
			if epoch, err = line.Lead(t.Context(), "test"); err != nil {
				t.Fatal(err)
			}
		}
		p, err := line.Progress(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		in, err := line.Claim(t.Context(), detect.Tick{Number: uint64(n + 1), Epoch: epoch, To: at(10*n + 10), Marks: p.Marks})
		if err != nil {
			t.Fatal(err)
		}
		got, _ := counted(in)
		if want := []uint64{0, 7, 8, 11}[n]; n > 0 && got[signal.Success] != want {
			t.Errorf("tick %d counts %d, want %d", n+1, got[signal.Success], want)
		}
	}
}

// Where spans and totals of one path fall into one bucket, the detector sees one cell.
func TestTotalsBesideCounts(t *testing.T) {
	db := migrated(t)
	feed := &partitions{store: NewStore(db)}
	feed.insert(t, 0, []series.Point{totalAt(1, false, at(-60), at(0), 5)})
	feed.insert(t, 0, []series.Point{totalAt(1, false, at(-60), at(10), 12)})
	b := requests(0, 10, 0)
	b.Cells = []ingest.Cell{ingest.NewCell(signal.Cell{Bucket: at(10), Key: signal.Key{Path: pathOf("checkout")}, Outcomes: [signal.NumOutcomes]uint64{3, 1}})}
	if err := feed.store.Insert(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	line := NewTimeline(db)
	epoch, err := line.Lead(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	p, err := line.Progress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	in, err := line.Claim(t.Context(), detect.Tick{Number: 1, Epoch: epoch, To: at(20), Marks: p.Marks})
	if err != nil {
		t.Fatal(err)
	}
	if len(in.Cells) != 1 || in.Cells[0].Outcomes[signal.Success] != 10 || in.Cells[0].Outcomes[signal.Failure] != 1 {
		t.Errorf("cells %+v, want one with 10 and 1", in.Cells)
	}
	if stored := one[int64](t, db, "SELECT sum(marker_rows) - countIf(marker = 0) FROM cells"); stored != 0 {
		t.Errorf("markers and rows differ by %d", stored)
	}
}

// ClickHouse/ClickHouse#76110, #78381, NangoHQ/nango PR#6122: a retry is deduplicated in the base table, and counted again by
// what hangs on it: four inserts, four times the value. Here every table and view that adds up says what happened.
func TestCaseRetriesCountOnceInEveryRollup(t *testing.T) {
	db := migrated(t)
	for range 4 {
		if err := NewStore(db).Insert(t.Context(), requests(0, 100, 50)); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 { // and as many detectors, one after the other
		line := NewTimeline(db)
		epoch, err := line.Lead(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		p, err := line.Progress(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := line.Claim(t.Context(), detect.Tick{Number: 1, Epoch: epoch, To: at(20), Marks: p.Marks}); err != nil {
			t.Fatal(err)
		}
	}
	for what, sql := range map[string]string{
		"cells": "SELECT toString((sum(successes), sum(failures))) FROM cells", "tick_cells": "SELECT toString((sum(successes), sum(failures))) FROM tick_cells",
		"failure_rates": "SELECT toString((sum(successes), sum(failures))) FROM failure_rates",
	} {
		if got := one[string](t, db, sql); got != "(450,50)" {
			t.Errorf("%s has %s, want (450,50)", what, got)
		}
	}
	if got := one[string](t, db, "SELECT toString((sum(records), sum(events), sum(rejected), max(abs(hole)))) FROM ingest_audit"); got != "(100,500,2,0)" {
		t.Errorf("the audit has %s", got)
	}
}
