package receivers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.uber.org/goleak"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/respond/outbox"
	"github.com/tocsin-project/tocsin/internal/respond/respondtest"
	"github.com/tocsin-project/tocsin/internal/respond/route"
	pagerstandin "github.com/tocsin-project/tocsin/internal/standin/pagerduty"
	slackstandin "github.com/tocsin-project/tocsin/internal/standin/slack"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("TOCSIN_RESPOND_CHILD"); dir != "" {
		child(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

const (
	routingKey = "0123456789abcdef0123456789abcdef"
	slackToken = "xoxb-4711-secret"
)

// shipped is the routes file that Tocsin comes with, set up against stand-ins.
func shipped(t testing.TB, dir, pagerURL, slackURL string) *route.Config {
	if t == nil { // in the child process there is no test
		t = fatal{}
	}
	t.Helper()
	file := filepath.Join("..", "..", "..", "rules", "routes.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := Load("routes.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Global = route.Global{PagerDutyURL: pagerURL, SlackAPIURL: slackURL, SecretsDir: dir}
	if err := os.MkdirAll(filepath.Join(dir, "secrets"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"pagerduty_routing_key": routingKey, "slack_token": slackToken} {
		if err := os.WriteFile(filepath.Join(dir, "secrets", name), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cfg
}

type world struct {
	pager *pagerstandin.Server
	slack *slackstandin.Server
	dir   string
	cfg   *route.Config
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{dir: t.TempDir()}
	var err error
	if w.pager, err = pagerstandin.Start("127.0.0.1:0", pagerstandin.Options{Keys: []string{routingKey}, Unlimited: true}); err != nil {
		t.Fatal(err)
	}
	if w.slack, err = slackstandin.Start("127.0.0.1:0", slackstandin.Options{Token: slackToken, Channels: []string{"incidents"}, Unlimited: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.pager.Close(); _ = w.slack.Close() })
	w.cfg = shipped(t, w.dir, w.pager.URL, w.slack.URL)
	return w
}

// quick makes a test's loop not wait as a real one does.
func quick(places []respond.Place) []respond.Place {
	for i := range places {
		places[i].Pace = time.Millisecond
	}
	return places
}

var settings = respond.Settings{RetryMin: strictyaml.Duration(5 * time.Millisecond), RetryMax: strictyaml.Duration(50 * time.Millisecond),
	SendTimeout: strictyaml.Duration(300 * time.Millisecond), EditInterval: strictyaml.Duration(10 * time.Millisecond)}

func (w *world) options(t *testing.T, log respond.IncidentLog, store respond.Store) respond.Options {
	t.Helper()
	client := Client()
	t.Cleanup(client.CloseIdleConnections)
	places, err := Build(w.cfg, Options{Dir: w.dir, Client: client})
	if err != nil {
		t.Fatal(err)
	}
	return respond.Options{Log: log, Routes: w.cfg, Places: quick(places), Store: store, Settings: settings, Poll: 5 * time.Millisecond}
}

func run(t *testing.T, o respond.Options) (stop func()) {
	t.Helper()
	l, err := respond.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

func wait(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !cond(); time.Sleep(2 * time.Millisecond) { //nolint:forbidigo // polls a condition of real servers
		if time.Now().After(end) {
			t.Fatalf("%s: it did not happen", what)
		}
	}
}

func event(i incident.Incident, seq, tick uint64, typ incident.EventType) incident.Event {
	now := time.Now()
	i.Sequence = seq
	return incident.Event{Incident: i.ID, Sequence: seq, At: now, Clock: now, Type: typ, Reason: "r" + fmt.Sprint(seq), Tick: tick, After: i}
}

func in(i incident.Incident, s incident.State) incident.Incident { i.State = s; return i }

func TestShippedRoutesEndToEnd(t *testing.T) {
	w := newWorld(t)
	log := &respond.MemoryLog{}
	o := w.options(t, log, &outbox.Memory{})
	reg := prometheus.NewRegistry()
	o.Metrics = respond.NewMetrics(reg)
	run(t, o)
	warning := respondtest.Warning()
	log.Append(event(warning, 1, 1, incident.EventSuspected))
	wait(t, "the warning is posted", func() bool { return len(w.slack.Channel("incidents").Messages) == 1 })
	if n := len(w.pager.State().Alerts); n != 0 {
		t.Fatalf("a warning paged %d times", n)
	}
	i := respondtest.Example()
	log.Append(event(i, 2, 2, incident.EventDeclared))
	wait(t, "the page goes out", func() bool { return len(w.pager.State().Alerts) == 1 })
	log.Append(event(in(i, incident.Acknowledged), 3, 3, incident.EventAcknowledged))
	wait(t, "it is acknowledged", func() bool { return w.pager.State().Alerts[0].Status == "acknowledged" })
	log.Append(event(in(i, incident.Resolved), 4, 4, incident.EventResolved))
	wait(t, "it is resolved", func() bool {
		c := w.slack.Channel("incidents")
		return w.pager.State().Alerts[0].Status == "resolved" && len(c.Messages) == 1 && strings.Contains(fmt.Sprintf("%s", c.Messages[0].Blocks), "resolved") &&
			strings.Contains(fmt.Sprint(c.Messages[0].Replies), "resolved")
	})
	if st := w.slack.State(); len(st.Rejected) > 0 {
		t.Error(st.Rejected)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := promlint.NewWithMetricFamilies(families).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("metrics: %v %v", problems, err)
	}
}

// prometheus#7676: one dead receiver of several delays no other. PagerDuty hangs throughout.
func TestADeadProviderDelaysNobody(t *testing.T) {
	w := newWorld(t)
	w.pager.Fail(pagerstandin.Hang, 1000)
	log := &respond.MemoryLog{}
	run(t, w.options(t, log, &outbox.Memory{}))
	for k := range 5 {
		i := respondtest.Example()
		i.ID = fmt.Sprintf("i%d", k)
		log.Append(event(i, 1, uint64(k+1), incident.EventDeclared))
	}
	begun := time.Now()
	wait(t, "Slack has all", func() bool { return len(w.slack.Channel("incidents").Messages) == 5 })
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("it took %s", took)
	}
	w.pager.Heal()
	wait(t, "PagerDuty has them as well", func() bool { return len(w.pager.State().Alerts) >= 4 }) // three pages and the summary
}

// The log cannot be read: what was decided before is delivered all the same, and health hears of it.
func TestDeliversWhileTheLogIsUnreachable(t *testing.T) {
	w := newWorld(t)
	log, store := &respond.MemoryLog{}, &outbox.Memory{}
	w.pager.Fail(pagerstandin.Error500, 100_000)
	o := w.options(t, log, store)
	stop := run(t, o)
	log.Append(event(respondtest.Example(), 1, 1, incident.EventDeclared))
	wait(t, "the page was tried", func() bool { return w.pager.State().Calls > 0 })
	stop()
	log.Fail(errors.New("code 210: connection refused"))
	w.pager.Heal()
	var mu sync.Mutex
	healthy := true
	o.Health = func(cause string, ok bool, _ string) {
		mu.Lock()
		defer mu.Unlock()
		healthy = healthy && (ok || cause != "clickhouse_unreachable")
	}
	run(t, o)
	wait(t, "the page goes out without ClickHouse", func() bool { return len(w.pager.State().Alerts) == 1 })
	wait(t, "the trouble is reported", func() bool { mu.Lock(); defer mu.Unlock(); return !healthy })
}

type brokenStore struct{ outbox.Memory }

func (*brokenStore) Put(context.Context, string, []byte) error {
	return errors.New("no space left on device")
}

// A full disk must not keep a page from going out.
func TestPagesAlthoughTheOutboxCannotBeWritten(t *testing.T) {
	w := newWorld(t)
	log := &respond.MemoryLog{}
	o := w.options(t, log, &brokenStore{})
	var mu sync.Mutex
	var causes []string
	o.Health = func(cause string, ok bool, _ string) {
		mu.Lock()
		defer mu.Unlock()
		if !ok {
			causes = append(causes, cause)
		}
	}
	run(t, o)
	log.Append(event(respondtest.Example(), 1, 1, incident.EventDeclared))
	wait(t, "the page goes out", func() bool { return len(w.pager.State().Alerts) == 1 })
	mu.Lock()
	defer mu.Unlock()
	if !slices.Contains(causes, "outbox_failing") {
		t.Errorf("nobody was told: %v", causes)
	}
}

type panicky struct{}

func (panicky) Key(string) string { return "" }
func (panicky) Send(context.Context, respond.Delivery) (respond.Receipt, error) {
	panic("a mistake of ours")
}

// A sender that panics takes nobody along, and a process that lost the lead sends nothing.
func TestPanicAndLead(t *testing.T) {
	w := newWorld(t)
	log := &respond.MemoryLog{}
	o := w.options(t, log, &outbox.Memory{})
	o.Places = append(o.Places, respond.Place{ID: "bad", Receivers: []string{"oncall"}, Kind: "bad", Pages: true, Sender: panicky{}})
	var mu sync.Mutex
	lead := false
	o.Lead = func() bool { mu.Lock(); defer mu.Unlock(); return lead }
	run(t, o)
	log.Append(event(respondtest.Example(), 1, 1, incident.EventDeclared))
	time.Sleep(100 * time.Millisecond) //nolint:forbidigo // nothing may happen in it
	if w.pager.State().Calls+w.slack.State().Calls > 0 {
		t.Fatal("sent without the lead")
	}
	mu.Lock()
	lead = true
	mu.Unlock()
	wait(t, "it is sent with the lead", func() bool {
		return len(w.pager.State().Alerts) == 1 && len(w.slack.Channel("incidents").Messages) == 1
	})
}

// alertmanager#2213: a drill goes end to end, is marked TEST, and closes what it opened; it says which place failed.
func TestDrill(t *testing.T) {
	w := newWorld(t)
	o := w.options(t, nil, &outbox.Memory{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	results, err := respond.Drill(ctx, o, map[string]string{"team": "storage"})
	if err != nil || len(results) != 2 || !results[0].Opened || !results[1].Closed {
		t.Fatalf("%+v %v", results, err)
	}
	a := w.pager.State().Alerts
	if len(a) != 1 || a[0].Status != "resolved" || !strings.HasPrefix(a[0].Summary, "TEST, nothing is wrong: ") {
		t.Errorf("got %+v", a)
	}
	if m := w.slack.Channel("incidents").Messages; len(m) != 1 || !strings.Contains(fmt.Sprintf("%s", m[0].Blocks), "TEST") {
		t.Errorf("got %+v", m)
	}
}

// A drill that cannot reach one place, or whose caller goes away, says which and leaves no TEST open at the others.
func TestDrillThatFailsClosesWhatItOpened(t *testing.T) {
	w := newWorld(t)
	o := w.options(t, nil, &outbox.Memory{})
	w.slack.Fail(slackstandin.Error500, 100_000, "")
	time.AfterFunc(time.Second, w.slack.Heal)
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	results, err := respond.Drill(short, o, nil)
	if err == nil || !strings.Contains(err.Error(), "slack-incidents") || !strings.Contains(err.Error(), string(respond.ReasonServer)) || strings.Contains(err.Error(), "by hand") {
		t.Errorf("%+v %v", results, err)
	}
	if a := w.pager.State().Alerts; len(a) != 1 || a[0].Status != "resolved" {
		t.Errorf("left behind: %+v", a)
	}
}

// alertmanager PR#1822: nothing that is logged while everything fails shows a secret.
func TestLogsHideSecrets(t *testing.T) {
	hookPath := "/services/T000/B000/hook-secret"
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, "no such hook %s %s", r.URL, r.Host)
	}))
	defer hook.Close()
	w := newWorld(t)
	text := fmt.Sprintf(`
route: {receiver: all}
receivers:
  - name: all
    pagerduty_configs: [{routing_key: ffffffffffffffffffffffffffffffff, url: %s}, {routing_key: %s, url: "http://127.0.0.1:1/%s"}]
    slack_configs: [{token: %s-wrong, channel: incidents, api_url: %s}, {token: %s, channel: nowhere, api_url: %s}]
    webhook_configs: [{url: "%s%s"}, {url: "http://user:pass-secret@127.0.0.1:1/x"}]
`, w.pager.URL, routingKey, routingKey, slackToken, w.slack.URL, slackToken, w.slack.URL, hook.URL, hookPath)
	cfg, err := Load("routes.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	w.cfg = cfg
	log := &respond.MemoryLog{}
	o := w.options(t, log, &outbox.Memory{})
	var mu sync.Mutex
	var out bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(locked{&mu, &out}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	stop := run(t, o)
	log.Append(event(respondtest.Example(), 1, 1, incident.EventDeclared))
	lines := func() string { mu.Lock(); defer mu.Unlock(); return out.String() }
	wait(t, "each of the six has failed", func() bool { return strings.Count(lines(), "msg=deliver ") >= 6 })
	stop()
	all := lines() + fmt.Sprintf("%v %+v %#v", cfg.Receivers[0].Integrations, o.Places, cfg.Global)
	for _, s := range []string{routingKey, "ffffffffffffffffffffffffffffffff", slackToken, "hook-secret", "pass-secret"} {
		if strings.Contains(lines(), s) {
			t.Errorf("the log shows %s: %s", s, all)
		}
	}
	for _, p := range o.Places {
		if strings.Contains(p.ID, "secret") || strings.Contains(p.ID, routingKey) {
			t.Errorf("the place %s shows a secret", p.ID)
		}
	}
}

type locked struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (l locked) Write(p []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.b.Write(p) }

// Every mistake with its place, none with its secret.
func TestMistakesInReceivers(t *testing.T) {
	for name, c := range map[string]struct{ config, want string }{
		"no key":      {"pagerduty_configs: [{}]", "r.yaml:4:25: routing_key or routing_key_file is required"},
		"both":        {"pagerduty_configs: [{routing_key: x, routing_key_file: y}]", "not both"},
		"short key":   {"pagerduty_configs: [{routing_key: hush}]", "a routing key has 32 characters, this one has 4"},
		"no channel":  {"slack_configs: [{token: hush}]", `"channel" is required`},
		"no token":    {"slack_configs: [{channel: c}]", "token or token_file is required"},
		"typo":        {"slack_configs: [{token: hush, chanel: c}]", `did you mean "channel"?`},
		"format":      {"webhook_configs: [{url: 'http://hush', format: xml}]", "xml"},
		"no url":      {"webhook_configs: [{}]", "url or url_file is required"},
		"not a list":  {"webhook_configs: {url: hush}", "must be a list"},
		"lost secret": {"slack_configs: [{token_file: nowhere, channel: c}]", "read secret file"},
		"bad url":     {"pagerduty_configs: [{routing_key: " + routingKey + ", url: 'ftp://hush'}]", "must be an http(s) address"},
		"bad hook":    {"webhook_configs: [{url: hush}]", "must be an http(s) address"},
	} {
		cfg, err := Load("r.yaml", []byte("route: {receiver: a}\nreceivers:\n  - name: a\n    "+c.config+"\n"))
		if err == nil {
			_, err = Build(cfg, Options{Dir: t.TempDir()})
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "r.yaml:4:") || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

// The list of kinds holds together: key and name agree, each key is used once.
func TestKinds(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Kinds() {
		if k.Key != k.Name+"_configs" || seen[k.Key] || k.Decode == nil {
			t.Errorf("kind %+v", k)
		}
		seen[k.Key] = true
	}
}

// A backtest has the shipped routes: one page at the declaration, one when it becomes worse, none for what is suspected.
func TestSimulateShippedRoutes(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "rules", "routes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := Load("routes.yaml", data) // no secret is needed
	if err != nil {
		t.Fatal(err)
	}
	major, critical := respondtest.Example(), respondtest.Example()
	major.Severity = incident.Major
	var events []incident.Event
	for n, i := range []incident.Incident{respondtest.Warning(), major, critical, major, in(critical, incident.Acknowledged), in(critical, incident.Resolved)} {
		e := event(i, uint64(n+1), uint64(n+1), incident.EventImpact)
		e.At = respondtest.Start.Add(time.Duration(n) * time.Minute)
		events = append(events, e)
	}
	got := respond.Simulate(cfg, respond.Settings{}, events)
	if len(got) != 2 || got[0].Severity != incident.Major || got[1].Severity != incident.Critical || got[0].Receiver != "oncall" ||
		!got[0].At.Equal(respondtest.Start.Add(time.Minute)) || !strings.HasPrefix(got[1].Reason, "severity rose: [critical] issues/create") {
		t.Errorf("got %+v", got)
	}
}

// A reload in the middle: what is open stays open and is told once, a new place gets a worker, and what the old key opened is
// closed with the old key.
func TestRoutesAreReplacedWhileItRuns(t *testing.T) {
	w := newWorld(t)
	log := &respond.MemoryLog{}
	o := w.options(t, log, &outbox.Memory{})
	l, err := respond.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	defer func() { cancel(); <-done }()
	i := respondtest.Example()
	i.State = incident.Declared
	log.Append(event(i, 1, 1, incident.EventDeclared))
	wait(t, "the first page", func() bool { return len(w.pager.State().Alerts) == 1 })

	other, err := pagerstandin.Start("127.0.0.1:0", pagerstandin.Options{Keys: []string{routingKey}, Unlimited: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	if err := l.SetRoutes(o.Routes, o.Places); err != nil { // the same
		t.Fatal(err)
	}
	cfg := shipped(t, w.dir, other.URL, w.slack.URL)
	client := Client()
	defer client.CloseIdleConnections()
	places, err := Build(cfg, Options{Dir: w.dir, Client: client})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.SetRoutes(cfg, quick(places)); err != nil {
		t.Fatal(err)
	}
	wait(t, "a page at the new place", func() bool { return len(other.State().Alerts) == 1 })
	log.Append(event(in(i, incident.Resolved), 2, 2, incident.EventResolved))
	for name, s := range map[string]*pagerstandin.Server{"old": w.pager, "new": other} {
		wait(t, "a close at the "+name+" place", func() bool { a := s.State().Alerts; return len(a) == 1 && a[0].Status == "resolved" })
		if a := s.State().Alerts[0]; a.Triggers != 1 {
			t.Errorf("%s: triggered %d times", name, a.Triggers)
		}
	}
	if err := l.SetRoutes(cfg, respond.Outline(cfg)); err == nil {
		t.Error("takes places that nothing can be sent to")
	}
}
