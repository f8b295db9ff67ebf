package pagerduty

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/respond/respondtest"
	standin "github.com/tocsin-project/tocsin/internal/standin/pagerduty"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "0123456789abcdef0123456789abcdef"

func pair(t *testing.T, o standin.Options) (*Sender, *standin.Server) {
	t.Helper()
	srv, err := standin.Start("127.0.0.1:0", o)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() { _ = srv.Close(); client.CloseIdleConnections() })
	s, err := New(&Config{URL: srv.URL, Client: "Tocsin"}, key, "https://tocsin.example.com/", client)
	if err != nil {
		t.Fatal(err)
	}
	return s, srv
}

func send(t *testing.T, s *Sender, d respond.Delivery) {
	t.Helper()
	if d.Key == "" {
		d.Key = s.Key(d.Notice.Incident.ID)
	}
	if _, err := s.Send(t.Context(), d); err != nil {
		t.Fatalf("%s: %v", d.Action, err)
	}
}

func TestLifeOfAnAlert(t *testing.T) {
	s, srv := pair(t, standin.Options{})
	i := respondtest.Example()
	for _, a := range []respond.Action{respond.ActionOpen, respond.ActionOpen, respond.ActionRaise, respond.ActionAcknowledge} {
		send(t, s, respondtest.Delivery(a, i, ""))
	}
	if got := srv.State().Alerts[0]; got.Status != "acknowledged" || got.Triggers != 3 {
		t.Errorf("got %+v", got)
	}
	send(t, s, respondtest.Delivery(respond.ActionClose, i, ""))
	st := srv.State()
	if len(st.Alerts) != 1 || st.Alerts[0].Status != "resolved" || len(st.Dropped)+len(st.Rejected) > 0 {
		t.Errorf("got %+v", st)
	}
}

// What a woken engineer reads first.
func TestSummary(t *testing.T) {
	s, srv := pair(t, standin.Options{})
	drill := respondtest.Example()
	drill.ID, drill.Labels = "drill", map[string]string{"drill": "true"}
	send(t, s, respondtest.Delivery(respond.ActionOpen, respondtest.Example(), ""))
	send(t, s, respondtest.Delivery(respond.ActionOpen, respondtest.Warning(), "w"))
	send(t, s, respondtest.Delivery(respond.ActionOpen, drill, ""))
	var got []string
	for _, a := range srv.State().Alerts {
		got = append(got, a.Severity+" "+a.Summary)
	}
	want := []string{
		"critical [critical] issues/create: 96% of writes fail (usually 0.3%), 3 services, at least 1,204 customers, 14 tickets, since 08:43 UTC — suspect: job data-clean-up (began 70 min before)",
		"critical [warning] mysql/collab/primary connections exhausted in ~14 min (920 of 1,000) — suspect: job data-clean-up",
		"critical TEST, nothing is wrong: [critical] issues/create: 96% of writes fail (usually 0.3%), 3 services, at least 1,204 customers, 14 tickets, since 08:43 UTC — suspect: job data-clean-up (began 70 min before)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	raw, _ := json.Marshal(srv.State().Alerts[0])
	for _, want := range []string{`"component":"mysql/collab/primary"`, `"group":"platform"`, `"class":"failures"`, `"source":"issues"`,
		`"timestamp":"2026-09-13T08:45:00.000Z"`, `"href":"https://tocsin.example.com/incidents/20260913-0843-mysql-collab-primary"`,
		`"https://runbooks.example.com/mysql"`, `"accounts_at_least":1204`, `against: 3 other jobs ran as well`, `site=iad explains 90% of the failures`} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("%s is missing in %s", want, raw)
		}
	}
}

// alertmanager#1700, #1840, livepeer/stream-tester PR#354 (summary over 1024), kibana#142757 (key over 255): delivered, cut by runes.
func TestHostileIncidentsAreDelivered(t *testing.T) {
	for name, i := range respondtest.Hostile() {
		t.Run(name, func(t *testing.T) {
			s, srv := pair(t, standin.Options{})
			send(t, s, respondtest.Delivery(respond.ActionOpen, i, ""))
			send(t, s, respondtest.Delivery(respond.ActionClose, i, ""))
			st := srv.State()
			if len(st.Rejected) > 0 || len(st.Dropped) > 0 || len(st.Alerts) != 1 {
				t.Fatalf("got %+v", st)
			}
			if a := st.Alerts[0]; utf8.RuneCountInString(a.Summary) > 1024 || !utf8.ValidString(a.Summary) || len(a.DedupKey) > 255 || a.Status != "resolved" {
				t.Errorf("got %+v", a)
			}
		})
	}
	long := respondtest.Hostile()["5,000 runes everywhere"]
	s, _ := pair(t, standin.Options{})
	other := long
	other.ID += "y"
	if s.Key(long.ID) == s.Key(other.ID) || s.Key("a") != "tocsin/a" {
		t.Error("keys must differ by incident and nothing else")
	}
}

