package respond

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// DrillResult says what one place made of a drill.
type DrillResult struct {
	Place, Kind  string
	Receivers    []string
	Opened       bool
	Closed       bool
	Reason       Reason // of the last failure
	OpenedWithin time.Duration
}

// drillCloses is how long a drill that did not reach every place in time still tries to close what it opened.
const drillCloses = 5 * time.Second

// Drill sends an incident marked TEST through routes, outbox and receivers, waits until every place that the routes
// chose has been told, and closes it. It needs neither ClickHouse nor Kafka: o.Log is not used. labels choose the route
// (service, team, …). The result lists the places reached; ctx bounds the wait for them. What was opened is closed even
// when ctx has ended: nobody else knows of it, so a page left open would stay open.
func Drill(ctx context.Context, o Options, labels map[string]string) ([]DrillResult, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	log := &MemoryLog{}
	o.Log, o.Poll = log, 50*time.Millisecond
	l, err := New(o)
	if err != nil {
		return nil, err
	}
	begun := o.Now()
	event := drillEvent(begun, labels)
	log.Append(event)
	runCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- l.Run(runCtx) }()
	defer func() { stop(); <-ended }() //nolint:errcheck // it was told to stop

	results := map[string]*DrillResult{}
	settle := func(ctx context.Context, status Status, note func(d *DrillResult, done bool)) error {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			l.mu.Lock()
			all, found := true, false
			for _, r := range l.planner.byID[event.Incident] {
				found = true
				if results[r.Place] == nil {
					results[r.Place] = &DrillResult{Place: r.Place, Kind: r.Kind, Receivers: l.planner.places[r.Place].Receivers}
				}
				results[r.Place].Reason = r.Failure
				// What never opened, for certain, needs no close.
				done := r.Got.Status == status || status == Closed && r.Want.Status == Closed && r.Got.Status == None && !r.Uncertain && l.planner.places[r.Place].Pages
				note(results[r.Place], done)
				all = all && (done || r.Permanent)
			}
			l.mu.Unlock()
			if found && all {
				return nil
			}
			select {
			case err := <-ended:
				ended <- err
				return fmt.Errorf("drill: the loop ended: %w", err)
			case <-ctx.Done():
				return fmt.Errorf("drill: not every place was reached: %w", ctx.Err())
			case <-tick.C:
			}
		}
	}
	list := func() []DrillResult {
		var out []DrillResult
		for _, id := range slices.Sorted(maps.Keys(results)) {
			out = append(out, *results[id])
		}
		return out
	}
	opened := settle(ctx, Opened, func(d *DrillResult, done bool) {
		if done && !d.Opened {
			d.Opened, d.OpenedWithin = true, o.Now().Sub(begun)
		}
	})
	why := map[string]Reason{} // closing begins the count of failures anew
	for id, d := range results {
		if !d.Opened {
			why[id] = d.Reason
		}
	}
	log.Append(closeDrill(event, o.Now()))
	until := time.Now().Add(drillCloses)
	if d, ok := ctx.Deadline(); ok && d.After(until) {
		until = d
	}
	closing, cancel := context.WithDeadline(runCtx, until)
	defer cancel()
	closed := settle(closing, Closed, func(d *DrillResult, done bool) { d.Closed = done })
	errs := []error{opened, closed}
	for _, d := range list() {
		switch reason, missed := why[d.Place]; {
		case missed:
			errs = append(errs, fmt.Errorf("drill: %s was not told: %s", d.Place, cmp.Or(reason, "no answer yet")))
		case !d.Closed:
			errs = append(errs, fmt.Errorf("drill: the TEST at %s could not be closed, close it by hand: %s", d.Place, cmp.Or(d.Reason, "no answer yet")))
		}
	}
	return list(), errors.Join(errs...)
}

func drillEvent(now time.Time, labels map[string]string) incident.Event {
	id := "drill-" + now.UTC().Format("20060102T150405.000")
	l := map[string]string{"drill": "true", "service": "tocsin"}
	maps.Copy(l, labels)
	return incident.Event{
		Incident: id, Sequence: 1, At: now, Clock: now, Type: incident.EventDeclared, Reason: "a drill", Tick: 1,
		After: incident.Incident{
			ID: id, Title: "TEST: a drill of the way from Tocsin to you", State: incident.Declared, Severity: incident.Critical,
			Sequence: 1, Services: []string{l["service"]}, Page: true, StartedAt: now, FirstFindingAt: now, DeclaredAt: now,
			Reason: "A drill. Nothing is wrong; no action is needed. It closes itself.", Labels: l,
			Impact: incident.Impact{Kind: incident.ImpactFailures},
			Paths:  []incident.PathImpact{{Path: signal.Path{Service: l["service"], Operation: "drill", Access: signal.Write}}},
		},
	}
}

func closeDrill(e incident.Event, now time.Time) incident.Event {
	e.Sequence, e.At, e.Clock, e.Tick, e.Type, e.Reason = 2, now, now, 2, incident.EventResolved, "the drill is over"
	e.After.State, e.After.Sequence, e.After.ResolvedAt, e.After.Reason = incident.Resolved, 2, now, "The drill is over."
	return e
}
