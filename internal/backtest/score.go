package backtest

import (
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Score holds what a recording's incidents are worth against its labels. An incident answers a label if it was declared,
// not in a quiet span, and overlaps it in time; what overlaps neither a label nor a quiet span is neither right nor wrong.
type Score struct {
	Labels         int      `json:"labels"`
	Detected       int      `json:"detected"`        // labels with at least one declared incident
	Declared       int      `json:"declared"`        // declared incidents
	FalseIncidents int      `json:"false_incidents"` // declared within a quiet span, answering no label
	FalsePages     int      `json:"false_pages"`     // pages of those
	Fragments      int      `json:"fragments"`       // declared incidents beyond the first of a label
	Merged         int      `json:"merged"`          // labels that share their first incident with an earlier label
	Precision      *float64 `json:"precision"`
	Recall         *float64 `json:"recall"`
	DelaySeconds   *float64 `json:"delay_seconds"` // median from a label's start to the declaration; negative is before
	QuietHours     float64  `json:"quiet_hours"`
	FalsePagesWeek *float64 `json:"false_pages_per_week"`
	Causes         int      `json:"causes"` // detected labels that name a cause
	CauseFirst     int      `json:"cause_first"`
	CauseFirst3    int      `json:"cause_first_3"`
	Scopes         int      `json:"scopes"` // detected labels that name attribute values
	ScopeFirst     int      `json:"scope_first"`
	ScopeFirst3    int      `json:"scope_first_3"`
	Services       int      `json:"services"`     // detected labels that name a service
	ServiceHits    int      `json:"service_hits"` // of these, whose incident has that service

	delays []float64
}

// score compares. Labels without an end last until the recording's.
func score(l *Labels, incidents []Incident, to time.Time) *Score {
	s := &Score{Labels: len(l.Incidents)}
	answered := make([]int, len(incidents)) // how many labels each incident answers
	firsts := map[int]bool{}
	for i := range l.Incidents {
		label := &l.Incidents[i]
		first := -1
		for i := range incidents {
			if incidents[i].DeclaredAt == nil || !l.answers(label, &incidents[i], to) {
				continue
			}
			answered[i]++
			if first < 0 {
				first = i
				continue
			}
			if answered[i] == 1 {
				s.Fragments++
			}
		}
		if first < 0 {
			continue
		}
		s.Detected++
		if firsts[first] {
			s.Merged++
		}
		firsts[first] = true
		s.delays = append(s.delays, incidents[first].DeclaredAt.Sub(label.Start).Seconds())
		s.scoreCause(label.Cause, incidents[first].Suspects)
		s.scoreScope(label.Scope, &incidents[first])
	}
	for i := range incidents {
		in := &incidents[i]
		if in.DeclaredAt == nil {
			continue
		}
		s.Declared++
		if answered[i] == 0 && inQuiet(l.Quiet, *in.DeclaredAt) {
			s.FalseIncidents++
			s.FalsePages += len(in.Pages)
		}
	}
	s.QuietHours = l.quietHours()
	s.finish()
	return s
}

// finish works out shares, medians and rates from the counts.
func (s *Score) finish() {
	if n := s.Declared; n > 0 {
		s.Precision = ratio(n-s.FalseIncidents, n)
	}
	if s.Labels > 0 {
		s.Recall = ratio(s.Detected, s.Labels)
	}
	s.FalsePagesWeek = perWeek(s.FalsePages, s.QuietHours)
	s.DelaySeconds = median(s.delays)
}

func (s *Score) scoreScope(want LabelScope, in *Incident) {
	if want.Service != "" {
		s.Services++
		if slices.Contains(in.Services, want.Service) {
			s.ServiceHits++
		}
	}
	if len(want.Attributes) == 0 {
		return
	}
	s.Scopes++
	attributes := signal.NewAttributes(want.Attributes)
	for i, x := range in.Scope[:min(3, len(in.Scope))] {
		if x.Attributes == attributes {
			s.ScopeFirst3++
			if i == 0 {
				s.ScopeFirst++
			}
		}
	}
}

func (s *Score) scoreCause(c LabelCause, suspects []Suspect) {
	kind, id := incident.SuspectKind(""), ""
	switch {
	case c.Change != "":
		kind, id = incident.SuspectChange, c.Change
	case c.Resource != "":
		kind, id = incident.SuspectResource, c.Resource
	case c.Service != "":
		kind, id = incident.SuspectService, c.Service
	case len(c.Attributes) > 0:
		kind, id = incident.SuspectAttributes, signal.NewAttributes(c.Attributes).String()
	default:
		return
	}
	s.Causes++
	for i, x := range suspects[:min(3, len(suspects))] {
		if x.Kind == kind && x.ID == id {
			s.CauseFirst3++
			if i == 0 {
				s.CauseFirst++
			}
		}
	}
}

// answers tells whether a declared incident answers a label: it overlaps it, and nobody has labelled the time of its
// declaration as quiet.
func (ls *Labels) answers(l *Label, in *Incident, to time.Time) bool {
	began := *in.DeclaredAt
	if in.StartedAt != nil {
		began = *in.StartedAt
	}
	over := to
	if in.ResolvedAt != nil {
		over = *in.ResolvedAt
	}
	return !began.After(l.endOr(to)) && !over.Before(l.Start) && !in.DeclaredAt.Before(l.Start.Add(-head)) && !inQuiet(ls.Quiet, *in.DeclaredAt)
}

// head is by how much a declaration may come before a label begins and still be an answer to it: signs come before harm. What
// was declared long before, and goes on, is about something else.
const head = time.Hour

func (l *Label) endOr(to time.Time) time.Time {
	if l.End.IsZero() {
		return to
	}
	return l.End
}

func (l *Labels) quietHours() (h float64) {
	for _, q := range l.Quiet {
		h += q.To.Sub(q.From).Hours()
	}
	return h
}

func inQuiet(quiet []Span, t time.Time) bool {
	for _, q := range quiet {
		if !t.Before(q.From) && t.Before(q.To) {
			return true
		}
	}
	return false
}

func ratio(a, b int) *float64 {
	v := float64(a) / float64(b)
	return &v
}

// median of an even number is the larger of the two in the middle.
func median(v []float64) *float64 {
	if len(v) == 0 {
		return nil
	}
	s := slices.Sorted(slices.Values(v))
	return &s[len(s)/2]
}

func perWeek(n int, hours float64) *float64 {
	if hours <= 0 {
		return nil
	}
	v := float64(n) / hours * 24 * 7
	return &v
}
