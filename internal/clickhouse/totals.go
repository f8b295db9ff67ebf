package clickhouse

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/ingest/series"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// The kinds of series_totals.
const (
	kindSeries = "series"
	kindWriter = "writer"
	kindFamily = "family"
)

type seenID struct {
	kind  string
	id    uint64
	start int64
}

// seenFirst is when writers and families were seen first, Unix milliseconds.
type seenFirst map[seenID]int64

var _ series.Seen = seenFirst(nil)

func (s seenFirst) Writer(id uint64, start int64) (int64, bool) {
	first, ok := s[seenID{kindWriter, id, start}]
	return first, ok
}

func (s seenFirst) Family(id uint64) (int64, bool) {
	first, ok := s[seenID{kindFamily, id, 0}]
	return first, ok
}

// countTotals counts what cumulative series have gained since their last points, whichever partition and tick these came
// by, into the tick's cells. It may be repeated, by whomever. Cells go first, under the tick's token: once what is known
// of the series is stored, the points gain nothing any more, and the cells are there already. So nothing here asks for
// which ticks knew what.
func (t *Timeline) countTotals(ctx context.Context, tick detect.Tick, ranges []span) error {
	g, err := t.gains(ctx, ranges)
	if err != nil {
		return err
	}
	if err := t.storeGains(ctx, tick, g); err != nil {
		return err
	}
	return t.remember(ctx, tick, g)
}

// gains is what new points add, and what is to be known of their series for the next ones.
type gains struct {
	counted []series.Counted
	lasts   []series.Last
	seen    seenAll
}

// gains reads the new points twice, once for what they are of and once in order, and of what is known only what this process
// does not remember.
func (t *Timeline) gains(ctx context.Context, ranges []span) (g gains, err error) {
	found, err := t.news(ctx, ranges)
	if err != nil || len(found.series) == 0 {
		return g, err
	}
	if t.totals == nil || t.totals.full() {
		t.totals = newKnown()
	}
	if err := t.totals.learn(ctx, t.db, found); err != nil {
		return g, err
	}
	g.seen = t.totals.merged(found)
	fold := series.NewFold(g.seen.first)
	var of uint64
	begun := false
	err = t.db.query(ctx, "read totals", render("totals_points.sql", ranges), func(r driver.Rows) error {
		var s series.Sample
		if err := scanSample(r, &s); err != nil {
			return err
		}
		if !begun || s.Series != of {
			of, begun = s.Series, true
			for _, l := range t.totals.series[of] {
				fold.Add(&series.Sample{Known: true, Series: of, Start: l.Start, Time: l.Time, Count: l.Count, Latencies: l.Latencies})
			}
		}
		fold.Add(&s)
		return nil
	})
	g.counted, g.lasts = fold.Result()
	return g, err
}

func small(int) int { return 0 }

func (t *Timeline) storeGains(ctx context.Context, tick detect.Tick, g gains) error {
	for i, c := range cut(len(g.counted), small) {
		token := fmt.Sprintf("%s/tick_cells/totals/%d", tickToken(tick.Number), i)
		if err := t.db.insert(ctx, token, countedBlock(tick, g.counted[c.from:c.to])); err != nil {
			return err
		}
	}
	return nil
}

func (t *Timeline) remember(ctx context.Context, tick detect.Tick, g gains) error {
	for i, c := range cut(len(g.lasts)+len(g.seen.order), small) {
		token := fmt.Sprintf("%s/series_totals/%d", tickToken(tick.Number), i)
		if err := t.db.insert(ctx, token, totalsBlock(tick, g.lasts, g.seen, c)); err != nil {
			return err
		}
	}
	if t.totals != nil {
		t.totals.note(g) // it is stored now, and not before: a try that failed may have stored none of it
	}
	return nil
}

type seenAll struct {
	first seenFirst
	order []seenID
}

func scanSample(r driver.Rows, s *series.Sample) error {
	var counts [signal.NumOutcomes]uint64
	var latency, hashes []uint64
	var traces, errs, who []string
	err := r.Scan(&s.Series, &s.Writer, &s.Family, &s.Start, &s.Time, &s.Key, &counts[signal.Success], &counts[signal.Failure],
		&counts[signal.Rejected], &counts[signal.Throttled], &latency, &hashes, &traces, &errs, &who)
	if err != nil {
		return err
	}
	for outcome, n := range counts { // a point has one outcome
		if n > 0 {
			s.Outcome, s.Count = signal.Outcome(outcome), n
		}
	}
	copy(s.Latencies[:], latency)
	for i := range hashes {
		s.Samples = append(s.Samples, signal.Sample{Hash: hashes[i], TraceID: traces[i], Error: errs[i], Account: who[i]})
	}
	return nil
}

func countedBlock(tick detect.Tick, rows []series.Counted) *block {
	b := newBlock("tick_cells", len(rows))
	same(b, "tick", tick.Number)
	same(b, "tick_to", toDB(tick.To))
	columnTime(b, "bucket", func(i int) int64 { return rows[i].Bucket })
	column(b, "key", func(i int) uint64 { return rows[i].Key })
	for outcome, name := range [signal.NumOutcomes]string{signal.Success: "successes", signal.Failure: "failures", signal.Rejected: "rejected", signal.Throttled: "throttled"} {
		column(b, name, func(i int) uint64 { return rows[i].Cell.Outcomes[outcome] })
	}
	column(b, "latency", func(i int) []uint64 { return trim(&rows[i].Cell.Latency) })
	column(b, "samples", func(i int) [][]any {
		out := make([][]any, len(rows[i].Cell.Samples))
		for j, s := range rows[i].Cell.Samples {
			out[j] = []any{s.Hash, s.TraceID, s.Error, s.Account}
		}
		return out
	})
	return b
}

func columnTime(b *block, name string, millis func(i int) int64) {
	column(b, name, func(i int) time.Time { return toDB(fromMillis(millis(i))) })
}

// totalsBlock is a part of what is to be known: series first, then writers and families.
func totalsBlock(tick detect.Tick, lasts []series.Last, seen seenAll, c chunk) *block {
	b := newBlock("series_totals", c.to-c.from)
	row := func(i int) (seenID, series.Last) {
		if i += c.from; i < len(lasts) {
			return seenID{kindSeries, lasts[i].Series, lasts[i].Start}, lasts[i]
		}
		id := seen.order[i-len(lasts)]
		return id, series.Last{Time: seen.first[id]}
	}
	same(b, "tick", tick.Number)
	column(b, "kind", func(i int) string { id, _ := row(i); return id.kind })
	column(b, "id", func(i int) uint64 { id, _ := row(i); return id.id })
	columnTime(b, "start", func(i int) int64 { id, _ := row(i); return id.start })
	columnTime(b, "time", func(i int) int64 { _, l := row(i); return l.Time })
	column(b, "count", func(i int) uint64 { _, l := row(i); return l.Count })
	column(b, "latency", func(i int) []uint64 { _, l := row(i); return trim(&l.Latencies) })
	return b
}

// mergeCells adds cells of one key and bucket up: those that were counted by themselves, and those of totals. They are in
// order of both.
func mergeCells(cells []signal.Cell) []signal.Cell {
	out := cells[:0]
	for i := range cells {
		if n := len(out); n > 0 && out[n-1].Bucket.Equal(cells[i].Bucket) && out[n-1].Key == cells[i].Key {
			out[n-1].Merge(&cells[i])
			continue
		}
		out = append(out, cells[i])
	}
	return out
}
