package detect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// CommandSource gives what people said. The loop calls it from one goroutine; the adapter owns the reading and closes
// itself when the application stops.
type CommandSource interface {
	// Pending returns, without waiting, commands that no committed tick carries yet, in order, at most limit. It may give one again.
	Pending(limit int) []incident.Command
	// Done says that a committed tick carries these, so they need not be given again, not even after a restart.
	Done([]incident.Command)
}

// LoopConfig are the settings of the loop; zero values mean the defaults.
type LoopConfig struct {
	Detector Config
	Owner    string // who takes the lead, for the log
	Binary   string // version, recorded in each tick
	Poll     time.Duration
	// Grace is how long after a bucket's end its rows may still come.
	Grace time.Duration
	// Hold is for how long of the ingest clock one partition's lag holds all up.
	Hold            time.Duration
	MaxSteps        int // in one tick, while catching up
	CheckpointEvery int // ticks at most
	// CheckpointRows is after how many rows at most. Whoever goes on after a crash reads and judges them again: with 100,000
	// series that is seconds a tick.
	CheckpointRows int
	MaxCommands    int // in one tick
	// Notify is called after each commit, from the loop's goroutine; it must not block.
	Notify   func()
	Commands CommandSource // nil: none
	Querier  Querier       // of sql rules; nil: none of them is ever answered
	Logger   *slog.Logger
	Metrics  *Metrics
	// Now is the wall clock, for Health alone.
	Now func() time.Time
}

// What the loop does if nothing else is said: a checkpoint after so many ticks, or so many rows.
const (
	CheckpointTicks = 30
	CheckpointRows  = 500_000
)

func (c *LoopConfig) setDefaults() {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&c.Poll, 500*time.Millisecond)
	def(&c.Grace, 10*time.Second)
	def(&c.Hold, 2*time.Minute)
	for _, n := range []struct {
		v *int
		d int
	}{{&c.MaxSteps, 60}, {&c.CheckpointEvery, CheckpointTicks}, {&c.CheckpointRows, CheckpointRows}, {&c.MaxCommands, 100}} {
		if *n.v <= 0 {
			*n.v = n.d
		}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Metrics == nil {
		c.Metrics = NewMetrics(nil)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Notify == nil {
		c.Notify = func() {}
	}
}

// Loop is the second loop. It owns its Detector; it does not own the Timeline, which it leaves open.
type Loop struct {
	cfg      LoopConfig
	timeline Timeline
	detector *Detector
	epoch    uint64
	number   uint64 // of the last tick
	hold     hold
	asker    *asker // of sql rules
	since    int    // rows judged after the last checkpoint
	// checkpointed is the tick of the last checkpoint that this loop made.
	checkpointed uint64
	unsaved      *round          // evaluated, but its commit has not been seen to succeed
	last         *Tick           // that this loop committed; nil before the first
	kept         map[string]bool // revisions whose text is stored
	mu           sync.Mutex      // guards next
	next         *Config         // of ticks to come
	health       healthBox
}

// NewLoop makes a loop that has not started.
func NewLoop(t Timeline, cfg LoopConfig) *Loop {
	cfg.setDefaults()
	cfg.Detector.setDefaults()
	return &Loop{
		cfg: cfg, timeline: t, detector: New(cfg.Detector), kept: map[string]bool{}, next: &cfg.Detector,
		asker: newAsker(cfg.Querier, cfg.Metrics, cfg.Logger, cfg.Now),
	}
}

// round is one tick on its way through the stages.
type round struct {
	progress Progress
	idle     bool
	cfg      *Config // with which it is to be evaluated
	tick     Tick
	in       Inputs
	out      Outputs
}

// Run leads until the context ends (nil) or another detector takes over (ErrSuperseded). Other errors are retried and show in
// Health. It must be called once.
func (l *Loop) Run(ctx context.Context) error {
	defer l.asker.wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.detector = New(*l.wanted())
	started := false
	failures := 0
	for {
		worked, err := false, error(nil)
		if !started {
			if err = l.start(ctx); err == nil {
				started, worked = true, true
			}
		} else {
			worked, err = l.turn(ctx)
		}
		switch {
		case ctx.Err() != nil:
			l.leave(ctx)
			return nil
		case errors.Is(err, ErrSuperseded):
			l.health.superseded(err)
			return err
		case err != nil:
			if failures == 0 {
				l.cfg.Logger.Error("detection is blocked, trying again", "err", err)
			}
			failures++
			l.health.failed(err, l.cfg.Now())
		case failures > 0:
			l.cfg.Logger.Info("detection goes on", "tries", failures+1)
			failures = 0
			l.health.recovered()
		}
		if worked && err == nil {
			continue
		}
		wait := l.cfg.Poll << min(failures, 4)
		select {
		case <-ctx.Done():
			l.leave(ctx)
			return nil
		case <-time.After(min(wait, max(5*time.Second, l.cfg.Poll))):
		}
	}
}

// leaveWithin bounds the last write of a loop that was told to end.
const leaveWithin = 5 * time.Second

// leave stores the state after the last tick, so that the next detector has nothing to replay. Mostly it has other rules
// than this one: what those would have concluded from ticks that are done is in no log, so nobody would be paged for it.
func (l *Loop) leave(ctx context.Context) {
	if l.unsaved != nil || l.last == nil || l.last.Number != l.number || l.checkpointed == l.number {
		return
	}
	state, err := l.detector.Snapshot()
	if err == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
		defer cancel()
		err = l.timeline.Commit(ctx, *l.last, Outputs{Checkpoint: state})
	}
	if err != nil {
		l.cfg.Logger.Warn("leaving without a checkpoint: the next detector replays", "tick", l.number, "err", err)
	}
}