// The body stays below 512 KB whatever the details are, and a number that JSON lacks does not lose the page.
func TestBodyBudget(t *testing.T) {
	e := event{RoutingKey: key, Action: "trigger", DedupKey: "k", Payload: &payload{Summary: "s", Source: "x", Severity: "critical",
		Details: map[string]any{"small": "kept", "large": strings.Repeat("<", 400<<10), "larger": strings.Repeat("<", 500<<10)}}}
	body, err := e.marshal()
	if err != nil || len(body) > maxBody || !strings.Contains(string(body), "kept") {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	e.Payload.Details = map[string]any{"x": math.NaN()}
	if _, err := e.marshal(); err != nil {
		t.Error(err)
	}
}

func TestErrorsAreClassified(t *testing.T) {
	type want struct {
		class   respond.Class
		reason  respond.Reason
		unknown bool
	}
	for name, c := range map[string]struct {
		break_ func(*standin.Server)
		want   want
	}{
		"500":  {func(s *standin.Server) { s.Fail(standin.Error500, 1) }, want{respond.Retry, respond.ReasonServer, true}},
		"429":  {func(s *standin.Server) { s.Fail(standin.RateLimit, 1) }, want{respond.RateLimited, respond.ReasonRateLimited, false}},
		"hang": {func(s *standin.Server) { s.Fail(standin.Hang, 1) }, want{respond.Retry, respond.ReasonTimeout, true}},
		"lost": {func(s *standin.Server) { s.Fail(standin.Lost, 1) }, want{respond.Retry, respond.ReasonNetwork, true}},
		"down": {func(s *standin.Server) { _ = s.Close() }, want{respond.Retry, respond.ReasonNetwork, false}},
	} {
		t.Run(name, func(t *testing.T) {
			srv, err := standin.Start("127.0.0.1:0", standin.Options{})
			if err != nil {
				t.Fatal(err)
			}
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			s, _ := New(&Config{URL: srv.URL}, key, "", client)
			c.break_(srv)
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			_, err = s.Send(ctx, respondtest.Delivery(respond.ActionOpen, respondtest.Example(), "k"))
			var se *respond.SendError
			if !errors.As(err, &se) {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(c.want, want{se.Class, se.Reason, se.Unknown}, cmp.AllowUnexported(want{})); diff != "" {
				t.Error(diff)
			}
			if name == "429" && se.After != time.Second {
				t.Errorf("Retry-After is %s", se.After)
			}
			if name != "down" {
				_ = srv.Close()
			}
		})
	}
}

// alertmanager#1700, #1840: a page that PagerDuty does not take as it is goes out bare rather than not at all, and says why.
func TestWhatIsRefusedGoesOutBare(t *testing.T) {
	i := respondtest.Example()
	i.Title = "größte Störung\nseit Jahren"
	for name, c := range map[string]struct {
		statuses []int
		class    respond.Class
		bare     bool
		calls    int
	}{
		"refused":           {[]int{400, 202}, 0, true, 2},
		"too large":         {[]int{413, 202}, 0, true, 2},
		"refused bare, too": {[]int{400, 400}, respond.Permanent, false, 2},
		"then down":         {[]int{400, 503}, respond.Retry, false, 2},
		"then limited":      {[]int{400, 429}, respond.RateLimited, false, 2},
		"no key":            {[]int{403}, respond.Permanent, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var events []event
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var e event
				if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
					t.Error(err)
				}
				events = append(events, e)
				w.WriteHeader(c.statuses[min(len(events), len(c.statuses))-1])
				_, _ = fmt.Fprint(w, `{"status":"success","message":"because of the links"}`)
			}))
			defer srv.Close()
			s, err := New(&Config{URL: srv.URL, Client: "Tocsin"}, key, "https://tocsin.example.com/", srv.Client())
			if err != nil {
				t.Fatal(err)
			}
			receipt, err := s.Send(t.Context(), respondtest.Delivery(respond.ActionOpen, i, "k"))
			if (receipt.Bare != nil) != c.bare || len(events) != c.calls {
				t.Errorf("%d calls, bare %v", len(events), receipt.Bare)
			}
			if c.bare {
				e := events[1]
				if err != nil || e.DedupKey != "k" || e.RoutingKey != key || len(e.Links) > 0 || e.Client != "" || e.Payload.Details != nil || e.Payload.Severity != "critical" ||
					!strings.HasPrefix(e.Payload.Summary, "gr??te St?rung?seit Jahren (") || !strings.Contains(receipt.Bare.Error(), "because of the links") {
					t.Errorf("%v: %+v %+v", err, e, e.Payload)
				}
			} else if se := respond.Classify(err); err == nil || se.Class != c.class {
				t.Errorf("got %v", err)
			}
		})
	}
	// What cannot be made smaller is not sent twice.
	calls := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { calls++; w.WriteHeader(400) }))
	defer srv.Close()
	s, err := New(&Config{URL: srv.URL}, key, "", srv.Client())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Send(t.Context(), respondtest.Delivery(respond.ActionClose, i, "k")); err == nil || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

