package detect

import (
	"context"
	"errors"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
)

// WarmUp is how much of the past a detector goes through that cannot read the checkpoint: what rules look back on, and
// what has just ended.
const WarmUp = rule.MaxWindow + afterlife

// resume replays the ticks after the newest checkpoint. What they concluded is stored already, but for the last one if
// its leader did not finish it. Where the replay comes to something else than the log says, because the program or the
// rules changed, the log counts: people were told what stands there, and only there an incident can be ended for them.
func (l *Loop) resume(ctx context.Context) error {
	r, err := l.timeline.Resume(ctx)
	if err != nil {
		return err
	}
	d, recalled := New(*l.wanted()), false
	if r.Checkpoint != nil {
		if d, err = l.restored(ctx, r.Checkpoint); errors.Is(err, ErrNoAnswer) {
			return err
		} else if err != nil {
			l.cfg.Logger.Warn("the checkpoint is of another version: windows are filled from stored inputs, findings and incidents come from the log",
				"tick", r.CheckpointTick, "err", err)
			if r, err = l.timeline.Recall(ctx, WarmUp); err != nil {
				return err
			}
			d, recalled = New(*l.wanted()), true
		}
	}
	l.number, l.hold, l.unsaved = r.CheckpointTick, hold{}, nil
	l.since, l.checkpointed = 0, r.CheckpointTick
	if recalled {
		l.checkpointed = 0 // in a form that nobody reads
	}
	done := r.Ticks
	if r.Unfinished {
		done = done[:len(done)-1]
	}
	first := replayed{}
	for _, in := range done {
		if d, err = l.configure(ctx, d, &in.Tick); err != nil {
			return err
		}
		first.add(d.Tick(in).Transitions)
		l.since += in.Rows()
		l.number = in.Tick.Number
	}
	if n := d.reconcile(first, &r, recalled); n > 0 {
		l.cfg.Logger.Warn("the log says otherwise than the replay: what stands in the log goes on", "corrected", n)
	}
	l.detector = d
	if !r.Unfinished {
		return nil
	}
	in := r.Ticks[len(r.Ticks)-1]
	if d, err = l.configure(ctx, d, &in.Tick); err != nil {
		return err
	}
	l.detector = d
	out := d.Tick(in)
	out.Seen = in.Rows()
	l.number = in.Tick.Number
	if err := l.checkpoint(&out, in.Tick.Number); err != nil {
		return err
	}
	return l.save(ctx, &round{tick: in.Tick, in: in, out: out})
}

func keyOfFinding(f *incident.Finding) incident.FindingKey {
	k := f.Key
	k.Rule = f.Rule
	return k
}