// start takes the lead and comes to where the last leader was.
func (l *Loop) start(ctx context.Context) error {
	epoch, err := l.timeline.Lead(ctx, l.cfg.Owner)
	if err != nil {
		return l.fail("lead", err)
	}
	l.epoch = epoch
	l.health.leads(epoch)
	if err := l.resume(ctx); err != nil {
		return l.fail("resume", err)
	}
	l.cfg.Logger.Info("leads", "epoch", epoch, "tick", l.number, "position", l.detector.Position())
	return nil
}

// turn is one round of the loop: these are its stages.
func (l *Loop) turn(ctx context.Context) (worked bool, err error) {
	if l.unsaved != nil {
		if err := l.save(ctx, l.unsaved); err != nil {
			return false, l.fail("commit", err)
		}
		l.unsaved = nil
	}
	var r round
	for _, stage := range []struct {
		name string
		do   func(context.Context, *round) error
	}{
		{"progress", l.progress}, // how far has ingest come?
		{"decide", l.decide},     // up to when can be judged?
		{"claim", l.claim},       // the rows that no tick saw, stored with the tick
		{"evaluate", l.evaluate}, // the pure part
		{"commit", l.commit},     // findings and incident log
	} {
		if err := stage.do(ctx, &r); err != nil {
			return false, l.fail(stage.name, err)
		}
		if r.idle {
			return false, nil
		}
	}
	return true, nil
}

func (l *Loop) fail(stage string, err error) error {
	l.cfg.Metrics.failures.WithLabelValues(stage).Inc()
	return fmt.Errorf("%s: %w", stage, err)
}

func (l *Loop) progress(ctx context.Context, r *round) (err error) {
	r.progress, err = l.timeline.Progress(ctx)
	return err
}

