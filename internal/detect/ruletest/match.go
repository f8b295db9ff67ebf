package ruletest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

func either(want, got string) bool { return want == "" || want == got }

func (w *wantFinding) matches(f incident.Finding) bool { return w.like(f) && w.unsaid(f) == "" }

// like leaves out what the finding says.
func (w *wantFinding) like(f incident.Finding) bool {
	k := f.Key
	return w.Alert == f.Rule && w.State == f.State.String() && either(w.Service, k.Service) && either(w.Operation, k.Operation) &&
		either(w.Access, k.Access) && either(w.Resource, k.Resource) && either(w.Metric, k.Metric) && either(w.Area, k.Area) &&
		signal.NewAttributes(w.Attributes) == k.Attributes
}

// unsaid is the text in which what is wanted is missing; "" if all of it is said.
func (w *wantFinding) unsaid(f incident.Finding) string {
	switch {
	case !strings.Contains(f.Explain, w.Explain):
		return fmt.Sprintf("explanation %q", f.Explain)
	case !strings.Contains(f.Annotations["summary"], w.Summary):
		return fmt.Sprintf("summary %q", f.Annotations["summary"])
	}
	return ""
}

func (w *wantFinding) String() string {
	var parts []string
	for _, p := range []string{w.Alert, w.State, w.Service, w.Operation, w.Access, w.Resource, w.Metric, w.Area, signal.NewAttributes(w.Attributes).String()} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	s := strings.Join(parts, " ")
	if w.Explain != "" {
		s += fmt.Sprintf(" explained by %q", w.Explain)
	}
	if w.Summary != "" {
		s += fmt.Sprintf(" with summary %q", w.Summary)
	}
	return s
}

func (w *wantIncident) matches(x incident.Incident) bool {
	return either(w.State, x.State.String()) && either(w.Severity, x.Severity.String()) && strings.Contains(x.Title, w.Title) &&
		(w.Services == nil || slices.Equal(w.Services, x.Services)) && (w.Page == nil || *w.Page == x.Page) &&
		(w.Suspect == "" || len(x.Suspects) > 0 && x.Suspects[0].ID == w.Suspect)
}

func (w *wantIncident) String() string {
	s := strings.TrimSpace(w.Severity + " " + w.State + " incident")
	if w.Title != "" {
		s += fmt.Sprintf(" titled %q", w.Title)
	}
	if w.Services != nil {
		s += fmt.Sprintf(" of %v", w.Services)
	}
	if w.Page != nil {
		s += fmt.Sprintf(" with page %v", *w.Page)
	}
	if w.Suspect != "" {
		s += " suspecting " + w.Suspect
	}
	return s
}

func sayFinding(f incident.Finding) string {
	return fmt.Sprintf("%s %s %s (%s)", f.Rule, f.State, f.Key.Subject(), f.Explain)
}

func sayIncident(x incident.Incident) string {
	s := fmt.Sprintf("%s %s incident %q of %v with page %v", x.Severity, x.State, x.Title, x.Services, x.Page)
	if len(x.Suspects) > 0 {
		s += " suspecting " + x.Suspects[0].ID
	}
	return s
}

func sayWarning(w incident.Warning) string {
	s := w.Resource + " " + w.Metric
	if len(w.Suspects) > 0 {
		s += " suspecting " + w.Suspects[0].ID
	}
	return s
}

func names[T any](list []T, say func(T) string) string {
	if len(list) == 0 {
		return "none"
	}
	var out []string
	for _, x := range list {
		out = append(out, say(x))
	}
	return strings.Join(out, "; ")
}
