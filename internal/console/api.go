package console

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// maxBody bounds what a client may send with a command.
const maxBody = 64 << 10

// IncidentAnswer is what GET /api/v1/incidents/{id} says. With ?since=N the events are those after sequence N; with
// ?full=true each has the whole incident after it, which for a long one is megabytes.
type IncidentAnswer struct {
	Incident   incident.Incident `json:"incident"`
	Events     []incident.Event  `json:"events"`
	Deliveries []Delivery        `json:"deliveries"`
}

// brief takes from each event the incident after it, but for what the log shows of it.
func (a *IncidentAnswer) brief(since uint64, full bool) {
	events := make([]incident.Event, 0, len(a.Events))
	for _, e := range a.Events {
		if e.Sequence <= since {
			continue
		}
		if !full {
			x := e.After
			e.After = incident.Incident{ID: x.ID, Title: x.Title, State: x.State, Severity: x.Severity, Sequence: x.Sequence, Reason: x.Reason, Page: x.Page, Muted: x.Muted}
			if len(x.Suspects) > 0 {
				e.After.Suspects = x.Suspects[:1]
			}
		}
		events = append(events, e)
	}
	a.Events = events
}

func (c *Console) apiStatus(w http.ResponseWriter, r *http.Request) {
	s := c.Status()
	if s.Partitions == nil {
		s.Partitions = []Partition{}
	}
	if s.Problems == nil {
		s.Problems = []string{}
	}
	c.json(w, http.StatusOK, s)
}

func (c *Console) apiIncidents(w http.ResponseWriter, r *http.Request) {
	limit := 100
	if s := r.FormValue("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 10_000 {
			c.json(w, http.StatusBadRequest, apiError{"limit: want a number from 1 to 10000"})
			return
		}
		limit = n
	}
	list, err := c.Reader.Incidents(r.Context(), r.FormValue("state") != "all", limit)
	if err != nil {
		c.fail(w, err)
		return
	}
	if list == nil {
		list = []incident.Incident{}
	}
	c.json(w, http.StatusOK, list)
}

func (c *Console) apiIncident(w http.ResponseWriter, r *http.Request) {
	a, err := c.answer(r, c.Reader, r.PathValue("id"))
	if err != nil {
		c.fail(w, err)
		return
	}
	var since uint64
	if s := r.FormValue("since"); s != "" {
		if since, err = strconv.ParseUint(s, 10, 64); err != nil {
			c.json(w, http.StatusBadRequest, apiError{"since: want the sequence of an event"})
			return
		}
	}
	a.brief(since, r.FormValue("full") == "true")
	c.json(w, http.StatusOK, a)
}

func (c *Console) answer(r *http.Request, from Reader, id string) (IncidentAnswer, error) {
	events, err := from.Events(r.Context(), id)
	if err == nil && len(events) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return IncidentAnswer{}, err
	}
	d := c.Deliveries(id)
	if d == nil {
		d = []Delivery{}
	}
	return IncidentAnswer{Incident: events[len(events)-1].After, Events: events, Deliveries: d}, nil
}

func (c *Console) apiDeliveries(w http.ResponseWriter, r *http.Request) {
	d := c.Deliveries(r.FormValue("incident"))
	if d == nil {
		d = []Delivery{}
	}
	c.json(w, http.StatusOK, d)
}

func (c *Console) apiCommand(w http.ResponseWriter, r *http.Request) {
	if !c.ownOrigin(w, r) {
		return
	}
	var body struct {
		By   string `json:"by"`
		Note string `json:"note"`
		Into string `json:"into"`
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil && len(data) > 0 {
		err = json.Unmarshal(data, &body)
	}
	if err != nil {
		c.json(w, http.StatusBadRequest, apiError{"body: " + err.Error()})
		return
	}
	status, err := c.order(r, incident.Command{Type: incident.CommandType(r.PathValue("command")), By: body.By, Note: body.Note, Into: body.Into, Via: "api"})
	if err != nil {
		c.json(w, status, apiError{err.Error()})
		return
	}
	c.json(w, status, map[string]string{"status": "accepted"})
}

var errNoCommands = errors.New("this process takes no commands")

// order checks a command and passes it on. The incident must exist: a command to a misspelt id would be
// accepted and never do anything.
func (c *Console) order(r *http.Request, cmd incident.Command) (int, error) {
	switch cmd.Type {
	case incident.CommandAcknowledge, incident.CommandMitigate, incident.CommandResolve, incident.CommandDismiss, incident.CommandReopen:
	case incident.CommandMerge:
		if cmd.Into == "" {
			return http.StatusBadRequest, errors.New("merge: say into which incident")
		}
	default:
		return http.StatusBadRequest, errors.New("command is none of acknowledge, mitigate, resolve, dismiss, reopen, merge")
	}
	cmd.By = strings.TrimSpace(cmd.By)
	if cmd.By == "" {
		return http.StatusBadRequest, errors.New("by: say who orders this")
	}
	if c.Commander == nil {
		return http.StatusNotImplemented, errNoCommands
	}
	cmd.Incident = r.PathValue("id")
	if _, err := c.answer(r, c.Reader, cmd.Incident); err != nil {
		if errors.Is(err, ErrNotFound) {
			return http.StatusNotFound, err
		}
		return http.StatusServiceUnavailable, err
	}
	cmd.ID, cmd.At = rand.Text(), c.Now().UTC()
	if err := c.Commander.Command(r.Context(), cmd); err != nil {
		c.Logger.Warn("passing a command on failed", "command", cmd.Type, "incident", cmd.Incident, "err", err)
		return http.StatusServiceUnavailable, err
	}
	return http.StatusAccepted, nil
}

// ownOrigin answers a request that another site's page sent with the reader's browser. Programs send no such headers.
func (c *Console) ownOrigin(w http.ResponseWriter, r *http.Request) bool {
	if err := c.origin.Check(r); err != nil {
		c.json(w, http.StatusForbidden, apiError{"this request came from another site's page"})
		return false
	}
	return true
}

func (c *Console) apiDrill(w http.ResponseWriter, r *http.Request) {
	if !c.ownOrigin(w, r) {
		return
	}
	if c.Drill == nil {
		c.json(w, http.StatusNotImplemented, apiError{"this process sends no drills"})
		return
	}
	report, err := c.Drill(r.Context())
	if err != nil {
		c.json(w, http.StatusBadGateway, apiError{err.Error()})
		return
	}
	c.json(w, http.StatusOK, map[string]string{"report": report})
}
