package detect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// stages are one turn of the loop. Each looks at what the turn holds by then; the first that has nothing to do ends the
// turn. A turn that failed is repeated from its first stage that was not done, with the very same tick.
var stages = []struct {
	name string
	run  func(*Loop, context.Context) (more bool, err error)
}{
	{"plan", (*Loop).plan},         // which time may be judged by now?
	{"claim", (*Loop).claim},       // fix the tick and its inputs in the timeline
	{"evaluate", (*Loop).evaluate}, // the detector: windows, rules, incidents
	{"commit", (*Loop).commit},     // store what was concluded
}

// CommandSource hands out people's commands in a fixed order. The loop owns it and calls it from one goroutine.
type CommandSource interface {
	// Next returns the commands after those returned before, at most a few hundred; after a start it may repeat old ones,
	// which the detector knows by their ids.
	Next(ctx context.Context) ([]incident.Command, error)
}

// LoopOptions are what the loop works with. Timeline, Detector, Owner and Logger are required.
type LoopOptions struct {
	Timeline Timeline
	Commands CommandSource // nil: nobody commands
	// Detector makes a detector that knows nothing.
	Detector  func() *Detector
	Owner     string // who leads, for people
	Rules     string // revision of the rule files
	Catalogue string // revision of the catalogue
	Binary    string // version
	Poll      time.Duration
	// Hold is how long a partition that lags is waited for, by the ingest clock.
	Hold time.Duration
	// Grace is how far behind the watermark judging stays: events come a little out of order.
	Grace time.Duration
	// Notify is called after each commit that concluded something; it must return at once.
	Notify  func()
	Now     func() time.Time // the wall clock, for health only
	Logger  *slog.Logger
	Metrics *Metrics
}

// Loop is the second loop: it turns what ingest stored into findings and incidents, tick by tick. One works at a time;
// the timeline's epochs see to that.
type Loop struct {
	o        LoopOptions
	detector *Detector
	epoch    uint64
	last     Tick // done

	// The turn: what has been decided so far, kept when a later stage fails.
	next    *Tick
	inputs  *Inputs
	outputs *Outputs
	ordered []incident.Command // taken from the source, not yet in a committed tick

	mu     sync.Mutex
	health Health
}

// Health is the loop's state at one moment.
type Health struct {
	Tick         uint64
	To           time.Time // event time up to which all has been judged
	Clock        time.Time // the ingest clock then
	Partial      []signal.Stream
	Leading      bool
	LastTurn     time.Time // wall clock of the last turn without an error
	BlockedSince time.Time // wall clock, zero while turns succeed
	LastError    string
}

const (
	stepsMax        = 60 // steps of one tick while catching up
	checkpointEvery = 30 // ticks
	retryMax        = 10 * time.Second
)

// NewLoop fills in what was left out. Nothing is read before Run.
func NewLoop(o LoopOptions) *Loop {
	if o.Poll <= 0 {
		o.Poll = time.Second
	}
	if o.Hold <= 0 {
		o.Hold = 2 * time.Minute
	}
	if o.Grace <= 0 {
		o.Grace = signal.BucketSize
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Notify == nil {
		o.Notify = func() {}
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	return &Loop{o: o}
}

// Run takes the lead and works until ctx ends, and returns nil then. It returns ErrSuperseded, wrapped, when another
// detector has taken the lead; it may then be called again, and begins anew from what is stored.
func (l *Loop) Run(ctx context.Context) error {
	defer l.setLeading(false)
	if err := l.retry(ctx, "begin", l.begin); err != nil {
		return ended(ctx, err)
	}
	l.setLeading(true)
	for ctx.Err() == nil {
		worked := false
		if err := l.retry(ctx, "tick", func(ctx context.Context) (err error) {
			worked, err = l.turn(ctx)
			return err
		}); err != nil {
			return ended(ctx, err)
		}
		if !worked {
			pause(ctx, l.o.Poll)
		}
	}
	return nil
}

// turn runs the stages; worked tells whether a tick was made.
func (l *Loop) turn(ctx context.Context) (worked bool, err error) {
	for _, s := range stages {
		more, err := s.run(l, ctx)
		if err != nil {
			return worked, fmt.Errorf("%s: %w", s.name, err)
		}
		if !more {
			return worked, nil
		}
		worked = true
	}
	return worked, nil
}

// begin claims an epoch and brings a new detector to where the last one was. Old ticks are replayed for the state they
// leave; what they concluded is stored already, but for the last one if nobody finished it.
func (l *Loop) begin(ctx context.Context) error {
	l.next, l.inputs, l.outputs, l.ordered = nil, nil, nil, nil
	epoch, err := l.o.Timeline.Lead(ctx, l.o.Owner)
	if err != nil {
		return err
	}
	r, err := l.o.Timeline.Resume(ctx)
	if err != nil {
		return err
	}
	began := l.o.Now()
	l.epoch, l.detector, l.last = epoch, l.o.Detector(), Tick{}
	if r.Checkpoint != nil {
		if err := l.detector.Restore(r.Checkpoint); err != nil {
			return fmt.Errorf("restore the checkpoint of tick %d: %w", r.CheckpointTick, err)
		}
	}
	for i := range r.Ticks {
		out := l.detector.Tick(r.Ticks[i])
		l.last = r.Ticks[i].Tick
		if i == len(r.Ticks)-1 && r.Unfinished {
			if err := l.o.Timeline.Commit(ctx, l.last, out); err != nil {
				return fmt.Errorf("finish tick %d: %w", l.last.Number, err)
			}
		}
	}
	if len(r.Ticks) == 0 && r.CheckpointTick > 0 {
		l.last = Tick{Number: r.CheckpointTick}
	}
	l.o.Logger.Info("leading", "epoch", epoch, "tick", l.last.Number, "to", l.last.To, "replayed", len(r.Ticks), "took", l.o.Now().Sub(began).Round(time.Millisecond))
	return nil
}

// claim stores the planned tick. What comes back counts: a former leader may have stored one of this number.
func (l *Loop) claim(ctx context.Context) (bool, error) {
	if l.inputs != nil {
		return true, nil
	}
	in, err := l.o.Timeline.Claim(ctx, *l.next)
	if err != nil {
		return false, err
	}
	l.inputs = &in
	return true, nil
}

// evaluate runs the detector, exactly once for each tick: its state moves on.
func (l *Loop) evaluate(context.Context) (bool, error) {
	if l.outputs != nil {
		return true, nil
	}
	began := l.o.Now()
	out := l.detector.Tick(*l.inputs)
	if l.inputs.Tick.Number%checkpointEvery == 0 {
		var err error
		if out.Checkpoint, err = l.detector.Snapshot(); err != nil {
			return false, fmt.Errorf("take a checkpoint: %w", err)
		}
	}
	l.outputs = &out
	l.o.Metrics.evaluated(l.inputs, &out, l.o.Now().Sub(began))
	return true, nil
}

func (l *Loop) commit(ctx context.Context) (bool, error) {
	t, out := l.inputs.Tick, l.outputs
	if err := l.o.Timeline.Commit(ctx, t, *out); err != nil {
		return false, err
	}
	l.last = t
	l.ordered = slices.DeleteFunc(l.ordered, func(c incident.Command) bool {
		return slices.ContainsFunc(t.Commands, func(d incident.Command) bool { return c.ID == d.ID })
	})
	l.next, l.inputs, l.outputs = nil, nil, nil
	if len(out.Events) > 0 || len(out.Warnings) > 0 {
		l.o.Notify()
	}
	return true, nil
}

func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, ErrSuperseded) {
		return nil
	}
	return err
}
