package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// batchRow is one line of the ledger.
type batchRow struct {
	start, end                int64
	records, events, rejected uint64
}

// verifier compares what is stored with what must be.
type verifier struct {
	*campaign
	r      *Report
	lives  map[part][]entry
	want   map[part]*tally
	ledger map[part][]batchRow
	unread map[part]map[int64]entry // of deleted topics
	all    *tally                   // over all parts, for the tables that do not tell them apart
}

// verify compares base tables, ledger, dead letters, tick inputs and views with the truth.
func (c *campaign) verify(ctx context.Context, r *Report) error {
	v := &verifier{campaign: c, r: r, lives: map[part][]entry{}, want: map[part]*tally{}, ledger: map[part][]batchRow{}, unread: map[part]map[int64]entry{}, all: newTally()}
	for _, step := range []func(context.Context) error{v.readLedger, v.truth, v.batches, v.blocks, v.base, v.progressView, v.ticks, v.views} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if r.OK() {
		return nil
	}
	return v.keepLedger(ctx)
}

// problem adds a difference to the report.
func (v *verifier) problem(where string, d difference) {
	v.r.Missing += d.missing()
	v.r.Double += d.double()
	v.r.Differences = append(v.r.Differences, where+": "+d.String())
}

func (v *verifier) wrong(where, format string, args ...any) {
	v.r.Wrong++
	v.r.Differences = append(v.r.Differences, where+": "+fmt.Sprintf(format, args...))
}

func (v *verifier) readLedger(ctx context.Context) error {
	return v.rows(ctx, `SELECT topic, incarnation, partition, start_offset, end_offset, records, events, rejected FROM ingest_batches
		ORDER BY topic, incarnation, partition, start_offset, end_offset`, func(row []string) error {
		r := columns{row: row}
		id := r.part(0)
		v.ledger[id] = append(v.ledger[id], batchRow{r.number(3), r.number(4), r.count(5), r.count(6), r.count(7)})
		return r.err
	})
}

// truth is what the logs held: all of a topic that is there, and of one that was deleted as much as was stored of it.
func (v *verifier) truth(context.Context) error {
	for _, stream := range streams {
		for _, l := range v.producer.lives[stream] {
			for i, id := range v.parts(l) {
				entries := l.entries[i]
				if batches := v.ledger[id]; l.ended {
					end := int64(0)
					if len(batches) > 0 {
						end = batches[len(batches)-1].end
					}
					entries = entries[:min(end, int64(len(entries)))]
					v.r.Deleted += len(l.entries[i]) - len(entries)
					v.unread[id] = map[int64]entry{}
					for offset := len(entries); offset < len(l.entries[i]); offset++ {
						v.unread[id][int64(offset)] = l.entries[i][offset]
					}
				}
				v.lives[id] = entries
				want := newTally()
				for offset, e := range entries {
					want.count(v.gen, stream, e)
					v.all.count(v.gen, stream, e)
					if n, _ := v.gen.dead(stream, e); n > 0 {
						want.dead[int64(offset)] = n
						v.r.DeadLetters += n
					}
					v.r.Counted += uint64(v.gen.events(stream, e))
				}
				v.want[id] = want
				v.r.Records += len(entries)
			}
		}
	}
	for id := range v.ledger {
		if _, ok := v.want[id]; !ok {
			v.wrong("ledger", "%s is stored, and was never made", id)
		}
	}
	return nil
}

// batches holds the ledger to the logs: each offset in one batch, each batch with the figures of its records.
func (v *verifier) batches(context.Context) error {
	for _, id := range v.ids() {
		at := int64(0)
		for _, b := range v.ledger[id] {
			v.r.Batches++
			switch {
			case b.start > at:
				v.wrong("ledger", "%s: offsets %d to %d are in no batch", id, at, b.start-1)
			case b.start < at:
				v.wrong("ledger", "%s: offsets %d to %d are in two batches", id, b.start, min(at, b.end)-1)
			}
			at = max(at, b.end)
			var want batchRow
			entries := v.lives[id]
			for _, e := range entries[min(b.start, int64(len(entries))):min(b.end, int64(len(entries)))] {
				_, rejected := v.gen.dead(id.stream, e)
				want.records++
				want.rejected += uint64(rejected)
				want.events += uint64(v.gen.events(id.stream, e))
			}
			if b.records != want.records || b.events != want.events || b.rejected != want.rejected {
				v.wrong("ledger", "%s, offsets %d to %d: %d records, %d events, %d rejected; must be %d, %d, %d", id, b.start, b.end-1, b.records, b.events, b.rejected,
					want.records, want.events, want.rejected)
			}
		}
		if at != int64(len(v.lives[id])) {
			v.wrong("ledger", "%s: stored up to %d of %d", id, at, len(v.lives[id]))
		}
	}
	return nil
}

func (v *verifier) ids() []part {
	return slices.SortedFunc(maps.Keys(v.want), func(a, b part) int { return strings.Compare(a.String(), b.String()) })
}

