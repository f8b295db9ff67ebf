package detect

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// plan decides the next tick from what is stored by now, or that there is none yet.
func (l *Loop) plan(ctx context.Context) (bool, error) {
	if l.next != nil {
		return true, nil
	}
	p, err := l.o.Timeline.Progress(ctx)
	if err != nil {
		return false, err
	}
	if l.o.Commands != nil && len(l.ordered) == 0 {
		if l.ordered, err = l.o.Commands.Next(ctx); err != nil {
			return false, err
		}
	}
	t, ok := nextTick(l.last, l.detector.Position(), p, l.o.Hold, l.o.Grace)
	l.report(p, t)
	if !ok && len(l.fresh()) == 0 || len(p.Marks) == 0 {
		return false, nil
	}
	t.Epoch, t.Rules, t.Catalogue, t.Binary, t.Commands = l.epoch, l.o.Rules, l.o.Catalogue, l.o.Binary, l.fresh()
	l.next = &t
	return true, nil
}

// fresh are the commands that no tick has carried yet, so that a source that repeats itself makes no ticks.
func (l *Loop) fresh() (out []incident.Command) {
	for _, c := range l.ordered {
		if !l.detector.Knows(c) {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		l.ordered = nil
	}
	return out
}

// nextTick is pure: from the last tick and the ledger to the next one. ok tells whether it would evaluate anything.
//
// Every partition has to be past a time before it is judged, or a late partition's rows would be missed. One that has
// lagged for longer than hold is no longer waited for: its stream is marked partial, and its silence says nothing.
func nextTick(last Tick, position time.Time, p Progress, hold, grace time.Duration) (t Tick, ok bool) {
	t = Tick{Number: last.Number + 1, From: position, To: position, Marks: p.Marks, Clock: p.Clock}
	limit := time.Time{}
	for _, m := range p.Marks {
		if p.Clock.Sub(m.Watermark) > hold && !m.Watermark.IsZero() {
			if !slices.Contains(t.Partial, m.Stream) {
				t.Partial = append(t.Partial, m.Stream)
			}
			continue
		}
		if limit.IsZero() || m.Watermark.Before(limit) {
			limit = m.Watermark
		}
	}
	slices.Sort(t.Partial)
	if len(t.Partial) > 0 && caughtUpNone(p, hold) {
		// Nothing is current: this is a backlog being read, not a partition that lags behind others.
		t.Partial, limit = nil, oldest(p)
	}
	to := signal.BucketOf(limit.Add(-grace))
	if limit.IsZero() || to.Before(position) {
		return t, false
	}
	if position.IsZero() {
		// The first tick takes in what there is; the detector then says where the past begins.
		t.From, t.To = to, to
		return t, true
	}
	if most := position.Add(stepsMax * signal.BucketSize); to.After(most) {
		to = most
	}
	t.To = to
	return t, to.After(position)
}

func caughtUpNone(p Progress, hold time.Duration) bool {
	for _, m := range p.Marks {
		if p.Clock.Sub(m.Watermark) <= hold {
			return false
		}
	}
	return true
}

func oldest(p Progress) (t time.Time) {
	for i, m := range p.Marks {
		if i == 0 || m.Watermark.Before(t) {
			t = m.Watermark
		}
	}
	return t
}

// report brings health and metrics up to date.
func (l *Loop) report(p Progress, t Tick) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.health.Tick, l.health.To, l.health.Clock, l.health.Partial = l.last.Number, l.detector.Position(), p.Clock, t.Partial
	l.o.Metrics.at(l.health)
}

// Health takes a snapshot.
func (l *Loop) Health() Health {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.health
	h.Partial = slices.Clone(h.Partial)
	return h
}

func (l *Loop) setLeading(v bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.health.Leading = v
}

// retry repeats f until it succeeds, ctx ends or the lead is lost. The timeline's failures are not ours to judge: while
// the database is down nothing can be concluded, and when it is back all goes on with the same tick.
func (l *Loop) retry(ctx context.Context, what string, f func(context.Context) error) error {
	for wait := l.o.Poll; ; wait = min(2*wait, retryMax) {
		err := f(ctx)
		if errors.Is(err, ErrSuperseded) || ctx.Err() != nil {
			return err
		}
		l.outcome(what, err)
		if err == nil {
			return nil
		}
		pause(ctx, wait)
	}
}

func (l *Loop) outcome(what string, err error) {
	l.mu.Lock()
	first := err != nil && l.health.BlockedSince.IsZero()
	since := l.health.BlockedSince
	switch {
	case err == nil:
		l.health.LastTurn, l.health.BlockedSince, l.health.LastError = l.o.Now(), time.Time{}, ""
	case first:
		l.health.BlockedSince = l.o.Now()
		fallthrough
	default:
		l.health.LastError = err.Error()
	}
	l.mu.Unlock()
	switch {
	case err != nil:
		l.o.Metrics.failures.Inc()
		if first {
			l.o.Logger.Warn("detecting is interrupted, trying on", "at", what, "err", err)
		}
	case !since.IsZero():
		l.o.Logger.Info("detecting goes on", "after", l.o.Now().Sub(since).Round(time.Second))
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// Knows tells whether a command has been carried out already: a source may repeat itself after a restart.
func (d *Detector) Knows(c incident.Command) bool { return slices.Contains(d.seen, c.ID) }
