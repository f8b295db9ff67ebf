package clickhouse

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// History reads what the detector was given, for explanations and backtests. It writes nothing. One goroutine uses it.
type History struct{ t *Timeline }

// NewHistory makes a reader over an open database, which stays the caller's.
func NewHistory(db *DB) *History { return &History{NewTimeline(db)} }

// Ticks lists the ticks that ended in (from, to] of event time, in order.
func (h *History) Ticks(ctx context.Context, from, to time.Time) ([]detect.Tick, error) {
	ticks, _, err := h.t.readTicks(ctx, "ticks_between.sql", 0, ch.Named("from", toDB(from).UnixMilli()), ch.Named("to", toDB(to).UnixMilli()))
	if err != nil {
		return nil, fmt.Errorf("list ticks: %w", err)
	}
	return ticks, nil
}

// Claimed lists, in order, the ticks that were claimed after from on the ingest clock and ended by to, and the first of all if it
// was claimed after from.
func (h *History) Claimed(ctx context.Context, from, to time.Time) ([]detect.Tick, error) {
	ticks, _, err := h.t.readTicks(ctx, "ticks_claimed.sql", 0, ch.Named("from", toDB(from).UnixMilli()), ch.Named("to", toDB(to).UnixMilli()))
	if err != nil {
		return nil, fmt.Errorf("list ticks: %w", err)
	}
	return ticks, nil
}

// First is the tick of number 1, if it is stored.
func (h *History) First(ctx context.Context) (detect.Tick, bool, error) {
	ticks, _, err := h.t.readTicks(ctx, "tick.sql", 1)
	if err != nil {
		return detect.Tick{}, false, fmt.Errorf("find the first tick: %w", err)
	}
	if len(ticks) == 0 {
		return detect.Tick{}, false, nil
	}
	return ticks[0], true, nil
}

// Next is when the first tick after from ended, if one did by to; else it is zero.
func (h *History) Next(ctx context.Context, from, to time.Time) (next time.Time, err error) {
	err = h.t.db.query(ctx, "read tick", queryText("tick_next.sql"), func(r driver.Rows) error {
		var ms int64
		if err := r.Scan(&ms); err != nil {
			return err
		}
		next = fromMillis(ms)
		return nil
	}, ch.Named("from", toDB(from).UnixMilli()), ch.Named("to", toDB(to).UnixMilli()))
	if err != nil {
		return time.Time{}, fmt.Errorf("find the next tick: %w", err)
	}
	return next, nil
}

// Inputs reads what ticks of consecutive numbers were given, of the named streams or of all.
func (h *History) Inputs(ctx context.Context, ticks []detect.Tick, of ...signal.Stream) ([]detect.Inputs, error) {
	if len(ticks) == 0 {
		return nil, nil
	}
	tables := streams
	if len(of) > 0 {
		tables = nil
		for _, st := range streams {
			for _, s := range of {
				if s == st.Name {
					tables = append(tables, st)
				}
			}
		}
	}
	byTick, err := h.t.inputs(ctx, tables, ticks[0].Number, ticks[len(ticks)-1].Number)
	if err != nil {
		return nil, fmt.Errorf("read inputs: %w", err)
	}
	out := make([]detect.Inputs, len(ticks))
	for i, tick := range ticks {
		if found := byTick[tick.Number]; found != nil {
			out[i] = *found
		}
		out[i].Tick = tick
	}
	return out, nil
}

// Counts gives for ticks of consecutive numbers how many rows each was given. Ticks that were not done, or before this was
// noted, are left out.
func (h *History) Counts(ctx context.Context, ticks []detect.Tick) (map[uint64]int, error) {
	out := map[uint64]int{}
	if len(ticks) == 0 {
		return out, nil
	}
	err := h.t.db.query(ctx, "read ticks", queryText("tick_counts.sql"), func(r driver.Rows) error {
		var tick, rows uint64
		if err := r.Scan(&tick, &rows); err != nil {
			return err
		}
		out[tick] = int(rows)
		return nil
	}, ch.Named("from", ticks[0].Number), ch.Named("to", ticks[len(ticks)-1].Number))
	if err != nil {
		return nil, fmt.Errorf("read what ticks were given: %w", err)
	}
	return out, nil
}

// Said lists what ticks of consecutive numbers that are done have concluded, by tick: findings, events, warnings.
func (h *History) Said(ctx context.Context, ticks []detect.Tick) (out []incident.Conclusion, err error) {
	if len(ticks) == 0 {
		return nil, nil
	}
	span := []any{ch.Named("from", ticks[0].Number), ch.Named("to", ticks[len(ticks)-1].Number)}
	read := func(file string, scan func(driver.Rows, *incident.Conclusion) error) {
		if err != nil {
			return
		}
		err = h.t.db.query(ctx, "read conclusions", render(file, nil), func(r driver.Rows) error {
			var c incident.Conclusion
			err := scan(r, &c)
			out = append(out, c)
			return err
		}, span...)
	}
	read("said_findings.sql", func(r driver.Rows, c *incident.Conclusion) error {
		t, err := scanTransition(also(r, &c.Tick))
		c.Finding = &t
		return err
	})
	read("said_events.sql", func(r driver.Rows, c *incident.Conclusion) error {
		_, e, err := scanEvent(r)
		c.Tick, c.Event = e.Tick, &e
		return err
	})
	read("said_warnings.sql", func(r driver.Rows, c *incident.Conclusion) error {
		w, err := scanWarning(also(r, &c.Tick))
		c.Warning = &w
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read what ticks concluded: %w", err)
	}
	slices.SortStableFunc(out, func(a, b incident.Conclusion) int { return cmp.Compare(a.Tick, b.Tick) })
	return out, nil
}

// also reads a column that comes before those that a scanner knows.
func also(r driver.Rows, first any) driver.Rows { return prefixed{r, first} }

type prefixed struct {
	driver.Rows
	first any
}

func (p prefixed) Scan(dest ...any) error { return p.Rows.Scan(append([]any{p.first}, dest...)...) }

// Source reads the text of a revision.
func (h *History) Source(ctx context.Context, kind, revision string) (detect.Source, bool, error) {
	return readSource(ctx, h.t.db, kind, revision)
}

// State returns the newest stored state of the detector at or before a tick, with its tick; 0 if there is none.
func (h *History) State(ctx context.Context, tick uint64) (state []byte, number uint64, err error) {
	err = h.t.db.query(ctx, "read checkpoint", queryText("checkpoint.sql"), func(r driver.Rows) error {
		var text string
		if err := r.Scan(&number, &text); err != nil {
			return err
		}
		state = []byte(text)
		return nil
	}, ch.Named("tick", tick))
	if err != nil {
		return nil, 0, fmt.Errorf("read state: %w", err)
	}
	return state, number, nil
}
