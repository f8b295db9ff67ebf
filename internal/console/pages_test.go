package console

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// get fetches a page and returns its status and text.
func get(t *testing.T, s *httptest.Server, path string) (int, string, http.Header) {
	t.Helper()
	res, err := http.Get(s.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b), res.Header
}

func expect(t *testing.T, page string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(page, w) {
			t.Errorf("the page has no %q:\n%s", w, page)
		}
	}
}

func refuse(t *testing.T, page string, not ...string) {
	t.Helper()
	for _, w := range not {
		if strings.Contains(page, w) {
			t.Errorf("the page has %q:\n%s", w, page)
		}
	}
}

func TestQuietPage(t *testing.T) {
	f := newFake()
	_, s := serve(t, f)
	status, page, header := get(t, s, "/")
	if status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	expect(t, page, "No open incident", "Nothing is wrong that Tocsin can see.", "judged up to", "12 s behind", "otlp_spans")
	if csp := header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'self'") || strings.Contains(csp, "unsafe") {
		t.Errorf("Content-Security-Policy is %q", csp)
	}
	if header.Get("Cache-Control") != "no-store" {
		t.Error("a browser may keep the page")
	}
}

// A page that cannot know must not say that all is well.
func TestPageNeverLooksCalmWhenBlind(t *testing.T) {
	f := newFake()
	_, s := serve(t, f)
	calm := []string{"Nothing is wrong"}

	f.fail(errDown)
	status, page, _ := get(t, s, "/")
	if status != http.StatusOK {
		t.Errorf("status %d: the page must come up although the database is down", status)
	}
	expect(t, page, "Incidents can't be read", "Tocsin is blind here: connection refused")
	refuse(t, page, append(calm, "No open incident")...)
	f.fail(nil)

	f.status.Problems = []string{"ClickHouse does not answer since 08:41."}
	_, page, _ = get(t, s, "/")
	expect(t, page, "Tocsin itself has trouble", "ClickHouse does not answer since 08:41.", `role="alert"`)
	refuse(t, page, calm...)

	for leading, want := range map[bool]string{true: "waiting for the first data", false: "this process does not detect"} {
		f.status = Status{Leading: leading}
		_, page, _ = get(t, s, "/")
		expect(t, page, want)
		refuse(t, page, calm...)
	}
}

func TestIndexPutsFirstWhatSomebodyMustActOn(t *testing.T) {
	f := newFake()
	for _, v := range []struct {
		title    string
		severity incident.Severity
		state    incident.State
		began    time.Duration
	}{
		{"mitigated-critical", incident.Critical, incident.Mitigated, -time.Hour},
		{"new-minor", incident.Minor, incident.Declared, 0},
		{"old-critical", incident.Critical, incident.Acknowledged, -50 * time.Hour},
		{"watched", incident.Critical, incident.Suspected, 0},
		{"over", incident.Critical, incident.Resolved, -2 * time.Hour},
		{"merged", incident.Major, incident.Merged, -2 * time.Hour},
	} {
		in := outage()
		in.ID, in.Title, in.Severity, in.State, in.StartedAt = v.title, v.title, v.severity, v.state, began.Add(v.began)
		f.put(incident.EventDeclared, in)
	}
	// More ended ones than the list has, all newer than the open one that is two days old.
	for i := range 2 * maxPast {
		in := outage()
		in.ID, in.State, in.StartedAt = "past-"+string(rune('a'+i/26))+string(rune('a'+i%26)), incident.Resolved, began.Add(-time.Duration(i+3)*10*time.Minute)
		f.put(incident.EventResolved, in)
	}
	_, s := serve(t, f)
	_, page, _ := get(t, s, "/")
	expect(t, page, "3 open incidents", "<title>(3) Tocsin</title>")
	at := -1
	for _, title := range []string{"old-critical", "new-minor", "mitigated-critical", "Watched, nobody is woken", ">watched<", "Ended lately", ">over<"} {
		i := strings.Index(page, title)
		if i < at || i < 0 {
			t.Errorf("%q stands at %d, not after what is more urgent (%d)", title, i, at)
		}
		at = i
	}
}

