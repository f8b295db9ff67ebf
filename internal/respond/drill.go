package respond

import (
	"context"
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

// Drill sends an incident marked TEST through routes, outbox and receivers, waits until every place that the routes
// chose has been told, and closes it. It needs neither ClickHouse nor Kafka: o.Log is not used. labels choose the route
// (service, team, …). The result lists the places reached; ctx bounds the wait.
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
	runCtx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- l.Run(runCtx) }()
	defer func() { stop(); _ = <-ended }()

	results := map[string]*DrillResult{}
	settle := func(status Status, note func(*DrillResult, *Record)) error {
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
				if note(results[r.Place], r); r.Got.Status != status && !r.Permanent {
					all = false
				}
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
	if err := settle(Opened, func(d *DrillResult, r *Record) {
		if r.Got.Status == Opened && !d.Opened {
			d.Opened, d.OpenedWithin = true, o.Now().Sub(begun)
		}
	}); err != nil {
		return list(), err
	}
	log.Append(closeDrill(event, o.Now()))
	err = settle(Closed, func(d *DrillResult, r *Record) { d.Closed = r.Got.Status == Closed })
	for _, d := range results {
		if err == nil && (!d.Opened || !d.Closed) {
			err = fmt.Errorf("drill: %s was not reached: %s", d.Place, d.Reason)
		}
	}
	return list(), err
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
