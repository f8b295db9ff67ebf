package backtest

import (
	"context"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/backtest/explain"
	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// History is a stored past: what the live detector was given, tick by tick. *clickhouse.History is one.
type History interface {
	// Ticks lists the ticks that ended in (from, to] of event time, in order.
	Ticks(ctx context.Context, from, to time.Time) ([]detect.Tick, error)
	// First is the tick of number 1, if it is stored. It takes in what there is and ends where ingest had come to; those after it go
	// back to the oldest of that, so by time it is not the first.
	First(ctx context.Context) (first detect.Tick, ok bool, err error)
	// Claimed lists, in order, the ticks that were claimed after from on the ingest clock and ended by to, and the first of all if it was
	// claimed after from. What happened between from and to is in their inputs: nothing comes before it happens.
	Claimed(ctx context.Context, from, to time.Time) ([]detect.Tick, error)
	// Next is when the first tick after from ended, if one did by to; else it is zero.
	Next(ctx context.Context, from, to time.Time) (time.Time, error)
	// Inputs reads what ticks of consecutive numbers were given, of the named streams or of all.
	Inputs(ctx context.Context, ticks []detect.Tick, of ...signal.Stream) ([]detect.Inputs, error)
	// State returns the newest state of the detector that is stored at or before a tick, with its tick; 0 if there is none.
	State(ctx context.Context, tick uint64) (state []byte, number uint64, err error)
	// Counts gives for ticks of consecutive numbers how many rows each was given. What is not known is left out.
	Counts(ctx context.Context, ticks []detect.Tick) (map[uint64]int, error)
	// Said lists what ticks of consecutive numbers that are done have concluded, by tick: findings, events, warnings.
	Said(ctx context.Context, ticks []detect.Tick) ([]incident.Conclusion, error)
	// The texts of rules and catalogues that ticks name.
	detect.SourceStore
}

// historyChunk is how much of the past is held at once.
const historyChunk = time.Hour

// lateness is for how long after a symptom rows about the time before it are still looked for.
const lateness = 30 * time.Minute

// pastTicks is how many ticks' inputs are held at once.
const pastTicks = 360

// Past reads from history what explains a symptom.
func Past(ctx context.Context, h History, s explain.Symptom) (*explain.Past, error) {
	p := explain.NewPast(s)
	add := func(ticks []detect.Tick, of []signal.Stream) error {
		ins, err := h.Inputs(ctx, ticks, of...)
		if err != nil {
			return err
		}
		for i := range ins {
			for j := range ins[i].Cells {
				p.AddCell(&ins[i].Cells[j])
			}
			for j := range ins[i].Gauges {
				p.Add(&ins[i].Gauges[j])
			}
			for j := range ins[i].Changes {
				p.Add(&ins[i].Changes[j])
			}
		}
		return nil
	}
	read := func(from, to time.Time, of ...signal.Stream) error {
		ticks, err := h.Claimed(ctx, from, to)
		if err != nil {
			return err
		}
		for some := range slices.Chunk(ticks, pastTicks) {
			if err := add(some, of); err != nil {
				return err
			}
		}
		return nil
	}
	until := s.At.Add(lateness)
	if err := read(s.At.Add(-explain.Lookback), until, signal.Requests, signal.Gauges); err != nil {
		return nil, err
	}
	return p, read(s.At.Add(-explain.ChangesBack), until, signal.Changes)
}

// chunks goes through the parts of (from, to] that have ticks. A month in which nothing ran costs one query.
func chunks(ctx context.Context, h History, from, to time.Time, do func(from, to time.Time) error) error {
	for from.Before(to) {
		next, err := h.Next(ctx, from, to)
		if err != nil || next.IsZero() {
			return err
		}
		from = next.Add(-time.Millisecond)
		end := minTime(to, from.Add(historyChunk))
		if err := do(from, end); err != nil {
			return err
		}
		from = end
	}
	return nil
}

func minTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
