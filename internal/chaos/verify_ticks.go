package chaos

import (
	"context"
)

// progressView holds the view of the ledger to the truth.
func (v *verifier) progressView(ctx context.Context) error {
	seen := map[part]bool{}
	err := v.rows(ctx, `SELECT topic, incarnation, partition, first_offset, end_offset, missing_offsets, records, events, rejected FROM ingest_progress`, func(row []string) error {
		r := columns{row: row}
		id := r.part(0)
		seen[id] = true
		var events, rejected uint64
		for _, e := range v.lives[id] {
			_, n := v.gen.dead(id.stream, e)
			rejected += uint64(n)
			events += uint64(v.gen.events(id.stream, e))
		}
		if n := int64(len(v.lives[id])); r.number(3) != 0 || r.number(4) != n || r.number(5) != 0 || r.number(6) != n || r.count(7) != events || r.count(8) != rejected {
			v.wrong("ingest_progress", "%s: %v, must be from 0 to %d without a gap, %d events and %d rejected", id, row[3:], n, events, rejected)
		}
		return r.err
	})
	if err != nil {
		return err
	}
	for id, entries := range v.lives {
		if !seen[id] && len(entries) > 0 {
			v.wrong("ingest_progress", "%s is not there", id)
		}
	}
	return nil
}

// ticks holds what the detector took over to the truth: every row in exactly one tick, each ticket once.
func (v *verifier) ticks(ctx context.Context) error {
	got := newTally()
	err := v.rows(ctx, `SELECT intDiv(toUnixTimestamp64Milli(c.bucket), 1000), `+keyColumns+`, `+sums+`
		FROM tick_cells AS c LEFT JOIN `+keyTable+` ON c.key = k.id GROUP BY 1, 2, 3, 4, 5`, func(row []string) error {
		r := columns{row: row}
		c, n := cellAt(&r, 0)
		got.cells[c] = n
		return r.err
	})
	if err != nil {
		return err
	}
	err = v.rows(ctx, `SELECT toUInt64(value), count() FROM tick_gauges GROUP BY 1`, func(row []string) error {
		r := columns{row: row}
		got.values[r.count(0)] = int(r.number(1))
		return r.err
	})
	if err != nil {
		return err
	}
	if err := v.onceEach(ctx, "tick_tickets", got); err != nil {
		return err
	}
	for _, d := range v.once().differences(got) {
		v.problem("tick inputs", d)
	}
	return nil
}

// once is the truth where each ticket counts once, and dead letters do not.
func (v *verifier) once() *tally {
	t := &tally{cells: v.all.cells, values: v.all.values, ids: map[string]int{}}
	for id := range v.all.ids {
		t.ids[id] = 1
	}
	return t
}

func (v *verifier) onceEach(ctx context.Context, table string, got *tally) error {
	return v.rows(ctx, `SELECT id, count() FROM `+table+` GROUP BY 1`, func(row []string) error {
		r := columns{row: row}
		got.ids[r.text(0)] = int(r.number(1))
		return r.err
	})
}

// views holds what analysts ask to the truth, by the minute.
func (v *verifier) views(ctx context.Context) error {
	minute := func(c cell) cell { return cell{c.bucket - c.bucket%60, c.path} }
	want, got := newTally(), newTally()
	for c, n := range v.all.cells {
		of := want.cells[minute(c)]
		for o := range n {
			of[o] += n[o]
		}
		want.cells[minute(c)] = of
	}
	want.ids = v.once().ids
	err := v.rows(ctx, `SELECT intDiv(toUnixTimestamp64Milli(minute), 1000), service, operation, toString(access), attributes['region'], successes, failures, rejected, throttled
		FROM failure_rates`, func(row []string) error {
		r := columns{row: row}
		c, n := cellAt(&r, 0)
		got.cells[c] = n
		return r.err
	})
	if err != nil {
		return err
	}
	if err := v.onceEach(ctx, "tickets_seen", got); err != nil {
		return err
	}
	for _, d := range want.differences(got) {
		v.problem("views", d)
	}
	return nil
}
