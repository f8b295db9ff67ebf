package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const localisedMax = 20 // differences of which the batches are looked up

// localise names the batches in which a difference of a base table is.
func (v *verifier) localise(ctx context.Context, id part, d difference) (out []string) {
	where := fmt.Sprintf("marker = 0 AND topic = '%s' AND incarnation = %d AND partition = %d", id.stream, id.incarnation, id.partition)
	count := "toUInt64(count())"
	switch {
	case d.cell != nil:
		p := paths[d.cell.path]
		count = []string{"sum(successes)", "sum(failures)", "sum(rejected)", "sum(throttled)"}[d.outcome]
		where += fmt.Sprintf(" AND bucket = fromUnixTimestamp64Milli(%d) AND key IN (SELECT id FROM keys WHERE service = '%s' AND operation = '%s' AND access = '%s' AND attributes['region'] = '%s')",
			d.cell.bucket*1000, p.service, p.route, p.access(), p.region)
	case strings.HasPrefix(d.what, "gauge "):
		where += " AND value = " + strings.TrimPrefix(d.what, "gauge ")
	case strings.HasPrefix(d.what, "ticket "):
		where += " AND id = '" + strings.TrimPrefix(d.what, "ticket ") + "'"
	default:
		return nil
	}
	got := map[[2]int64]uint64{}
	err := v.rows(ctx, "SELECT start_offset, end_offset, "+count+" FROM "+tableOf[id.stream]+" WHERE "+where+" GROUP BY 1, 2", func(row []string) error {
		r := columns{row: row}
		got[[2]int64{r.number(0), r.number(1)}] = r.count(2)
		return r.err
	})
	if err != nil {
		return []string{err.Error()}
	}
	for _, b := range v.ledger[id] {
		want := newTally()
		entries := v.lives[id]
		for _, e := range entries[min(b.start, int64(len(entries))):min(b.end, int64(len(entries)))] {
			want.count(v.gen, id.stream, e)
		}
		if w, g := d.of(want), got[[2]int64{b.start, b.end}]; w != g || d.cell == nil && g > 0 {
			out = append(out, fmt.Sprintf("offsets %d to %d hold %d, must be %d", b.start, b.end-1, g, w))
		}
	}
	return out
}

// of is what a tally has of the thing that differs.
func (d difference) of(t *tally) uint64 {
	switch {
	case d.cell != nil:
		return t.cells[*d.cell][d.outcome]
	case strings.HasPrefix(d.what, "gauge "):
		var n uint64
		_, _ = fmt.Sscan(strings.TrimPrefix(d.what, "gauge "), &n)
		return uint64(t.values[n])
	default:
		return uint64(t.ids[strings.TrimPrefix(d.what, "ticket ")])
	}
}

// keepLedger writes what the ledger says beside the logs, so that it can be read when the campaign's ClickHouse is gone.
func (v *verifier) keepLedger(ctx context.Context) error {
	f, err := os.Create(filepath.Join(v.o.Dir, "ledger.tsv"))
	if err != nil {
		return fmt.Errorf("keep the ledger: %w", err)
	}
	defer f.Close()
	columns := "stream, topic, incarnation, partition, start_offset, end_offset, records, events, rejected, late, rows, watermark, record_time, clock, inserted_at"
	fmt.Fprintln(f, strings.ReplaceAll(columns, ", ", "\t"))
	return v.rows(ctx, "SELECT "+columns+" FROM ingest_batches ORDER BY topic, incarnation, partition, start_offset, end_offset", func(row []string) error {
		_, err := fmt.Fprintln(f, strings.Join(row, "\t"))
		return err
	})
}
