// Package explain answers for one symptom that a person names (this service fails, or is slow, now) where it is, what may
// have caused it, and how sure that is, from a past that is handed to it. It needs no rule and no finding; what it knows of
// slices and suspects it has from the packages that serve live incidents.
package explain

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/detect/localise"
	"github.com/tocsin-project/tocsin/internal/detect/suspect"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Signal is what a person noticed.
type Signal string

const (
	Failures Signal = "failures"
	Latency  Signal = "latency"
)

// Symptom is what is to be explained. Operation, Access and Signal may be missing: then all operations count, and the
// signal that departs more.
type Symptom struct {
	Service   string
	Operation string
	Access    *signal.Access
	Signal    Signal
	At        time.Time
}

func (s *Symptom) covers(p signal.Path) bool {
	return p.Service == s.Service && (s.Operation == "" || p.Operation == s.Operation) && (s.Access == nil || p.Access == *s.Access)
}

// String names the symptom's paths.
func (s *Symptom) String() string {
	out := s.Service
	if s.Operation != "" {
		out += " " + s.Operation
	}
	if s.Access != nil {
		out += " " + s.Access.String()
	}
	return out
}

// maxScope is how many slices an answer lists.
const maxScope = 10

// NoRequests says that the symptom's paths had no requests in the time that is looked at.
type NoRequests struct {
	Symptom Symptom
	Seen    []string // services that had some
}

func (e *NoRequests) Error() string {
	text := fmt.Sprintf("no requests of %s in the %.0f hours before %s", &e.Symptom, Lookback.Hours(), e.Symptom.At.UTC().Format(time.RFC3339))
	if len(e.Seen) > 0 {
		text += fmt.Sprintf("; services with some: %s", list(e.Seen, 10))
	}
	return text
}

// Explain answers from what was added.
func (p *Past) Explain(cat *catalogue.Catalogue) (*Answer, error) {
	p.lighten(maxLeaves)
	var own []*series
	seen := map[string]bool{}
	for path, s := range p.paths {
		seen[path.Service] = true
		if p.symptom.covers(path) {
			own = append(own, s)
		}
	}
	if len(own) == 0 {
		return nil, &NoRequests{p.symptom, slices.Sorted(maps.Keys(seen))}
	}
	t := p.symptomTrouble(own)
	out := &Answer{Scope: p.scope(t), Evidence: p.evidence(t)}
	out.Suspects = p.suspects(cat, t, out.Scope)
	return out, nil
}

// symptomTrouble looks twice: what is usual, and so the bound of what is slow, is better known once the onset is.
func (p *Past) symptomTrouble(own []*series) *trouble {
	var best *trouble
	for _, m := range []Signal{Failures, Latency} {
		if p.symptom.Signal != "" && m != p.symptom.Signal {
			continue
		}
		t := p.look(m, time.Time{}, own...)
		if m == Latency && t.found {
			if again := p.look(m, t.onset, own...); again.found && again.Evidence >= t.Evidence {
				t = again
			}
		}
		if best == nil || t.found && (!best.found || t.Evidence > best.Evidence) {
			best = t
		}
	}
	if !best.convincing() && best.grid.blocks > 0 {
		// The person says that something is wrong now: then the newest block is what differs, if anything does.
		best.Change, best.found = localise.Since(best.rows, best.grid.blocks-1)
		best.At = best.grid.blocks - 1
		best.onset = best.began(p)
	}
	return best
}

// leafCounts puts the leaves into the localiser's terms.
func (p *Past) leafCounts(t *trouble) (out []localise.Leaf) {
	for _, k := range slices.SortedFunc(maps.Keys(p.leaves), signal.Key.Compare) {
		l := localise.Leaf{Attributes: k.Attributes}
		for at, c := range *p.leaves[k] {
			n, b := t.measure.of(c)
			if t.grid.place(at) < t.At {
				l.BeforeTotal += n
				l.BeforeFailures += b
			} else {
				l.Total += n
				l.Failures += b
			}
		}
		out = append(out, l)
	}
	return out
}

