// Package page draws the result of a backtest as one HTML page: plots as inline SVG, no script and nothing from elsewhere, so
// that it can be mailed, kept with a change of rules, and read on a phone.
package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/backtest"
	"github.com/tocsin-project/tocsin/internal/incident"
)

//go:embed page.html
var text string

var tmpl = template.Must(template.New("page").Funcs(template.FuncMap{
	"time": stamp, "when": when, "percent": percent, "share": func(v *float64) string { return maybe(v, percent) },
	"number": func(v *float64) string { return maybe(v, func(f float64) string { return fmt.Sprintf("%.1f", f) }) },
	"delay":  func(v *float64) string { return maybe(v, delay) },
	"kind":   suspect,
	"first":  func(n int, s []backtest.Suspect) []backtest.Suspect { return s[:min(n, len(s))] },
	"yes":    yes,
	"slice":  scope,
}).Parse(text))

// view is what the page shows.
type view struct {
	*backtest.Result
	Compared bool
	Plots    []plot
	Pages    int
	Theirs   int
	Them     *backtest.Score
}

// Write writes the page.
func Write(w io.Writer, r *backtest.Result) error {
	v := view{Result: r, Compared: r.Against != nil, Pages: backtest.Pages(r.Recordings), Theirs: backtest.Pages(r.Against)}
	if v.Compared {
		them := backtest.Result{Recordings: r.Against}
		them.Sum()
		v.Them = them.Total
	}
	for i := range r.Recordings {
		var other *backtest.Recording
		if i < len(r.Against) {
			other = &r.Against[i]
		}
		v.Plots = append(v.Plots, draw(&r.Recordings[i], other))
	}
	if err := tmpl.Execute(w, v); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }

func when(t *time.Time) string {
	if t == nil {
		return "–"
	}
	return stamp(*t)
}

func percent(v float64) string {
	if v > 0 && v < 0.1 {
		return fmt.Sprintf("%.1f%%", v*100)
	}
	return fmt.Sprintf("%.0f%%", v*100)
}

func maybe(v *float64, f func(float64) string) string {
	if v == nil {
		return "–"
	}
	return f(*v)
}

func delay(s float64) string { return (time.Duration(s) * time.Second).String() }

func yes(b *bool) string {
	switch {
	case b == nil:
		return ""
	case *b:
		return "answers a label"
	}
	return "answers no label"
}

func suspect(k incident.SuspectKind, id string) string {
	if k == incident.SuspectUnknown {
		return "no cause known"
	}
	return string(k) + " " + id
}

func scope(s incident.ScopeSlice) string {
	if s.Attributes == "" {
		return "everywhere"
	}
	return s.Attributes.String()
}

// declaredOf are the incidents that a plot has bars for, those that were declared.
func declaredOf(rec *backtest.Recording) (out []*backtest.Incident) {
	for i := range rec.Incidents {
		if rec.Incidents[i].DeclaredAt != nil {
			out = append(out, &rec.Incidents[i])
		}
	}
	slices.SortStableFunc(out, func(a, b *backtest.Incident) int { return a.DeclaredAt.Compare(*b.DeclaredAt) })
	return out
}
