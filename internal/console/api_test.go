package console

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// keys lists the keys of a JSON object in order.
func keys(t *testing.T, data []byte) string {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return strings.Join(slices.Sorted(maps.Keys(m)), " ")
}

func post(t *testing.T, s *httptest.Server, path, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// Programs of other people read these answers: a key that disappears breaks them.
func TestShapesOfAnswers(t *testing.T) {
	f := newFake()
	f.put(incident.EventDeclared, outage())
	over := outage()
	over.ID, over.State = "inc-0", incident.Resolved
	f.put(incident.EventResolved, over)
	_, s := serve(t, f)

	_, body, header := get(t, s, "/api/v1/status")
	if got, want := keys(t, []byte(body)), "clock lag_ns leading not_ready partitions problems tick to version"; got != want {
		t.Errorf("status has %s, want %s", got, want)
	}
	if header.Get("Content-Type") != "application/json" {
		t.Errorf("an answer is %q", header.Get("Content-Type"))
	}
	var list []json.RawMessage
	_, body, _ = get(t, s, "/api/v1/incidents")
	if err := json.Unmarshal([]byte(body), &list); err != nil || len(list) != 1 {
		t.Fatalf("open incidents: %v, %d of them", err, len(list))
	}
	want := "areas declared_at findings first_finding_at id impact page paths reason resources scope sequence services severity started_at state suspects tickets title warnings"
	if got := keys(t, list[0]); got != want {
		t.Errorf("an incident has\n%s, want\n%s", got, want)
	}
	_, body, _ = get(t, s, "/api/v1/incidents?state=all")
	if err := json.Unmarshal([]byte(body), &list); err != nil || len(list) != 2 {
		t.Errorf("all incidents: %v, %d of them", err, len(list))
	}
	_, body, _ = get(t, s, "/api/v1/incidents?state=all&limit=1")
	if err := json.Unmarshal([]byte(body), &list); err != nil || len(list) != 1 {
		t.Errorf("one incident: %v, %d of them", err, len(list))
	}
	_, body, _ = get(t, s, "/api/v1/incidents/inc-1")
	if got := keys(t, []byte(body)); got != "deliveries events incident silences" {
		t.Errorf("an incident's answer has %s", got)
	}
	var answer IncidentAnswer
	if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Incident.Severity != incident.Critical || len(answer.Events) != 1 || len(answer.Deliveries) != 2 {
		t.Errorf("the answer reads back as %+v, %v", answer, err)
	}
}

// A client should not have to tell null from an empty list.
func TestEmptyListsAreLists(t *testing.T) {
	_, s := serve(t, &fake{}, func(o *Options) { o.Deliveries = nil })
	for _, path := range []string{"/api/v1/incidents", "/api/v1/deliveries"} {
		if status, body, _ := get(t, s, path); status != http.StatusOK || strings.TrimSpace(body) != "[]" {
			t.Errorf("%s answers %d %s", path, status, body)
		}
	}
	_, body, _ := get(t, s, "/api/v1/status")
	for _, want := range []string{`"partitions": []`, `"problems": []`} {
		if !strings.Contains(body, want) {
			t.Errorf("the status has no %s:\n%s", want, body)
		}
	}
}

func TestAnswersToWrongRequests(t *testing.T) {
	f := newFake()
	f.put(incident.EventDeclared, outage())
	over := outage()
	over.ID, over.State = "inc-0", incident.Resolved
	f.put(incident.EventResolved, over)
	_, s := serve(t, f)
	for path, want := range map[string]int{
		"/api/v1/incidents?limit=0": 400, "/api/v1/incidents?limit=x": 400, "/api/v1/incidents?limit=10001": 400, "/api/v1/incidents?state=closed": 400, "/api/v1/incidents/none": 404,
	} {
		status, body, _ := get(t, s, path)
		if status != want || keys(t, []byte(body)) != "error" {
			t.Errorf("%s answers %d %s", path, status, body)
		}
	}
	const ack = "/api/v1/incidents/inc-1/acknowledge"
	for _, v := range []struct {
		path, body string
		want       int
	}{
		{ack, `{"by":`, 400}, {ack, `{}`, 400}, {ack, ``, 400}, {ack, `{"by":" "}`, 400}, {ack, `{"by":"` + strings.Repeat("a", maxBody) + `"}`, 400},
		{ack, `[]`, 400}, {ack, `{"by":"` + strings.Repeat("ä", maxBy+1) + `"}`, 400}, {ack, `{"by":"ada","note":"` + strings.Repeat("a", maxNote+1) + `"}`, 400},
		{"/api/v1/incidents/inc-1/merge", `{"by":"ada","into":"inc-1"}`, 409}, {"/api/v1/incidents/inc-1/merge", `{"by":"ada","into":"none"}`, 404},
		{"/api/v1/incidents/inc-1/merge", `{"by":"ada","into":"inc-0"}`, 409}, {"/api/v1/incidents/inc-0/acknowledge", `{"by":"ada"}`, 409},
		{"/api/v1/incidents/inc-1/explode", `{"by":"ada"}`, 400}, {"/api/v1/incidents/inc-1/merge", `{"by":"ada"}`, 400}, {"/api/v1/incidents/none/resolve", `{"by":"ada"}`, 404},
		{"/api/v1/drill", ``, 501},
	} {
		if status, body := post(t, s, v.path, v.body); status != v.want || keys(t, []byte(body)) != "error" {
			t.Errorf("%s with %.40s answers %d %s, want %d", v.path, v.body, status, body, v.want)
		}
	}
	// A page elsewhere can send text/plain that is JSON without asking first.
	for _, path := range []string{ack, "/api/v1/drill"} {
		if status, _ := post(t, s, path, `{"by":"mallory"}`, "Content-Type", "text/plain", "Sec-Fetch-Site", "cross-site"); status != http.StatusForbidden {
			t.Errorf("%s from another site answers %d", path, status)
		}
	}
	if len(f.commands) > 0 {
		t.Errorf("a refused command was passed on: %+v", f.commands)
	}
	f.fail(errDown)
	for _, path := range []string{"/api/v1/incidents", "/api/v1/incidents/inc-1"} {
		if status, body, _ := get(t, s, path); status != http.StatusServiceUnavailable || keys(t, []byte(body)) != "error" {
			t.Errorf("without a database %s answers %d %s", path, status, body)
		}
	}
}

func TestCommandsAndDrillPassOn(t *testing.T) {
	f := newFake()
	f.put(incident.EventDeclared, outage())
	for id, state := range map[string]incident.State{"inc-0": incident.Resolved, "inc-2": incident.Declared} {
		other := outage()
		other.ID, other.State = id, state
		f.put(incident.EventDeclared, other)
	}
	drill := func(context.Context) (string, error) { return "PagerDuty took it in 80 ms", nil }
	_, s := serve(t, f, func(o *Options) { o.Drill = drill })
	for _, c := range []incident.CommandType{incident.CommandAcknowledge, incident.CommandMitigate, incident.CommandResolve, incident.CommandDismiss, incident.CommandReopen, incident.CommandMerge} {
		id := "inc-1"
		if c == incident.CommandReopen {
			id = "inc-0"
		}
		if status, body := post(t, s, "/api/v1/incidents/"+id+"/"+string(c), `{"by":"ada","note":"n","into":"inc-2"}`); status != http.StatusAccepted || !strings.Contains(body, `"accepted"`) {
			t.Errorf("%s answers %d %s", c, status, body)
		}
		got := f.commands[len(f.commands)-1]
		if got.Type != c || got.By != "ada" || got.Note != "n" || got.Into != "inc-2" || got.Via != "api" || got.Incident != id {
			t.Errorf("passed on %+v", got)
		}
	}
	if f.commands[0].ID == f.commands[1].ID {
		t.Error("two commands have one id")
	}
	if status, body := post(t, s, "/api/v1/drill", ""); status != http.StatusOK || !strings.Contains(body, "80 ms") {
		t.Errorf("the drill answers %d %s", status, body)
	}
	_, mute := serve(t, f, func(o *Options) { o.Commander = nil })
	if status, _ := post(t, mute, "/api/v1/incidents/inc-1/resolve", `{"by":"ada"}`); status != http.StatusNotImplemented {
		t.Errorf("a console without commands answers %d", status)
	}
}

// A page whose name was made to point here after it was loaded is of our origin to the browser. Only the name tells.
func TestForeignNamesAreRefused(t *testing.T) {
	f := newFake()
	f.put(incident.EventDeclared, outage())
	_, s := serve(t, f, func(o *Options) { o.Names = []string{"tocsin.example.com"} })
	for host, want := range map[string]int{
		"127.0.0.1:9460": 200, "[::1]:9460": 200, "localhost:9460": 200, "tocsin:9460": 200, "Tocsin.example.com": 200, "tocsin.example.com.:443": 200,
		"evil.example.net:9460": 421, "127.0.0.1.evil.example.net": 421, "localhost.evil.example.net:9460": 421,
	} {
		for _, req := range []*http.Request{
			httptest.NewRequest(http.MethodGet, s.URL+"/api/v1/incidents", nil),
			httptest.NewRequest(http.MethodPost, s.URL+"/api/v1/incidents/inc-1/acknowledge", strings.NewReader(`{"by":"x"}`)),
		} {
			req.RequestURI, req.Host = "", host
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if refused := res.StatusCode == http.StatusMisdirectedRequest; refused != (want == 421) {
				t.Errorf("%s as %s: %d", req.Method, host, res.StatusCode)
			}
		}
	}
	if n := len(f.commands); n != 6 {
		t.Errorf("%d commands were taken, want 6", n)
	}
}

// Whoever follows the log sees who is suspected at each event, without megabytes of incident in it.
func TestBriefEventsKeepTheFirstSuspect(t *testing.T) {
	a := IncidentAnswer{Events: []incident.Event{
		{Sequence: 1, After: incident.Incident{ID: "T-1"}},
		{Sequence: 2, After: incident.Incident{ID: "T-1", Title: "now", Findings: make([]incident.Attached, 9), Suspects: []incident.Suspect{{ID: "job"}, {ID: "deploy"}}}},
	}}
	a.brief(1, false)
	if len(a.Events) != 1 || len(a.Events[0].After.Findings) != 0 || len(a.Events[0].After.Suspects) != 1 || a.Events[0].After.Suspects[0].ID != "job" || a.Events[0].After.Title != "now" {
		t.Errorf("%+v", a.Events)
	}
}

// A command that the state machine would pass over is refused, with the reason; one that it would carry out is not.
func TestCommandsApplyAsTheStateMachineSays(t *testing.T) {
	for state := incident.Suspected; state <= incident.Dismissed; state++ {
		for _, cmd := range []incident.CommandType{
			incident.CommandAcknowledge, incident.CommandMitigate, incident.CommandResolve, incident.CommandDismiss, incident.CommandReopen, incident.CommandMerge,
		} {
			in := outage()
			in.State, in.Sequence, in.AcknowledgedBy, in.MergedInto = state, 7, "ada", "inc-7"
			_, events := incident.Step(in, incident.Input{View: incident.View{Suspects: in.Suspects}, Commands: []incident.Command{{Type: cmd, By: "ines", Into: "inc-2"}}}, began)
			err := applies(cmd, in)
			if (err == nil) != (len(events) > 0) {
				t.Errorf("%s of one that is %s: %v, but the state machine has %d events", cmd, state, err, len(events))
			}
			for _, b := range buttonsFor(in) {
				if b.Command == cmd && len(events) == 0 {
					t.Errorf("the page of one that is %s has a button that does nothing: %s", state, b.Text)
				}
			}
		}
	}
}
