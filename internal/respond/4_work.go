package respond

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// work serves one place until ctx ends; which sender it has may change with the routes. Each place has a goroutine of its own, so a dead provider delays nobody
// else, and asks for one step at a time, so what it sends is decided at the last moment.
func (l *Loop) work(ctx context.Context, id string, kicked <-chan struct{}) {
	idle := time.NewTimer(time.Hour)
	defer idle.Stop()
	for ctx.Err() == nil {
		wait := time.Second
		if l.mayLead() {
			l.mu.Lock()
			p := l.planner.places[id]
			step, ok, wake := l.planner.Take(id, l.Now())
			l.mu.Unlock()
			if ok {
				l.deliver(ctx, p, step)
				continue
			}
			if wait = time.Hour; !wake.IsZero() {
				wait = max(time.Millisecond, wake.Sub(l.Now()))
			}
		}
		idle.Reset(wait)
		select {
		case <-ctx.Done():
		case <-kicked:
		case <-idle.C:
		}
	}
}

func (l *Loop) mayLead() bool { return l.Lead == nil || l.Lead() }

// deliver writes the attempt down, makes it, and writes down what came of it. A kill between the first and the last
// leaves a record in flight, which the next process treats as uncertain.
func (l *Loop) deliver(ctx context.Context, p *Place, step Step) {
	l.save(ctx)
	begun := l.Now()
	receipt, sendErr := l.send(ctx, p, step)
	step.bare = receipt.Bare
	now := l.Now()
	l.Metrics.duration.WithLabelValues(p.Kind).Observe(now.Sub(begun).Seconds())
	l.mu.Lock()
	attempts := 0
	if r := l.planner.records[step.Record]; r != nil {
		attempts = r.Attempts
	}
	l.planner.Done(step, receipt, sendErr, now)
	l.mu.Unlock()
	l.save(ctx)
	l.report(p, step, sendErr, attempts)
}

// send calls the sender with a deadline. When the process is told to stop, a message on its way gets a little
// time to arrive, so that its outcome is known.
func (l *Loop) send(ctx context.Context, p *Place, step Step) (receipt Receipt, sendErr *SendError) {
	defer func() {
		if r := recover(); r != nil { // a sender's mistake must not end all other pages
			sendErr = &SendError{Class: Permanent, Reason: ReasonInternal, Unknown: true, Err: fmt.Errorf("the sender of %s panicked: %v", p.ID, r)}
		}
	}()
	if !l.mayLead() {
		return Receipt{}, &SendError{Class: Retry, Reason: ReasonInternal, Err: errors.New("another process leads now")}
	}
	sendCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.Settings.SendTimeout.Std())
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(stopTimeout, cancel) })
	defer stop()
	receipt, err := p.Sender.Send(sendCtx, step.Delivery)
	if err != nil {
		return Receipt{}, Classify(err)
	}
	return receipt, nil
}

func (l *Loop) report(p *Place, step Step, sendErr *SendError, attempts int) {
	a := step.Delivery.Action
	log := l.Logger.With("incident", step.Incident, "place", p.ID, "receiver", step.Receiver, "action", string(a))
	if sendErr != nil {
		l.Metrics.failures.WithLabelValues(p.ID, p.Kind, string(sendErr.Reason)).Inc()
		if attempts == 1 || sendErr.Class == Permanent {
			log.Warn("deliver", "err", sendErr, "reason", string(sendErr.Reason))
		}
		return
	}
	l.Metrics.sent.WithLabelValues(p.ID, p.Kind, string(a)).Inc()
	page := p.Pages && step.Delivery.wakes()
	if step.bare != nil {
		l.Metrics.bare.WithLabelValues(p.ID, p.Kind).Inc()
		log.Warn("the message was refused and went out without its details", "err", step.bare, "reason", string(step.bare.Reason))
	}
	if page {
		l.Metrics.pages.WithLabelValues(p.ID, step.Said.Severity.String()).Inc()
	}
	if step.Delivery.Notice.Summary != nil && a == ActionOpen {
		kind := "missed"
		if p.Pages {
			kind = "storm"
		}
		l.Metrics.summaries.WithLabelValues(kind).Inc()
	}
	if page || a == ActionClose || attempts > 1 {
		log.Info("delivered", "attempts", attempts, "severity", step.Said.Severity.String())
	}
}