func (p *Past) scope(t *trouble) []incident.ScopeSlice {
	out := []incident.ScopeSlice{}
	for _, s := range localise.Scan(p.leafCounts(t), maxScope) {
		out = append(out, incident.ScopeSlice{Attributes: s.Attributes, Share: s.Share})
	}
	return out
}

// graphHops is how far a cause is looked for: a person asks at the front door, the fault may be deep.
const graphHops = 6

func (p *Past) suspects(cat *catalogue.Catalogue, t *trouble, scope []incident.ScopeSlice) []incident.Suspect {
	in := suspect.Input{
		Now: p.symptom.At, Slices: scope, Active: map[string]bool{}, Graph: cat, Symptom: p.symptom.Service, Hops: graphHops, Changes: p.changeList(),
	}
	near := neighbours(cat, p.symptom.Service)
	troubles := p.services(t.onset, t.signal, near)
	troubles[p.symptom.Service] = t
	shared, oddest := resources(cat, p.gaugesNear(cat, t.onset))
	in.Resources = shared
	for _, name := range slices.Sorted(maps.Keys(troubles)) {
		x, gs := troubles[name], oddest[name]
		in.Active[name] = x.wouldShow(t.Since - t.Before)
		if name != p.symptom.Service && (!near[name] || !x.convincing() && gs == nil) {
			continue
		}
		_, since := x.sums()
		s := suspect.Service{Name: name, Onset: x.onset, Decades: x.Evidence, Alike: x.signal == t.signal}
		s.Failures = uint64(max(0, since.Bad-since.Total*x.Before))
		if x.found {
			s.What = append(s.What, x.String())
		}
		in.Failing = append(in.Failing, withGauges(s, gs))
	}
	for _, name := range nodesOf(oddest, troubles) {
		in.Failing = append(in.Failing, withGauges(suspect.Service{Name: name, Alike: true, Unseen: true}, oddest[name]))
	}
	return suspect.Rank(&in)
}

// fewGauges is how many odd gauges of a service count: a fault shows in several, a coincidence in one.
const fewGauges = 4

// withGauges adds what the oddest gauges of a service say. A gauge is of no kind, so it is as like the symptom as any.
func withGauges(s suspect.Service, gs []*gauge) suspect.Service {
	decades := 0.0
	for i, g := range gs {
		if i == fewGauges {
			s.What = append(s.What, fmt.Sprintf("%d more of its gauges are odd", len(gs)-fewGauges))
			break
		}
		s.What = append(s.What, g.String())
		decades += g.decades()
		if s.Onset.IsZero() || g.since.Before(s.Onset) {
			s.Onset = g.since
		}
	}
	if decades > s.Decades {
		s.Decades, s.Alike = decades, true
	}
	return s
}

// neighbours are the services that may share a cause with one: what it depends on, and what depends on those or on it.
func neighbours(cat *catalogue.Catalogue, service string) map[string]bool {
	out := map[string]bool{}
	up := cat.Upstream(service, graphHops)
	for n := range up {
		out[n] = true
		for d := range cat.Dependents(n, graphHops) {
			out[d] = true
		}
	}
	for d := range cat.Dependents(service, graphHops) {
		out[d] = true
	}
	return out
}

func (p *Past) changeList() (out []suspect.Change) {
	ids := map[string]bool{}
	for id := range p.changes {
		ids[id] = true
	}
	for id := range p.ended {
		ids[id] = true
	}
	for id := range ids {
		c, end := p.changes[id], p.ended[id]
		x := suspect.Change{ID: id}
		for _, e := range []*signal.Change{end, c} {
			if e != nil {
				x.Target, x.Title, x.URL, x.Kind, x.Dose, x.Started = e.Target, e.Title, e.URL, e.Kind, e.Dose, e.Time
			}
		}
		if end != nil {
			x.Ended, x.Aborted = end.Time, end.Phase == signal.Aborted
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b suspect.Change) int {
		if c := a.Started.Compare(b.Started); c != 0 {
			return c
		}
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return out
}
