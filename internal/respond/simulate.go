package respond

import (
	"fmt"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/respond/route"
)

// Page is one time that somebody would have been woken.
type Page struct {
	At       time.Time         `json:"at"`
	Severity incident.Severity `json:"severity"`
	Receiver string            `json:"receiver"`
	Reason   string            `json:"reason"`
	Incident string            `json:"-"`
}

// Outline makes places from a routes file alone: no secret is read, nothing can be sent. It serves simulations and checks.
func Outline(cfg *route.Config) []Place {
	var out []Place
	for _, r := range cfg.Receivers {
		for _, i := range r.Integrations {
			id := i.Kind.Name + "/" + r.Name.Value
			if i.Index > 0 {
				id = fmt.Sprintf("%s/%d", id, i.Index)
			}
			out = append(out, Place{ID: id, Receivers: []string{r.Name.Value}, Kind: i.Kind.Name, Pages: i.Kind.Pages})
		}
	}
	return out
}

// Simulate says whom the events would have woken, with every message delivered at once and nobody acknowledging. Time is
// event time; the lag of the recording's clock is ignored.
func Simulate(cfg *route.Config, set Settings, events []incident.Event) []Page {
	places := Outline(cfg)
	p := NewPlanner(cfg, places, set)
	var out []Page
	for i := 0; i < len(events); {
		now, tick := events[i].At, events[i].Tick
		for ; i < len(events) && events[i].Tick == tick && events[i].At.Equal(now); i++ {
			p.Observe(events[i], true)
		}
		p.SetHead(Head{Tick: tick, To: now, Clock: now})
		p.Plan(now)
		for k := range places {
			for {
				step, ok, _ := p.Take(places[k].ID, now)
				if !ok {
					break
				}
				a := step.Delivery.Action
				if places[k].Pages && step.Delivery.wakes() {
					reason := "declared"
					if a == ActionRaise {
						reason = "severity rose"
					}
					out = append(out, Page{At: now, Severity: step.Said.Severity, Receiver: step.Receiver, Incident: step.Incident,
						Reason: reason + ": " + Headline(step.Delivery.Notice)})
				}
				p.Done(step, Receipt{}, nil, now)
			}
		}
		clear(p.dirty)
	}
	return out
}
