package console

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
)

var funcs = template.FuncMap{
	"at": func(t time.Time) string {
		if t.IsZero() {
			return "–"
		}
		return t.UTC().Format("2 Jan 15:04:05")
	},
	"clock":  func(t time.Time) string { return t.UTC().Format("15:04:05") },
	"iso":    func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"share":  share,
	"pct":    func(v float64) string { return fmt.Sprintf("%.1f", min(max(v, 0), 1)*100) },
	"since":  func(now, t time.Time) string { return span(now.Sub(t)) },
	"span":   span,
	"join":   func(s []string) string { return strings.Join(s, ", ") },
	"first":  func(n int, s []string) []string { return s[:min(n, len(s))] },
	"top":    func(s []incident.Suspect) []incident.Suspect { return s[:min(maxSuspects, len(s))] },
	"rest":   func(s []incident.Suspect) []incident.Suspect { return s[min(maxSuspects, len(s)):] },
	"count":  count,
	"score":  func(v float64) string { return fmt.Sprintf("%.0f%%", v*100) },
	"worst":  worst,
	"name":   name,
	"words":  func(v any) string { return strings.ReplaceAll(fmt.Sprint(v), "_", " ") },
	"plural": plural,
	"slow":   func(d time.Duration) bool { return d > slowLag },
}

const (
	// maxSuspects have their reasons shown; the others are named.
	maxSuspects = 5
	// slowLag is how far behind the detector is when pages are held back.
	slowLag = 15 * time.Minute
)

func share(v float64) string {
	switch {
	case v == 0:
		return "0%"
	case v < 0.001:
		return fmt.Sprintf("%.2f%%", v*100)
	case v < 0.1:
		return fmt.Sprintf("%.1f%%", v*100)
	}
	return fmt.Sprintf("%.0f%%", v*100)
}

func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// count groups digits, for figures that people compare by eye.
func count(n uint64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// plural is "1 service", "2 services".
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// name is what a person calls a suspect.
func name(s incident.Suspect) string {
	switch {
	case s.Title != "":
		return s.Title
	case s.Kind == incident.SuspectUnknown:
		return "no cause known"
	}
	return s.ID
}

// worst names the path with the highest share of failures.
func worst(in incident.Incident) string {
	var p incident.PathImpact
	for _, q := range in.Paths {
		if q.PeakShare > p.PeakShare {
			p = q
		}
	}
	if p.PeakShare == 0 {
		return ""
	}
	return p.Path.String()
}
