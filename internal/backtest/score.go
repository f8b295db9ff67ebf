package backtest

import (
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Score holds what a recording's incidents are worth against its labels. An incident answers a label if it was declared
// and overlaps it in time; what overlaps neither a label nor a quiet span is neither right nor wrong.
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
}

// score compares. Labels without an end last until the recording's.
func score(l *Labels, incidents []Incident, to time.Time) *Score {
	s := &Score{Labels: len(l.Incidents)}
	answered := make([]int, len(incidents)) // how many labels each incident answers
	firsts := map[int]bool{}
	var delays []float64
	for _, label := range l.Incidents {
		first := -1
		for i, in := range incidents {
			if in.DeclaredAt == nil || !overlaps(label, in, to) {
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
		delays = append(delays, incidents[first].DeclaredAt.Sub(label.Start).Seconds())
		s.scoreCause(label.Cause, incidents[first].Suspects)
	}
	for i, in := range incidents {
		if in.DeclaredAt == nil {
			continue
		}
		s.Declared++
		if answered[i] == 0 && inQuiet(l.Quiet, *in.DeclaredAt) {
			s.FalseIncidents++
			s.FalsePages += len(in.Pages)
		}
	}
	for _, q := range l.Quiet {
		s.QuietHours += q.To.Sub(q.From).Hours()
	}
	if n := s.Declared; n > 0 {
		s.Precision = ratio(n-s.FalseIncidents, n)
	}
	if s.Labels > 0 {
		s.Recall = ratio(s.Detected, s.Labels)
	}
	if s.QuietHours > 0 {
		v := float64(s.FalsePages) / s.QuietHours * 24 * 7
		s.FalsePagesWeek = &v
	}
	if len(delays) > 0 {
		slices.Sort(delays)
		s.DelaySeconds = &delays[len(delays)/2]
	}
	return s
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

func overlaps(l Label, in Incident, to time.Time) bool {
	end := l.End
	if end.IsZero() {
		end = to
	}
	began := *in.DeclaredAt
	if in.StartedAt != nil {
		began = *in.StartedAt
	}
	over := to
	if in.ResolvedAt != nil {
		over = *in.ResolvedAt
	}
	return !began.After(end) && !over.Before(l.Start)
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