// alertmanager PR#1822, pgEdge/ai-dba-workbench#498: no secret in any error, wherever the provider repeats it.
func TestErrorsHideTheKey(t *testing.T) {
	answers := []func(http.ResponseWriter){
		func(w http.ResponseWriter) { w.WriteHeader(400); _, _ = fmt.Fprint(w, "bad key "+key) },
		func(w http.ResponseWriter) { w.WriteHeader(500); _, _ = fmt.Fprint(w, key) },
		func(w http.ResponseWriter) { w.WriteHeader(200); _, _ = fmt.Fprint(w, "<html>log in, "+key) },
		func(w http.ResponseWriter) { panic(http.ErrAbortHandler) },
	}
	for n, answer := range answers {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
		s, err := New(&Config{URL: srv.URL + "/" + key}, key, "", srv.Client())
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Send(t.Context(), respondtest.Delivery(respond.ActionOpen, respondtest.Example(), "k"))
		srv.Close()
		if err == nil || strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, respond.Classify(err).Err), key) {
			t.Errorf("answer %d: %v", n, err)
		}
	}
	if _, err := New(&Config{}, "short-secret", "", nil); err == nil || strings.Contains(err.Error(), "short-secret") {
		t.Errorf("got %v", err)
	}
}

// The stand-in takes what PagerDuty documents, and refuses what it forbids.
func TestStandInAgainstDocumentedPayloads(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "..", "shared", "data", "wire", "payloads", "pagerduty")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no sample payloads at ../shared/data/wire/payloads beside the checkout")
	}
	_, srv := pair(t, standin.Options{})
	post := func(url string, body []byte) int {
		resp, err := http.Post(url, "application/json", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	defer http.DefaultClient.CloseIdleConnections()
	for _, f := range []string{"events-v2.trigger.json", "events-v2.acknowledge.json", "events-v2.resolve.json"} {
		body, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil {
			t.Fatal(err)
		}
		if code := post(srv.URL, body); code != 202 {
			t.Errorf("%s: %d %v", f, code, srv.State().Rejected)
		}
	}
	change, _ := os.ReadFile(filepath.Join(dir, "change-event.json"))
	if code := post(srv.Base+"/v2/change/enqueue", change); code != 202 {
		t.Errorf("change event: %d", code)
	}
	if st := srv.State(); len(st.Alerts) != 1 || st.Alerts[0].Status != "resolved" || st.Changes != 1 {
		t.Errorf("got %+v", st)
	}
	trigger, _ := os.ReadFile(filepath.Join(dir, "events-v2.trigger.json"))
	for from, to := range map[string]string{
		`"0123456789abcdef0123456789abcdef"`: `"short"`, `"trigger"`: `"open"`, `"severity": "critical"`: `"severity": "bad"`,
		`"source": "tocsin/example"`: `"x": 1`, `"summary": "checkout`: `"summary": "` + strings.Repeat("x", 1020),
		`"tocsin/example/2026-11-30/checkout-write"`: `"` + strings.Repeat("k", 256) + `"`, `2026-11-30T02:12:00.000Z`: "yesterday", `{`: `[`,
		`"https://example.com/chart.png"`: `"http://example.com/chart.png"`,
	} {
		body := strings.Replace(string(trigger), from, to, 1)
		if code := post(srv.URL, []byte(body)); body == string(trigger) || code != 400 {
			t.Errorf("%s → %s: %d", from, to, code)
		}
	}
	if code := post(srv.URL, []byte(`{"x":"`+strings.Repeat("x", 513<<10)+`"}`)); code != 413 {
		t.Errorf("too large: %d", code)
	}
}

// 120 calls a minute, and closes under another key are dropped without a word, as the real one does.
func TestStandInLimitsAndDrops(t *testing.T) {
	s, srv := pair(t, standin.Options{})
	send(t, s, respondtest.Delivery(respond.ActionOpen, respondtest.Example(), "k"))
	other, _ := New(&Config{URL: srv.URL}, "ffffffffffffffffffffffffffffffff", "", s.http)
	send(t, other, respondtest.Delivery(respond.ActionClose, respondtest.Example(), "k"))
	if st := srv.State(); st.Alerts[0].Status != "triggered" || len(st.Dropped) != 1 {
		t.Errorf("got %+v", st)
	}
	for range 119 {
		send(t, s, respondtest.Delivery(respond.ActionOpen, respondtest.Example(), "k"))
	}
	_, err := s.Send(t.Context(), respondtest.Delivery(respond.ActionOpen, respondtest.Example(), "k"))
	if respond.Classify(err).Reason != respond.ReasonRateLimited {
		t.Errorf("got %v", err)
	}
}
