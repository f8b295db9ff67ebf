package console

import (
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
)

type indexData struct {
	Status Status
	Open   []incident.Incident
	Past   []incident.Incident
	Error  string
	Now    time.Time
}

func (c *Console) index(w http.ResponseWriter, r *http.Request) {
	d := indexData{Status: c.Status(), Now: c.now()}
	list, err := c.Reader.Incidents(r.Context(), false, 50)
	if err != nil {
		// The page must still come up: that Tocsin is blind is the most important thing it can say.
		d.Error = "Incidents can't be read now: " + err.Error()
	}
	for _, in := range list {
		if in.State.Open() {
			d.Open = append(d.Open, in)
		} else {
			d.Past = append(d.Past, in)
		}
	}
	slices.SortStableFunc(d.Open, func(a, b incident.Incident) int {
		return cmp.Or(cmp.Compare(rank(b), rank(a)), b.StartedAt.Compare(a.StartedAt))
	})
	c.page(w, "index.html", d)
}

// rank puts what somebody must act on first.
func rank(in incident.Incident) int {
	if in.State == incident.Suspected {
		return -1
	}
	return int(in.Severity)
}

// now is the time that ages are counted to: the detector's clock, which in a replay is not the wall's.
func (c *Console) now() time.Time {
	if s := c.Status(); !s.Clock.IsZero() {
		return s.Clock
	}
	return c.Now()
}

type incidentData struct {
	IncidentAnswer
	Status Status
	Now    time.Time
	By     string
}

func (c *Console) incident(w http.ResponseWriter, r *http.Request) {
	a, err := c.answer(r, r.PathValue("id"))
	switch {
	case errors.Is(err, ErrNotFound):
		http.Error(w, "No incident has this id.", http.StatusNotFound)
		return
	case err != nil:
		http.Error(w, "The incident can't be read now: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	slices.SortStableFunc(a.Incident.Paths, func(x, y incident.PathImpact) int { return cmp.Compare(y.PeakShare, x.PeakShare) })
	slices.Reverse(a.Events)
	c.page(w, "incident.html", incidentData{IncidentAnswer: a, Status: c.Status(), Now: c.now()})
}

func (c *Console) button(w http.ResponseWriter, r *http.Request) {
	if !sameOrigin(r) {
		http.Error(w, "This form came from another site.", http.StatusForbidden)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	by := strings.TrimSpace(r.FormValue("by"))
	status, err := c.order(r, incident.Command{Type: incident.CommandType(r.PathValue("command")), By: by, Note: r.FormValue("note"), Via: "web"})
	if err != nil {
		http.Error(w, err.Error(), status)
		return
	}
	http.Redirect(w, r, "/incidents/"+r.PathValue("id"), http.StatusSeeOther)
}

var funcs = template.FuncMap{
	"at": func(t time.Time) string {
		if t.IsZero() {
			return "–"
		}
		return t.UTC().Format("2 Jan 15:04:05")
	},
	"clock": func(t time.Time) string { return t.UTC().Format("15:04:05") },
	"iso":   func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"share": share,
	"pct":   func(v float64) string { return fmt.Sprintf("%.0f", min(max(v, 0), 1)*100) },
	"since": func(now, t time.Time) string { return span(now.Sub(t)) },
	"span":  span,
	"join":  func(s []string) string { return strings.Join(s, ", ") },
	"first": func(n int, s []string) []string { return s[:min(n, len(s))] },
	"title": title,
	"more":  func(n int, s []string) int { return max(0, len(s)-n) },
	"count": count,
	"lower": strings.ToLower,
	"open":  func(s incident.State) bool { return s.Open() },
	"score": func(v float64) string { return fmt.Sprintf("%.0f%%", v*100) },
	"add":   func(a, b int) int { return a + b },
}

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
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}

// count groups digits, for figures that people compare by eye.
func count(n uint64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// title is what a person calls a suspect.
func title(s incident.Suspect) string {
	if s.Title != "" {
		return s.Title
	}
	return s.ID
}