// decide chooses the tick. With nothing new to judge a tick still carries commands.
func (l *Loop) decide(ctx context.Context, r *round) error {
	l.asker.ask(ctx, l.detector.questions())
	to, partial := l.hold.decide(&r.progress, l.cfg.Grace, l.cfg.Hold)
	from := l.detector.Position()
	var commands []incident.Command
	if l.cfg.Commands != nil {
		commands = l.cfg.Commands.Pending(l.cfg.MaxCommands)
	}
	switch {
	case from.IsZero() && to.IsZero():
		r.idle = true // nothing has ever come
	case from.IsZero():
		from = to // the first tick takes in what there is, and so finds where to begin
	case !to.After(from):
		to = from
		r.idle = len(commands) == 0
	default:
		to = minTime(to, from.Add(spanOf(l.steps(buckets(to.Sub(from))))))
	}
	// What has been judged, not where the next tick begins: the first one begins at the end, and then finds its past.
	at := l.detector.Position()
	l.health.judged(r.progress.Clock, at, r.idle, l.cfg.Now())
	if !at.IsZero() {
		l.cfg.Metrics.lag.Set(r.progress.Clock.Sub(at).Seconds())
	}
	// Other rules begin with a tick that evaluates something: findings that they end have to end at some time.
	var heard []Answer
	if to.After(from) {
		heard = l.asker.pending()
	}
	cfg := &l.detector.cfg
	if to.After(from) || l.detector.at == 0 {
		cfg = l.wanted()
	}
	r.cfg = cfg
	r.tick = Tick{
		Number: l.number + 1, Epoch: l.epoch, From: from, To: to, Marks: r.progress.Marks, Clock: r.progress.Clock, Partial: partial,
		Commands: commands, Answers: heard, Rules: cfg.Rules.Revision, Catalogue: cfg.Catalogue.Revision, Binary: l.cfg.Binary,
	}
	return nil
}

// steps bounds a tick. What a tick takes in depends on how far ingest has come, not on its steps, so a backlog of days is
// judged in longer ticks: the round trips of a week of short ones take minutes.
func (l *Loop) steps(behind int64) int64 {
	most := int64(l.cfg.MaxSteps)
	return min(behind, max(most, min(behind/10, 12*most)))
}

func minTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// claim may return a tick that an earlier leader stored under this number: then that one counts.
func (l *Loop) claim(ctx context.Context, r *round) (err error) {
	if err := l.keep(ctx, r.cfg); err != nil {
		return err
	}
	r.in, err = l.timeline.Claim(ctx, r.tick)
	r.tick = r.in.Tick
	return err
}

func (l *Loop) evaluate(ctx context.Context, r *round) error {
	began := l.cfg.Now()
	d, err := l.configure(ctx, l.detector, &r.tick)
	if err != nil {
		return err
	}
	if d != l.detector {
		l.cfg.Logger.Info("other rules are in force", "tick", r.tick.Number, "from", r.tick.From, "before", l.detector.cfg.revisions(), "now", d.cfg.revisions())
		l.detector = d
	}
	r.out = l.detector.Tick(r.in)
	r.out.Seen = r.in.Rows()
	l.number = r.tick.Number
	l.cfg.Metrics.evaluated(&r.tick, l.cfg.Now().Sub(began))
	l.unsaved = r // from here on the detector has moved: the outputs must be stored before the next tick
	return l.checkpoint(&r.out, r.tick.Number)
}

// checkpoint adds the state to a tick's outputs now and then. A repeated commit carries the outputs that were made once; of a tick
// that two leaders judge either may have one, and both are the same.
func (l *Loop) checkpoint(out *Outputs, number uint64) (err error) {
	l.since += out.Seen
	if number%uint64(l.cfg.CheckpointEvery) != 0 && l.since < l.cfg.CheckpointRows {
		return nil
	}
	if out.Checkpoint, err = l.detector.Snapshot(); err != nil {
		return err
	}
	l.since, l.checkpointed = 0, number
	l.cfg.Metrics.checkpoint.Set(float64(len(out.Checkpoint)))
	return nil
}

func (l *Loop) commit(ctx context.Context, r *round) error {
	if err := l.save(ctx, r); err != nil {
		return err
	}
	l.unsaved = nil
	return nil
}

// save stores the outputs and then tells those who wait for them.
func (l *Loop) save(ctx context.Context, r *round) error {
	if err := l.timeline.Commit(ctx, r.tick, r.out); err != nil {
		return err
	}
	if l.cfg.Commands != nil && len(r.tick.Commands) > 0 {
		l.cfg.Commands.Done(r.tick.Commands)
	}
	l.asker.done(r.tick.Answers)
	l.last = &r.tick
	l.health.committed(&r.tick, l.detector.Position())
	l.cfg.Metrics.concluded(&r.out)
	for _, e := range r.out.Events {
		if e.Type == incident.EventDeclared {
			l.cfg.Logger.Warn("incident declared", "incident", e.Incident, "severity", e.After.Severity.String(), "title", e.After.Title, "at", e.At)
		}
	}
	l.cfg.Notify()
	return nil
}
