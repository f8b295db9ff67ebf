package cli

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/console"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/respond/outbox"
	"github.com/tocsin-project/tocsin/internal/respond/silence"
)

// log is an incident log and the place for commands of a running Tocsin.
type log struct {
	events   map[string][]incident.Event
	commands []incident.Command
	drill    error
}

var began = time.Date(2026, 9, 13, 8, 43, 0, 0, time.UTC)

func (l *log) put(id string, state incident.State, typ incident.EventType, reason string) {
	in := incident.Incident{
		ID: id, Title: "issues: writes fail", State: state, Severity: incident.Major, Services: []string{"issues", "pages"}, StartedAt: began, Reason: reason, Page: state == incident.Declared,
		Impact: incident.Impact{Requests: 1000, Failures: 40, AccountsAtLeast: 7}, Tickets: 3,
		Suspects: []incident.Suspect{
			{Kind: incident.SuspectChange, ID: "job-1", Title: "clean-up", Score: 0.8, Reasons: []string{"began before"}, Against: []string{"others are well"}},
			{Kind: incident.SuspectResource, ID: "mysql/a", Title: "mysql/a", Score: 0.1},
			{Kind: incident.SuspectUnknown, ID: "unknown", Title: "no cause known", Score: 0.1},
		},
	}
	if state != incident.Suspected && state != incident.Dismissed {
		in.DeclaredAt = began.Add(time.Minute)
	}
	n := uint64(len(l.events[id]) + 1)
	in.Sequence = n
	l.events[id] = append(l.events[id], incident.Event{Incident: id, Sequence: n, At: began.Add(time.Duration(n) * time.Minute), Type: typ, Reason: reason, After: in})
}

func (l *log) Incidents(_ context.Context, openOnly bool, _ int) (out []incident.Incident, err error) {
	for _, id := range []string{"T-1", "T-2", "T-3"} {
		if e := l.events[id]; len(e) > 0 && (!openOnly || e[len(e)-1].After.State.Open()) {
			out = append(out, e[len(e)-1].After)
		}
	}
	return out, nil
}

func (l *log) Events(_ context.Context, id string) ([]incident.Event, error) {
	return l.events[id], nil
}

func (l *log) Command(_ context.Context, c incident.Command) error {
	l.commands = append(l.commands, c)
	return nil
}