func TestCardTellsAtAGlance(t *testing.T) {
	f := newFake()
	f.put(incident.EventDeclared, outage())
	_, s := serve(t, f)
	_, page, _ := get(t, s, "/")
	expect(t, page, "critical", "since <time", "(20 min)", "nobody has taken it", "91\u202f877", "of 1\u202f284\u202f310", "96%", "issues / create / write",
		"2\u202f312", "37", "clean-up of orphaned grants", "job-4711", "81%", "began 70 min before the failures", "its safeguard reports replica lag")

	in := outage()
	in.State, in.AcknowledgedBy, in.Muted = incident.Acknowledged, "ada", "maintenance of mysql/permissions/primary"
	f.put(incident.EventMuted, in)
	_, page, _ = get(t, s, "/")
	expect(t, page, "ada has it", "pages nobody:</strong> maintenance of mysql/permissions/primary")
	refuse(t, page, "nobody has taken it")
}

func TestIncidentPage(t *testing.T) {
	f := newFake()
	f.put(incident.EventSuspected, outage())
	f.put(incident.EventDeclared, outage())
	later := outage()
	later.Reason = "2 findings joined"
	for i := range maxSuspects {
		later.Suspects = append(later.Suspects, incident.Suspect{Kind: incident.SuspectChange, ID: fmt.Sprintf("deploy-%d", i), Score: 0.02, Reasons: []string{"far-fetched reason " + fmt.Sprint(i)}})
	}
	later.Suspects = append(later.Suspects, incident.Suspect{Kind: incident.SuspectUnknown, ID: "unknown", Score: 0.01})
	f.put(incident.EventFinding, later)
	f.series = append(curves(outage()), Series{Name: "too short", Points: []Point{{}}})
	var failing error
	_, s := serve(t, f, func(o *Options) {
		o.Series = func(context.Context, incident.Incident) ([]Series, error) { return f.series, failing }
	})
	status, page, _ := get(t, s, "/incidents/inc-1")
	if status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	expect(t, page, "mysql/permissions/primary connections at 3412 of 5000, used up at about 08:41:00", "client=web", "71% of the excess failures", "everywhere: 100%",
		"rate limited, again in 7 s", "5 paths in 5 services", "I take it", "It is over", `rect width="96.2"`, "<polyline points=", "issues: failure share from 08:33:00 to 09:03:00, at most 94%")
	if i, j := strings.Index(page, "<td>declared"), strings.Index(page, "<td>suspected"); i < 0 || j < i {
		t.Errorf("the log is not newest first: declared at %d, suspected at %d", i, j)
	}
	expect(t, page, "<p>Declared: 5 services that depend on mysql/permissions/primary fail more than usual (3.1 points, 1 declares)</p>", "Last: 2 findings joined",
		"far-fetched reason 1", "Less likely: deploy-2 (2%), deploy-3 (2%), deploy-4 (2%), no cause known (1%)")
	refuse(t, page, "far-fetched reason 2", "too short", "Open it again", "NaN", "ZgotmplZ")

	failing, f.series = errDown, nil
	status, page, _ = get(t, s, "/incidents/inc-1")
	if status != http.StatusOK {
		t.Errorf("status %d: the page is needed although curves can't be read", status)
	}
	expect(t, page, "No curves now: connection refused", "I take it")

	over := outage()
	over.State, over.ResolvedAt = incident.Resolved, began.Add(2*time.Hour)
	f.put(incident.EventResolved, over)
	_, page, _ = get(t, s, "/incidents/inc-1")
	expect(t, page, "lasted 2 h 0 min", "Open it again")
	refuse(t, page, "I take it")

	over.State, over.MergedInto = incident.Merged, "inc-9"
	f.put(incident.EventMerged, over)
	_, page, _ = get(t, s, "/incidents/inc-1")
	expect(t, page, `lives on in <a href="/incidents/inc-9">`)
	refuse(t, page, "<form")
}

func TestPagesThatCannotBeShown(t *testing.T) {
	f := newFake()
	f.put(incident.EventDeclared, outage())
	_, s := serve(t, f)
	status, page, _ := get(t, s, "/incidents/none")
	if status != http.StatusNotFound {
		t.Errorf("an unknown id answers %d", status)
	}
	expect(t, page, "No incident has this id.", `<a href="/">`)
	f.fail(errDown)
	if status, page, _ = get(t, s, "/incidents/inc-1"); status != http.StatusServiceUnavailable {
		t.Errorf("without a database an incident answers %d", status)
	}
	expect(t, page, "The incident can&#39;t be read now: connection refused")
	if status, _, _ := get(t, s, "/nothing"); status != http.StatusNotFound {
		t.Errorf("an unknown page answers %d", status)
	}
}

