package console

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// maxBody bounds what a client may send with a command. Who and why go into every message about the incident, so
// they are short; the fields of the page are shorter still.
const (
	maxBody = 64 << 10
	maxBy   = 200
	maxNote = 2000
)

// IncidentAnswer is what GET /api/v1/incidents/{id} says. With ?since=N the events are those after sequence N; with
// ?full=true each has the whole incident after it, which for a long one is megabytes.
type IncidentAnswer struct {
	Incident   incident.Incident `json:"incident"`
	Events     []incident.Event  `json:"events"`
	Deliveries []Delivery        `json:"deliveries"`
	// Silences are those that concern it, also such as have ended.
	Silences []SilenceAnswer `json:"silences"`
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
	if s.NotReady == nil {
		s.NotReady = []string{}
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
	state := r.FormValue("state")
	if state != "" && state != "open" && state != "all" {
		c.json(w, http.StatusBadRequest, apiError{"state: want open or all"})
		return
	}
	list, err := c.Reader.Incidents(r.Context(), state != "all", limit)
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
	in := events[len(events)-1].After
	return IncidentAnswer{Incident: in, Events: events, Deliveries: d, Silences: c.silencesOf(in)}, nil
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
	if err == nil && len(data) > 0 && json.Unmarshal(data, &body) != nil {
		err = errors.New(`want a JSON object of texts such as {"by": "ada", "note": "…"}`)
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

// order checks a command and passes it on. The incident must exist and be in a state that the command is for:
// otherwise it would be accepted and never do anything, and whoever gave it would believe that it had.
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
	if utf8.RuneCountInString(cmd.By) > maxBy || utf8.RuneCountInString(cmd.Note) > maxNote {
		return http.StatusBadRequest, fmt.Errorf("by and note: want %d and %d characters at most", maxBy, maxNote)
	}
	if c.Commander == nil {
		return http.StatusNotImplemented, errNoCommands
	}
	cmd.Incident = r.PathValue("id")
	a, err := c.answer(r, c.Reader, cmd.Incident)
	if err != nil {
		return statusOf(err), err
	}
	if err := applies(cmd.Type, a.Incident); err != nil {
		return http.StatusConflict, err
	}
	if cmd.Type == incident.CommandMerge {
		if status, err := c.mergeable(r, cmd); err != nil {
			return status, err
		}
	}
	cmd.ID, cmd.At = rand.Text(), c.Now().UTC()
	if err := c.Commander.Command(r.Context(), cmd); err != nil {
		c.Logger.Warn("passing a command on failed", "command", cmd.Type, "incident", cmd.Incident, "err", err)
		return http.StatusServiceUnavailable, err
	}
	return http.StatusAccepted, nil
}

func statusOf(err error) int {
	if errors.Is(err, ErrNotFound) {
		return http.StatusNotFound
	}
	return http.StatusServiceUnavailable
}

// mergeable looks at the incident that is to take in another one.
func (c *Console) mergeable(r *http.Request, cmd incident.Command) (int, error) {
	if cmd.Into == cmd.Incident {
		return http.StatusConflict, errors.New("merge: an incident can't be merged into itself")
	}
	a, err := c.answer(r, c.Reader, cmd.Into)
	if err != nil {
		return statusOf(err), fmt.Errorf("merge into %s: %w", cmd.Into, err)
	}
	if !a.Incident.State.Open() {
		return http.StatusConflict, fmt.Errorf("merge: %s is %s", cmd.Into, a.Incident.State)
	}
	return 0, nil
}

// applies says why a command would do nothing in the incident's state.
func applies(cmd incident.CommandType, in incident.Incident) error {
	s := in.State
	switch {
	case s == incident.Merged:
		return fmt.Errorf("it was merged into %s; speak to that one", in.MergedInto)
	case cmd == incident.CommandReopen:
		if s != incident.Resolved && s != incident.Dismissed && s != incident.Mitigated {
			return fmt.Errorf("it is %s, not over", s)
		}
		return nil
	case !s.Open():
		return fmt.Errorf("it is %s; reopen it first", s)
	case cmd == incident.CommandAcknowledge && s == incident.Acknowledged:
		return fmt.Errorf("%s has it already", in.AcknowledgedBy)
	case cmd == incident.CommandAcknowledge && s == incident.Mitigated:
		return errors.New("it is mitigated; reopen it to take it")
	case cmd == incident.CommandMitigate && s != incident.Declared && s != incident.Acknowledged:
		return fmt.Errorf("it is %s; only one that is declared can be mitigated", s)
	}
	return nil
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