// running serves the API over an incident that is declared and one that went away.
func running(t *testing.T) *log {
	t.Helper()
	l := &log{events: map[string][]incident.Event{}}
	l.put("T-1", incident.Suspected, incident.EventSuspected, "40 of 1000 writes failed")
	l.put("T-1", incident.Declared, incident.EventDeclared, "customers notice (2 points)")
	l.put("T-2", incident.Suspected, incident.EventSuspected, "a blip")
	l.put("T-2", incident.Dismissed, incident.EventDismissed, "no incident, says ada: a test")
	silences, err := silence.New(t.Context(), &outbox.Memory{}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	c, err := console.New(console.Options{
		Silences: silences, Reader: l, Commander: l, Logger: slog.New(slog.DiscardHandler), Status: func() console.Status { return console.Status{} },
		Drill: func(context.Context) (string, error) { return "1 place was told", l.drill },
		Deliveries: func(id string) []console.Delivery {
			if id != "T-1" {
				return nil
			}
			return []console.Delivery{{Incident: id, Receiver: "oncall (pagerduty)", Action: "open", Outcome: "delivered", At: began.Add(2 * time.Minute)}}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	c.Register(mux)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	t.Setenv("TOCSIN_URL", s.URL+"/")
	return l
}

func TestIncidentsAsText(t *testing.T) {
	l := running(t)
	for _, v := range []struct {
		args string
		want string
	}{
		{"incident list", `
ID   STATE     SEVERITY  BEGAN (UTC)          SERVICES  TITLE
T-1  declared  major     2026-09-13 08:43:00  2         issues: writes fail
`},
		{"incident list --all", `
ID   STATE      SEVERITY  BEGAN (UTC)          SERVICES  TITLE
T-1  declared   major     2026-09-13 08:43:00  2         issues: writes fail
T-2  dismissed  major     2026-09-13 08:43:00  2         issues: writes fail
`},
		{"incident show T-1", `
T-1  [major, declared]  issues: writes fail
customers notice (2 points)

began      2026-09-13 08:43:00
declared   2026-09-13 08:44:00
requests   40 failed of 1000 on 0 paths in 2 services
customers  at least 7, 3 tickets
services   issues, pages

suspects
 1. change job-1  clean-up (80%)
      + began before
      - others are well
 2. resource mysql/a (10%)
 3. no cause known (10%)
`},
		{"why T-1", `
T-1  issues: writes fail
major, declared: customers notice (2 points)

2026-09-13 08:44:00  suspected  40 of 1000 writes failed
2026-09-13 08:45:00  declared   customers notice (2 points)

Sent (times by the wall clock):
  2026-09-13 08:45:00  oncall (pagerduty)  open  delivered  
`},
		{"why T-2", `
T-2  issues: writes fail
major, dismissed: no incident, says ada: a test

It was never declared, so it paged nobody.

2026-09-13 08:44:00  suspected  a blip
2026-09-13 08:45:00  dismissed  no incident, says ada: a test

Nothing was sent to anybody.
`},
	} {
		if got := call(t, Env{}, strings.Fields(v.args)...); got != (said{0, v.want[1:], ""}) {
			t.Errorf("tocsin %s: %d %s\n%s", v.args, got.code, got.err, got.out)
		}
	}
	l.events = nil
	if got := call(t, Env{}, "incident", "list"); got.out != "no open incident; --all lists those that ended, too\n" {
		t.Errorf("without any: %+v", got)
	}
	if got := call(t, Env{}, "incident", "list", "--all"); got.out != "no incident\n" {
		t.Errorf("without any at all: %+v", got)
	}
}

func TestIncidentsAsJSON(t *testing.T) {
	running(t)
	var list []incident.Incident
	if got := call(t, Env{}, "incident", "list", "--all", "-o", "json"); json.Unmarshal([]byte(got.out), &list) != nil || len(list) != 2 || list[0].ID != "T-1" {
		t.Errorf("%+v", got)
	}
	var a console.IncidentAnswer
	if got := call(t, Env{}, "incident", "show", "T-1", "-o", "json"); json.Unmarshal([]byte(got.out), &a) != nil || len(a.Events) != 2 || len(a.Deliveries) != 1 {
		t.Errorf("%+v", got)
	}
}

func TestWordsOfPeople(t *testing.T) {
	l := running(t)
	for _, v := range []struct {
		args string
		code int
		says string
		want incident.Command
	}{
		{"acknowledge T-1 --by ada --note on-it", 0, "acknowledge T-1: accepted\n", incident.Command{Type: incident.CommandAcknowledge, Incident: "T-1", By: "ada", Note: "on-it"}},
		{"mitigate T-1 --by ada", 0, "mitigate T-1: accepted\n", incident.Command{Type: incident.CommandMitigate, Incident: "T-1", By: "ada"}},
		{"resolve T-1 --by ada", 0, "resolve T-1: accepted\n", incident.Command{Type: incident.CommandResolve, Incident: "T-1", By: "ada"}},
		{"dismiss T-1 --by ada", 0, "dismiss T-1: accepted\n", incident.Command{Type: incident.CommandDismiss, Incident: "T-1", By: "ada"}},
		{"reopen T-2 --by ada", 0, "reopen T-2: accepted\n", incident.Command{Type: incident.CommandReopen, Incident: "T-2", By: "ada"}},
		{"resolve T-9 --by ada", 1, "tocsin: no such incident\n", incident.Command{}},
		{"show T-9", 1, "tocsin: no such incident\n", incident.Command{}},
	} {
		l.commands = nil
		got := call(t, Env{}, append([]string{"incident"}, strings.Fields(v.args)...)...)
		if got.code != v.code || got.out+got.err != v.says {
			t.Errorf("tocsin incident %s: %+v", v.args, got)
		}
		if (v.code == 0) != (len(l.commands) == 1) {
			t.Errorf("tocsin incident %s passed on %+v", v.args, l.commands)
		}
		for _, c := range l.commands {
			if c.Type != v.want.Type || c.Incident != v.want.Incident || c.By != v.want.By || c.Note != v.want.Note || c.ID == "" || c.At.IsZero() {
				t.Errorf("tocsin incident %s passed on %+v", v.args, c)
			}
		}
	}
	l.put("T-3", incident.Declared, incident.EventDeclared, "another")
	l.commands = nil
	if got := call(t, Env{}, "incident", "merge", "T-3", "--into", "T-1", "--by", "ada"); got.code != 0 || len(l.commands) != 1 || l.commands[0].Into != "T-1" {
		t.Errorf("a merge: %+v, %+v", got, l.commands)
	}
}

func TestDrill(t *testing.T) {
	l := running(t)
	if got := call(t, Env{}, "drill"); got != (said{0, "1 place was told\n", ""}) {
		t.Errorf("%+v", got)
	}
	l.drill = errors.New("oncall refused the page")
	if got := call(t, Env{}, "drill"); got != (said{1, "", "tocsin: oncall refused the page\n"}) {
		t.Errorf("%+v", got)
	}
}

func TestWhyShowsTheEvidenceOverTime(t *testing.T) {
	l := running(t)
	e := l.events["T-1"]
	e[len(e)-1].After.Findings = []incident.Attached{{Finding: incident.Finding{
		Rule: "HighImpactByEvidence", Kind: "high_impact", State: incident.Firing, Explain: "pulls: failing requests and tickets together are beyond chance",
		Evidence: []incident.EvidenceRow{
			{Of: "merge / op / write", From: 5, To: 0, N: 600, F: 12, Tolerated: 6.1, Evidence: -1.2}, {Of: "tickets about pulls", From: 5, To: 0, N: 5, F: 7, Tolerated: 0.4, Evidence: -0.9},
		},
	}}}
	out := call(t, Env{}, "why", "T-1").out
	for _, want := range []string{"HighImpactByEvidence, firing: pulls: failing", "NORMAL UP TO", "merge / op / write", "600", "6.1", "-1.2", "tickets about pulls", "-0.9"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}
