package console

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// How many incidents the first page lists.
const (
	maxOpen = 200
	maxPast = 50
)

type indexData struct {
	Status  Status
	Open    []incident.Incident // declared and not over
	Watched []incident.Incident // only suspected: nobody is woken for them
	Past    []incident.Incident
	Blind   string // why incidents can't be read
	Now     time.Time
	// Silences are those that have not ended: whoever wonders why nobody is told must see them here.
	Silences []SilenceAnswer
}

func (c *Console) index(w http.ResponseWriter, r *http.Request) {
	d := indexData{Status: c.Status(), Now: c.now()}
	// Open ones are read by themselves: one that is days old must not fall off a list of newer ones that ended.
	d.Silences = c.silences()
	open, err := c.read.Incidents(r.Context(), true, maxOpen)
	var all []incident.Incident
	if err == nil {
		all, err = c.read.Incidents(r.Context(), false, maxPast)
	}
	if err != nil {
		// The page must still come up: that Tocsin is blind is the most important thing it can say.
		c.Logger.Warn("reading incidents for the page failed", "err", err)
		d.Blind = err.Error()
	}
	for _, in := range open {
		if in.State == incident.Suspected {
			d.Watched = append(d.Watched, in)
		} else {
			d.Open = append(d.Open, in)
		}
	}
	for _, in := range all {
		if !in.State.Open() {
			d.Past = append(d.Past, in)
		}
	}
	// What somebody must act on comes first.
	slices.SortStableFunc(d.Open, func(a, b incident.Incident) int {
		return cmp.Or(cmp.Compare(mitigated(a), mitigated(b)), cmp.Compare(b.Severity, a.Severity), b.StartedAt.Compare(a.StartedAt))
	})
	c.page(w, http.StatusOK, "index.html", d)
}

func mitigated(in incident.Incident) int {
	if in.State == incident.Mitigated {
		return 1
	}
	return 0
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
	Status   Status
	Why      string // the reason of the declaration, which the incident itself forgets with its next event
	Charts   []chart
	NoCharts string // why there are none although there should be
	Buttons  []button
	Told     string // the command that was just passed on
	Now      time.Time
}

// button is one thing that a person may tell an incident.
type button struct {
	Command incident.CommandType
	Text    string
}

var (
	openButtons = []button{
		{incident.CommandAcknowledge, "I take it"}, {incident.CommandMitigate, "Customers are served again"},
		{incident.CommandResolve, "It is over"}, {incident.CommandDismiss, "This is no incident"},
	}
	overButtons = []button{{incident.CommandReopen, "Open it again"}}
)

// buttonsFor are those that do something.
func buttonsFor(in incident.Incident) (out []button) {
	all := openButtons
	if !in.State.Open() {
		all = overButtons
	}
	for _, b := range all {
		if applies(b.Command, in) == nil {
			out = append(out, b)
		}
	}
	return out
}

func (c *Console) incident(w http.ResponseWriter, r *http.Request) {
	a, err := c.answer(r, c.read, r.PathValue("id"))
	switch {
	case errors.Is(err, ErrNotFound):
		c.problem(w, http.StatusNotFound, "No incident has this id.")
		return
	case err != nil:
		c.Logger.Warn("reading an incident for its page failed", "incident", r.PathValue("id"), "err", err)
		c.problem(w, http.StatusServiceUnavailable, "The incident can't be read now: "+err.Error())
		return
	}
	in := &a.Incident
	in.Paths = slices.Clone(in.Paths) // what was read is kept for others
	slices.SortStableFunc(in.Paths, func(x, y incident.PathImpact) int { return cmp.Compare(y.PeakShare, x.PeakShare) })
	a.Events = slices.Clone(a.Events)
	slices.Reverse(a.Events)
	d := incidentData{IncidentAnswer: a, Status: c.Status(), Now: c.now(), Buttons: buttonsFor(*in)}
	for _, e := range a.Events { // newest first
		if e.Type == incident.EventDeclared || e.Type == incident.EventReopened {
			d.Why = e.Reason
			break
		}
	}
	for _, b := range slices.Concat(openButtons, overButtons) {
		if told := r.FormValue("told"); told == string(b.Command) {
			d.Told = told
		}
	}
	if c.Series != nil {
		series, err := c.Series(r.Context(), *in)
		if err != nil {
			// Curves are a help, the rest of the page is needed.
			c.Logger.Warn("reading curves for an incident's page failed", "incident", in.ID, "err", err)
			d.NoCharts = err.Error()
		}
		d.Charts = draw(series, *in)
	}
	c.page(w, http.StatusOK, "incident.html", d)
}

func (c *Console) button(w http.ResponseWriter, r *http.Request) {
	if err := c.origin.Check(r); err != nil {
		c.problem(w, http.StatusForbidden, "This form came from another site's page, so nothing was done.")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	cmd := incident.Command{Type: incident.CommandType(r.PathValue("command")), By: r.FormValue("by"), Note: r.FormValue("note"), Via: "web"}
	if status, err := c.order(r, cmd); err != nil {
		c.problem(w, status, "Nothing was done: "+strings.TrimSuffix(err.Error(), ".")+".")
		return
	}
	http.Redirect(w, r, "/incidents/"+url.PathEscape(r.PathValue("id"))+"?told="+string(cmd.Type), http.StatusSeeOther)
}
