package backtest

import (
	"cmp"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// journal gathers what a detector concluded over one recording.
type journal struct {
	order    []string // incidents by first sight
	last     map[string]known
	moments  map[string][]Moment
	pages    map[string][]Page
	warnings []Warning
	findings []Finding
	// transitions are the findings as the detector tells them.
	transitions []incident.Transition
	events      []incident.Event
	traffic     traffic
	verdicts    map[string]Verdict // of responders, by incident
}

// known is an incident as of its newest event.
type known struct{ incident.Incident }

func (in *known) answersNone(l *Labels, end time.Time) bool {
	if in.DeclaredAt.IsZero() {
		return true
	}
	x := Incident{StartedAt: instant(in.StartedAt), DeclaredAt: instant(in.DeclaredAt), ResolvedAt: instant(in.ResolvedAt)}
	return !slices.ContainsFunc(l.Incidents, func(label Label) bool { return l.answers(&label, &x, end) })
}

func newJournal() *journal {
	return &journal{last: map[string]known{}, moments: map[string][]Moment{}, pages: map[string][]Page{}, verdicts: map[string]Verdict{}}
}

func (j *journal) add(events []incident.Event, warnings []incident.Warning, transitions []incident.Transition) {
	j.events = append(j.events, events...)
	for _, e := range events {
		if _, seen := j.last[e.Incident]; !seen {
			j.order = append(j.order, e.Incident)
		}
		j.last[e.Incident] = known{e.After}
		j.moments[e.Incident] = append(j.moments[e.Incident], moment(e))
	}
	for _, w := range warnings {
		j.warnings = append(j.warnings, Warning{
			At: w.At, Resource: w.Resource, Metric: w.Metric, Value: w.Value, Limit: number(w.Limit),
			ExhaustedAt: instant(w.ExhaustedAt), Rule: w.Rule, Guard: text(w.Guard), Suspects: suspects(w.Suspects),
		})
	}
	j.transitions = append(j.transitions, transitions...)
	for _, t := range transitions {
		k := t.Finding.Key
		j.findings = append(j.findings, Finding{
			At: t.At, Rule: t.Finding.Rule, Kind: t.Finding.Kind, State: t.Finding.State,
			Key: Key{
				Service: text(k.Service), Operation: text(k.Operation), Access: text(k.Access), Resource: text(k.Resource),
				Metric: text(k.Metric), Area: text(k.Area), Attributes: k.Attributes,
			},
		})
	}
}

func (j *journal) incidents() []Incident {
	out := make([]Incident, 0, len(j.order))
	for _, id := range j.order {
		in := j.last[id]
		out = append(out, Incident{
			ID: in.ID, State: in.State, Title: in.Title, Severity: in.Severity, Areas: list(in.Areas), Services: list(in.Services),
			StartedAt: instant(in.StartedAt), FirstFindingAt: instant(in.FirstFindingAt), DeclaredAt: instant(in.DeclaredAt),
			MitigatedAt: instant(in.MitigatedAt), ResolvedAt: instant(in.ResolvedAt),
			Pages: list(j.pages[id]), Paths: paths(in.Paths), Scope: list(in.Scope), Suspects: suspects(in.Suspects),
			Impact: Impact{
				Kind: in.Impact.Kind, Requests: in.Impact.Requests, Failures: in.Impact.Failures, PeakShare: in.Impact.PeakShare,
				PeakAt: instant(in.Impact.PeakAt), AccountsAtLeast: in.Impact.AccountsAtLeast,
			},
			Tickets: in.Tickets, Timeline: list(j.moments[id]),
		})
	}
	return out
}

func moment(e incident.Event) Moment {
	m := Moment{
		At: e.At, State: e.After.State, Severity: e.After.Severity, Services: list(e.After.Services), Scope: list(e.After.Scope),
		AccountsAtLeast: e.After.Impact.AccountsAtLeast,
	}
	if len(e.After.Suspects) > 0 {
		m.Suspect = text(e.After.Suspects[0].ID)
	}
	return m
}

func paths(in []incident.PathImpact) []Path {
	out := make([]Path, 0, len(in))
	for _, p := range in {
		out = append(out, Path{
			Service: p.Path.Service, Operation: p.Path.Operation, Access: p.Path.Access, Attributes: p.Attributes,
			Requests: p.Requests, Failures: p.Failures, PeakShare: p.PeakShare, PeakAt: instant(p.PeakAt),
		})
	}
	return out
}

func suspects(in []incident.Suspect) []Suspect {
	out := make([]Suspect, 0, len(in))
	for _, s := range in {
		out = append(out, Suspect{Kind: s.Kind, ID: s.ID, Score: s.Score, Reasons: list(s.Reasons), Against: list(s.Against)})
	}
	slices.SortStableFunc(out, func(a, b Suspect) int { return cmp.Compare(b.Score, a.Score) })
	return out
}

// list makes an absent list an empty one: a reader of the JSON should not have to tell them apart.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func number(v float64) *float64 {
	if v == 0 {
		return nil
	}
	return &v
}

// FromLog tells incidents as a backtest does from an incident log, such as the stored one of a live run, without pages.
func FromLog(events []incident.Event) []Incident {
	j := newJournal()
	j.add(events, nil, nil)
	return j.incidents()
}