// Titles, suspects, reasons and attribute values come from foreign systems and customers.
func TestForeignTextStaysText(t *testing.T) {
	const evil = `<script>alert(1)</script><img src=x onerror=alert(2)>"'`
	f := newFake()
	in := outage()
	in.Title, in.Reason, in.Muted, in.AcknowledgedBy, in.Services, in.Areas = evil, evil, evil, evil, []string{evil}, []string{evil}
	in.Paths[0].Path = signal.Path{Service: evil, Operation: evil}
	in.Paths[0].Attributes = signal.NewAttributes(map[string]string{evil: evil})
	in.Scope[0].Attributes = in.Paths[0].Attributes
	in.Suspects[0] = incident.Suspect{Kind: incident.SuspectChange, ID: evil, Title: evil, URL: "javascript:alert(3)", Reasons: []string{evil}, Against: []string{evil}}
	in.Warnings[0].Resource, in.Warnings[0].Guard = evil, evil
	f.put(incident.EventDeclared, in)
	f.status.Problems = []string{evil}
	f.status.Partitions[0].Problem = evil
	_, s := serve(t, f, func(o *Options) {
		o.Series = func(context.Context, incident.Incident) ([]Series, error) {
			return []Series{{Name: evil, Points: []Point{{At: began}, {At: began.Add(time.Minute)}}}}, nil
		}
		o.Deliveries = func(string) []Delivery {
			return []Delivery{{Receiver: evil, Action: evil, Outcome: evil, Detail: evil}}
		}
	})
	tag := regexp.MustCompile(`<img src=x|<script>|javascript:`)
	for _, path := range []string{"/", "/incidents/inc-1", "/incidents/inc-1?told=" + url.QueryEscape(evil), "/incidents/" + url.PathEscape(evil)} {
		if _, page, _ := get(t, s, path); tag.MatchString(page) {
			t.Errorf("%s contains foreign markup %q", path, tag.FindString(page))
		}
	}
}

func TestButton(t *testing.T) {
	f := newFake()
	f.put(incident.EventDeclared, outage())
	_, s := serve(t, f)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	press := func(path, by string, header ...string) (int, string, string) {
		t.Helper()
		req, err := http.NewRequest(http.MethodPost, s.URL+path, strings.NewReader(url.Values{"by": {by}, "note": {"on it"}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(b), res.Header.Get("Location")
	}
	const ack = "/incidents/inc-1/acknowledge"
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example.com"}, {"Origin", "null"}} {
		if status, page, _ := press(ack, "ada", header...); status != http.StatusForbidden || !strings.Contains(page, "another site") {
			t.Errorf("a form with %s: %s answers %d", header[0], header[1], status)
		}
	}
	for path, want := range map[string]int{
		"/incidents/inc-1/explode": http.StatusBadRequest, "/incidents/none/resolve": http.StatusNotFound, "/incidents/inc-1/merge": http.StatusBadRequest,
	} {
		if status, _, _ := press(path, "ada"); status != want {
			t.Errorf("%s answers %d, want %d", path, status, want)
		}
	}
	if status, page, _ := press(ack, "  "); status != http.StatusBadRequest || !strings.Contains(page, "say who orders this") {
		t.Errorf("a command of nobody answers %d", status)
	}
	if len(f.commands) > 0 {
		t.Fatalf("a refused command was passed on: %+v", f.commands)
	}
	status, _, to := press(ack, " ada ", "Sec-Fetch-Site", "same-origin", "Origin", s.URL)
	if status != http.StatusSeeOther || to != "/incidents/inc-1?told=acknowledge" {
		t.Fatalf("the button answers %d to %q", status, to)
	}
	want := incident.Command{Type: incident.CommandAcknowledge, Incident: "inc-1", By: "ada", Via: "web", Note: "on it", At: began.Add(time.Hour)}
	got := f.commands[0]
	if got.ID == "" {
		t.Error("the command has no id, so a repeated delivery would count twice")
	}
	if got.ID = ""; got != want {
		t.Errorf("passed on %+v, want %+v", got, want)
	}
	_, page, _ := get(t, s, to)
	expect(t, page, "Passed on: acknowledge.")

	f.refuse = errDown
	if status, page, _ := press(ack, "ada"); status != http.StatusServiceUnavailable || !strings.Contains(page, "Nothing was done: connection refused.") {
		t.Errorf("a command that can't be passed on answers %d", status)
	}
}
