package clickhouse

import (
	"context"
	"fmt"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/tocsin-project/tocsin/internal/detect"
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
