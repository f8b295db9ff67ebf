package backtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	// warmUp is how much of the time before a span is gone through where the detector's state of then is of no use: what is
	// usual is learned in a day.
	warmUp = 24 * time.Hour
	// look is how much before a span a stored state is looked for.
	look = 6 * time.Hour
)

// RunStored replays stored history: the ticks that ended in (from, to], with the inputs that the live detector had. Where it
// judges by the rules and the catalogue of then, all inputs and the detector's state at the beginning are still stored, and this
// is the program that ran then, it comes to what the live detector came to; else Recording.Approximate says what is different.
// It is scored against o.Labels, or without these against what responders said of the incidents, if anything.
func RunStored(ctx context.Context, h History, from, to time.Time, o Options) (Recording, error) {
	first, err := firstTick(ctx, h, from, to)
	if err != nil {
		return Recording{}, err
	}
	r := &storedReplay{Options: o, history: h, journal: newJournal()}
	if o.Verify {
		r.verified = &Verified{}
	}
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
	if names := r.unanswered.String(); names != "" {
		r.approximate("no tick carries answers to the queries of sql rules that did not run live, which are not judged: %s", names)
	}
	out.Approximate = strings.Join(r.why, "; ")
	out.Log, out.Verified = r.log, r.verified
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
		if len(ticks) > 0 && ticks[0].Number == 2 {
			if one, ok, err := h.First(ctx); err != nil || ok {
				return one, err
			}
		}
		if len(ticks) > 0 {
			return ticks[0], nil
		}
	}
	return detect.Tick{}, fmt.Errorf("no ticks are stored between %s and %s", stamp(from), stamp(to))
}

type storedReplay struct {
	Options
	history  History
	detector *detect.Detector
	journal  *journal
	number   uint64 // of the last tick that the detector has seen
	log      []incident.Conclusion
	verified *Verified
	why      []string // it is approximate
	told     map[string]bool

	otherRules bool // the newest tick was judged live by others
	unanswered unanswered
}

// approximate notes a reason, the first one of each kind.
func (r *storedReplay) approximate(why string, args ...any) {
	if r.told[why] {
		return
	}
	if r.told == nil {
		r.told = map[string]bool{}
	}
	r.told[why] = true
	r.why = append(r.why, fmt.Sprintf(why, args...))
}

func (r *storedReplay) config() detect.Config {
	return detect.Config{Rules: r.Rules, Catalogue: r.Catalogue, ExternalLabels: r.ExternalLabels}
}

// prepare makes the detector of the moment before the first tick, and says from when on to read.
func (r *storedReplay) prepare(ctx context.Context, first detect.Tick, from time.Time) (begin time.Time, err error) {
	r.detector = detect.New(r.config())
	if first.Number == 1 {
		return from, nil // all there is
	}
	state, number, err := r.history.State(ctx, first.Number-1)
	if err != nil {
		return from, err
	}
	same := r.AsLive || first.Rules == r.Rules.Revision && first.Catalogue == r.Catalogue.Revision
	if number > 0 && same {
		d, err := detect.Restored(ctx, r.history, state, r.config())
		if errors.Is(err, detect.ErrNoAnswer) {
			return from, err
		}
		if err == nil {
			r.detector, r.number = d, number
			return from.Add(-look), nil
		}
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
	if ticks, err = r.fromFirst(ctx, ticks); err != nil || len(ticks) == 0 {
		return err
	}
	ins, err := r.history.Inputs(ctx, ticks)
	if err != nil {
		return err
	}
	counts, err := r.history.Counts(ctx, ticks)
	if err != nil {
		return err
	}
	var replayed []incident.Conclusion
	for i := range ins {
		t := &ins[i].Tick
		if err := r.compare(ctx, &ins[i], counts); err != nil {
			return err
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
		if r.otherRules {
			if err := r.unanswered.note(ctx, r.history, r.detector, t); err != nil {
				return err
			}
		}
		r.journal.add(out.Events, out.Warnings, out.Transitions)
		replayed = append(replayed, conclusions(t.Number, &out)...)
		for k := range ins[i].Cells {
			c := &ins[i].Cells[k]
			r.journal.traffic.add(c.Bucket, c.Outcomes[signal.Success]+c.Outcomes[signal.Failure], c.Outcomes[signal.Failure])
		}
	}
	r.log = append(r.log, replayed...)
	if r.verified == nil {
		return nil
	}
	for len(ticks) > 0 && ticks[0].Number < first {
		ticks = ticks[1:]
	}
	return r.verified.compare(ctx, r.history, concluded(ticks, counts), replayed)
}

// concluded leaves out the newest tick where it is under way: what it comes to is not stored yet, which is no difference. All before it
// are done, but how much they were given may not have been noted, so nothing is concluded from the lack of that alone.
func concluded(ticks []detect.Tick, counts map[uint64]int) []detect.Tick {
	last := len(ticks) - 1
	if last < 1 {
		return ticks
	}
	_, before := counts[ticks[last-1].Number]
	if _, done := counts[ticks[last].Number]; before && !done {
		return ticks[:last]
	}
	return ticks
}

// fromFirst puts tick 1 where it belongs: before tick 2, though it ended later.
func (r *storedReplay) fromFirst(ctx context.Context, ticks []detect.Tick) ([]detect.Tick, error) {
	if r.number > 0 || len(ticks) == 0 {
		return ticks, nil
	}
	if ticks[0].Number == 1 && len(ticks) > 1 && ticks[1].Number > 2 {
		ticks = ticks[1:]
	}
	if ticks[0].Number == 2 {
		one, ok, err := r.history.First(ctx)
		if err != nil {
			return nil, err
		}
		if ok {
			ticks = append([]detect.Tick{one}, ticks...)
		}
	}
	return ticks, nil
}

// compare brings the detector to the configuration that a tick is to be judged by, and notes what was different live.
func (r *storedReplay) compare(ctx context.Context, in *detect.Inputs, counts map[uint64]int) error {
	t := &in.Tick
	r.otherRules = !r.AsLive && t.Rules != r.Rules.Revision
	if r.unanswered.since.IsZero() {
		r.unanswered.since = t.To
	}
	if r.number > 0 && t.Number != r.number+1 {
		r.approximate("ticks %d to %d are not stored", r.number+1, t.Number-1)
	}
	if n, known := counts[t.Number]; known && n != in.Rows() {
		r.approximate("the inputs of the tick that ended at %s are not complete any more (%d of %d rows), nor may those of others be", stamp(t.To), in.Rows(), n)
	}
	if r.Binary != "" && t.Binary != "" && t.Binary != r.Binary {
		r.approximate("from %s on it was judged live by another program (%s, this is %s)", stamp(t.To), t.Binary, r.Binary)
	}
	if !r.AsLive {
		if t.Rules != r.Rules.Revision || t.Catalogue != r.Catalogue.Revision {
			r.approximate("from %s on it was judged live by other rules or another catalogue", stamp(t.To))
		}
		return nil
	}
	d, ok, err := r.detector.Configured(ctx, r.history, t, r.config())
	r.otherRules = !ok && t.Rules != r.Rules.Revision
	switch {
	case errors.Is(err, detect.ErrNoAnswer):
		return err
	case err != nil:
		r.approximate("the rules or the catalogue of %s can't be used by this program, others stand in: %v", stamp(t.To), err)
	case !ok:
		r.approximate("the rules or the catalogue of %s are not stored, others stand in", stamp(t.To))
	}
	r.detector = d
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
