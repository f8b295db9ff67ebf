package backtest

import (
	"context"
	"fmt"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	// warmUp is how much of the time before a span is gone through where the detector's state of then is of no use: what is
	// usual is learned in a day.
	warmUp = 24 * time.Hour
	// look is how much before a span a stored state is looked for.
	look = 6 * time.Hour
)

// RunStored replays stored history: the ticks that ended in (from, to], with the inputs that the live detector had. Where
// rules and catalogue are those of then and the detector's state at the beginning is stored, it comes to what the live detector
// came to; else Recording.Approximate says what is different. It is scored against o.Labels, or without these against what
// responders said of the incidents, if anything.
func RunStored(ctx context.Context, h History, from, to time.Time, o Options) (Recording, error) {
	first, err := firstTick(ctx, h, from, to)
	if err != nil {
		return Recording{}, err
	}
	r := &storedReplay{Options: o, history: h, journal: newJournal()}
	begin, err := r.prepare(ctx, first, from)
	if err != nil {
		return Recording{}, err
	}
	err = chunks(ctx, h, begin, to, func(from, to time.Time) error { return r.chunk(ctx, from, to, first.Number) })
	if err != nil {
		return Recording{}, err
	}
	labels := o.Labels
	if labels == nil {
		labels = r.journal.verdictLabels(from.UTC(), to.UTC())
	}
	out := r.journal.recording("history", from.UTC(), to.UTC(), o, labels)
	out.Approximate = r.why
	return out, nil
}

// firstTick finds where the span begins.
func firstTick(ctx context.Context, h History, from, to time.Time) (detect.Tick, error) {
	at, err := h.Next(ctx, from, to)
	if err != nil {
		return detect.Tick{}, err
	}
	if !at.IsZero() {
		ticks, err := h.Ticks(ctx, from, at)
		if err != nil {
			return detect.Tick{}, err
		}
		if len(ticks) > 0 {
			return ticks[0], nil
		}
	}
	return detect.Tick{}, fmt.Errorf("no ticks are stored between %s and %s", from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339))
}

type storedReplay struct {
	Options
	history  History
	detector *detect.Detector
	journal  *journal
	number   uint64 // of the last tick that the detector has seen
	gap      bool   // a tick was missing already
	why      string // it is approximate
}

func (r *storedReplay) approximate(why string, args ...any) {
	if r.why == "" {
		r.why = fmt.Sprintf(why, args...)
	}
}

// prepare makes the detector of the moment before the first tick, and says from when on to read.
func (r *storedReplay) prepare(ctx context.Context, first detect.Tick, from time.Time) (begin time.Time, err error) {
	r.detector = detect.New(detect.Config{Rules: r.Rules, Catalogue: r.Catalogue})
	if first.Number == 1 {
		return from, nil // all there is
	}
	state, number, err := r.history.State(ctx, first.Number-1)
	if err != nil {
		return from, err
	}
	same := first.Rules == r.Rules.Revision && first.Catalogue == r.Catalogue.Revision
	if number > 0 && same {
		if err := r.detector.Restore(state); err == nil {
			r.number = number
			return from.Add(-look), nil
		}
		r.detector = detect.New(detect.Config{Rules: r.Rules, Catalogue: r.Catalogue})
	}
	switch {
	case !same:
		r.approximate("it was judged live by other rules or another catalogue: what came before is gone through for %.0f h", warmUp.Hours())
	default:
		r.approximate("the detector's state of then is not stored any more: what came before is gone through for %.0f h", warmUp.Hours())
	}
	return from.Add(-warmUp), nil
}

func (r *storedReplay) chunk(ctx context.Context, from, to time.Time, first uint64) error {
	ticks, err := r.history.Ticks(ctx, from, to)
	if err != nil {
		return err
	}
	for len(ticks) > 0 && ticks[0].Number <= r.number {
		ticks = ticks[1:] // in the stored state already
	}
	if len(ticks) == 0 {
		return nil
	}
	ins, err := r.history.Inputs(ctx, ticks)
	if err != nil {
		return err
	}
	for i := range ins {
		t := &ins[i].Tick
		if r.number > 0 && t.Number != r.number+1 && !r.gap {
			r.gap = true
			r.approximate("the inputs of ticks %d to %d are not stored", r.number+1, t.Number-1)
		}
		if t.Rules != r.Rules.Revision || t.Catalogue != r.Catalogue.Revision {
			r.approximate("from %s on it was judged live by other rules or another catalogue", t.To.UTC().Format(time.RFC3339))
		}
		for k := range t.Commands {
			if v := verdictOf(&t.Commands[k]); v != "" && t.Number >= first {
				r.journal.verdicts[t.Commands[k].Incident] = v
			}
		}
		out := r.detector.Tick(ins[i])
		r.number = t.Number
		if t.Number < first {
			continue // before the span
		}
		r.journal.add(out.Events, out.Warnings, out.Transitions)
		for k := range ins[i].Cells {
			c := &ins[i].Cells[k]
			r.journal.traffic.add(c.Bucket, c.Outcomes[signal.Success]+c.Outcomes[signal.Failure], c.Outcomes[signal.Failure])
		}
	}
	return nil
}