// blocks holds each batch to its marker: one marker, and as many rows as it says.
func (v *verifier) blocks(ctx context.Context) error {
	for _, table := range tableOf {
		err := v.rows(ctx, `SELECT topic, incarnation, partition, start_offset, end_offset, countIf(marker = 1), countIf(marker = 0), max(marker_rows) FROM `+table+`
			GROUP BY 1, 2, 3, 4, 5 HAVING countIf(marker = 1) != 1 OR countIf(marker = 0) != max(marker_rows)`, func(row []string) error {
			r := columns{row: row}
			v.wrong(table, "%s, offsets %d to %d: %d markers, %d rows, must be 1 and %d", r.part(0), r.number(3), r.number(4)-1, r.number(5), r.number(6), r.number(7))
			return r.err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

var pathNumbers = func() map[path]int {
	out := map[path]int{}
	for i, p := range paths {
		out[path{p.service, p.route, p.access(), p.region}] = i
	}
	return out
}()

// cellAt reads a cell and its counts: bucket in seconds, service, operation, access, region, then the outcomes.
func cellAt(r *columns, at int) (c cell, n [outcomes]uint64) {
	p := path{r.text(at + 1), r.text(at + 2), r.text(at + 3), r.text(at + 4)}
	i, ok := pathNumbers[p]
	if !ok && r.err == nil {
		r.err = fmt.Errorf("a path that was never made: %+v", p)
	}
	c = cell{r.number(at), i}
	for o := range n {
		n[o] = r.count(at + 5 + o)
	}
	return c, n
}

const keyColumns = `k.service, k.operation, toString(k.access), k.attributes['region']`
const keyTable = `(SELECT id, service, operation, access, attributes FROM keys FINAL) AS k`
const sums = `sum(c.successes), sum(c.failures), sum(c.rejected), sum(c.throttled)`

func init() { // the order of the sums is that of the outcomes
	if signal.Success != 0 || signal.Failure != 1 || signal.Rejected != 2 || signal.Throttled != 3 {
		panic("outcomes have another order")
	}
}

// base holds the base tables and the dead letters to the truth, part by part.
func (v *verifier) base(ctx context.Context) error {
	got := map[part]*tally{}
	of := func(id part) *tally {
		if got[id] == nil {
			got[id] = newTally()
		}
		return got[id]
	}
	err := v.rows(ctx, `SELECT c.topic, c.incarnation, c.partition, intDiv(toUnixTimestamp64Milli(c.bucket), 1000), `+keyColumns+`, `+sums+`
		FROM cells AS c LEFT JOIN `+keyTable+` ON c.key = k.id WHERE c.marker = 0 GROUP BY 1, 2, 3, 4, 5, 6, 7, 8`, func(row []string) error {
		r := columns{row: row}
		c, n := cellAt(&r, 3)
		of(r.part(0)).cells[c] = n
		return r.err
	})
	if err != nil {
		return err
	}
	err = v.rows(ctx, `SELECT topic, incarnation, partition, toUInt64(value), count() FROM gauges WHERE marker = 0 GROUP BY 1, 2, 3, 4`, func(row []string) error {
		r := columns{row: row}
		of(r.part(0)).values[r.count(3)] = int(r.number(4))
		return r.err
	})
	if err != nil {
		return err
	}
	err = v.rows(ctx, `SELECT topic, incarnation, partition, id, count() FROM tickets WHERE marker = 0 GROUP BY 1, 2, 3, 4`, func(row []string) error {
		r := columns{row: row}
		of(r.part(0)).ids[r.text(3)] = int(r.number(4))
		return r.err
	})
	if err != nil {
		return err
	}
	err = v.rows(ctx, `SELECT topic, incarnation, partition, offset, count() FROM dead_letters GROUP BY 1, 2, 3, 4`, func(row []string) error {
		r := columns{row: row}
		of(r.part(0)).dead[r.number(3)] = int(r.number(4))
		return r.err
	})
	if err != nil {
		return err
	}
	localised := 0
	for _, id := range v.ids() {
		v.excuse(id, of(id))
		for _, d := range v.want[id].differences(of(id)) {
			v.problem(tableOf[id.stream]+" of "+id.String(), d)
			if localised++; localised <= localisedMax {
				for _, line := range v.localise(ctx, id, d) {
					v.r.Differences = append(v.r.Differences, "  "+line)
				}
			}
		}
	}
	return nil
}

// excuse takes the dead letters away that are stored, once, of records of a deleted topic whose block was not stored before: dead
// letters come first, and nobody can read the records again.
func (v *verifier) excuse(id part, got *tally) {
	for offset, n := range got.dead {
		if e, ok := v.unread[id][offset]; ok {
			if rows, _ := v.gen.dead(id.stream, e); n <= rows {
				delete(got.dead, offset)
				v.r.DeadAlone += n
			}
		}
	}
}
