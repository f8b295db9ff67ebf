package door

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a producer that keeps what it gets, or fails, or waits.
type memory struct {
	mu     sync.Mutex
	values map[string][]string
	err    error
	hold   chan struct{} // receives before the answer, where it is there
	began  chan struct{}
}

var _ Producer = (*memory)(nil)

func (m *memory) Produce(ctx context.Context, topic string, value []byte) error {
	if m.hold != nil {
		m.began <- struct{}{}
		select {
		case <-m.hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	if m.values == nil {
		m.values = map[string][]string{}
	}
	m.values[topic] = append(m.values[topic], string(value))
	return nil
}

func (m *memory) got(topic string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[topic]
}

func pipelines(t *testing.T) *pipeline.Set {
	t.Helper()
	file := func(name, stream string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("name: " + name + "\ntopic: t." + name + "\nstream: " + stream + "\ndecoder: json\nmax_record: 200B\n")}
	}
	set, err := pipeline.Load(fstest.MapFS{"a.yaml": file("alerts", "alerts"), "c.yaml": file("changes", "changes"), "t.yaml": file("tickets", "tickets"), "g.yaml": file("gauges", "gauges")})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

type fixture struct {
	door     *Door
	producer *memory
	server   *httptest.Server
	registry *prometheus.Registry
	dir      string
	log      logged
}

// logged keeps what is logged from many goroutines.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var clock = time.Date(2026, 9, 13, 8, 43, 0, 0, time.UTC)

func open(t *testing.T, config string, p *memory) *fixture {
	t.Helper()
	f := &fixture{producer: p, dir: t.TempDir(), registry: prometheus.NewRegistry()}
	for name, text := range map[string]string{"tokens": "first-token\nsecond-token\n", "secrets": "old-secret\nnew-secret\n", "empty": "\n"} {
		if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := Config{}
	c.SetDefaults()
	if err := strictyaml.Decode("door.yaml", []byte(config), &c); err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	var err error
	f.door, err = New(Options{
		Config: c, Pipelines: pipelines(t), Producer: p, Path: func(s string) string { return filepath.Join(f.dir, s) },
		Logger: slog.New(slog.NewTextHandler(&f.log, nil)), Metrics: NewMetrics(f.registry), Now: func() time.Time { return clock },
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	f.door.Register(mux)
	f.server = httptest.NewServer(mux)
	t.Cleanup(f.server.Close)
	return f
}

// counted are the requests by pipeline and outcome.
func (f *fixture) counted(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := f.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if l := m.GetLabel(); family.GetName() == "tocsin_door_requests_total" {
				counted[l[1].GetValue()+" "+l[0].GetValue()] += m.GetCounter().GetValue()
			}
		}
	}
	return counted
}

func (f *fixture) post(t *testing.T, path, body string, headers ...string) (status int, text string, h http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := f.server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > 0 && res.StatusCode != http.StatusNotFound && res.StatusCode != http.StatusMethodNotAllowed && !json.Valid(b) {
		t.Errorf("the answer is no JSON: %s", b)
	}
	return res.StatusCode, string(b), res.Header
}

const config = `
pipelines:
  - {pipeline: alerts, open: true}
  - {pipeline: changes, token_files: [tokens], signature: github, secret_files: [secrets]}
  - {pipeline: tickets, signature: zendesk, secret_files: [secrets]}
alerts: alerts
`

func TestWhoMaySend(t *testing.T) {
	f := open(t, config, &memory{})
	const body = `{"a":1}`
	github := func(secret string) string {
		m := hmac.New(sha256.New, []byte(secret))
		m.Write([]byte(body))
		return "sha256=" + hex.EncodeToString(m.Sum(nil))
	}
	zendesk := func(secret string, at time.Time) []string {
		stamp := at.Format(time.RFC3339)
		m := hmac.New(sha256.New, []byte(secret))
		m.Write([]byte(stamp + body))
		return []string{"X-Zendesk-Webhook-Signature", base64.StdEncoding.EncodeToString(m.Sum(nil)), "X-Zendesk-Webhook-Signature-Timestamp", stamp}
	}
	tests := map[string]struct {
		path    string
		headers []string
		status  int
	}{
		"open":                       {"/ingest/alerts", nil, 202},
		"a token":                    {"/ingest/changes", []string{"Authorization", "Bearer second-token"}, 202},
		"a token, another spelling":  {"/ingest/changes", []string{"Authorization", "bearer first-token"}, 202},
		"a wrong token":              {"/ingest/changes", []string{"Authorization", "Bearer second"}, 401},
		"a token and more":           {"/ingest/changes", []string{"Authorization", "Bearer first-token\t second-token"}, 401},
		"the wrong way":              {"/ingest/changes", []string{"Authorization", "Basic first-token"}, 401},
		"no proof":                   {"/ingest/changes", nil, 401},
		"a signature":                {"/ingest/changes", []string{"X-Hub-Signature-256", github("new-secret")}, 202},
		"one of the earlier secret":  {"/ingest/changes", []string{"X-Hub-Signature-256", github("old-secret")}, 202},
		"one of another secret":      {"/ingest/changes", []string{"X-Hub-Signature-256", github("guessed")}, 401},
		"an empty signature":         {"/ingest/changes", []string{"X-Hub-Signature-256", "sha256="}, 401},
		"a signature that is none":   {"/ingest/changes", []string{"X-Hub-Signature-256", "sha256=zz"}, 401},
		"Zendesk's":                  {"/ingest/tickets", zendesk("new-secret", clock.Add(-time.Minute)), 202},
		"Zendesk's, played again":    {"/ingest/tickets", zendesk("new-secret", clock.Add(-6*time.Minute)), 401},
		"Zendesk's, of another":      {"/ingest/tickets", zendesk("guessed", clock), 401},
		"Zendesk's without its time": {"/ingest/tickets", zendesk("new-secret", clock)[:2], 401},
		"a token is no signature":    {"/ingest/tickets", []string{"Authorization", "Bearer first-token"}, 401},
		"a pipeline that is shut":    {"/ingest/gauges", []string{"Authorization", "Bearer first-token"}, 404},
		"no pipeline":                {"/ingest/x", nil, 404},
		"a browser's page":           {"/ingest/alerts", []string{"Origin", "https://example.com"}, 403},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			topic := "t." + strings.TrimPrefix(tt.path, "/ingest/")
			before := len(f.producer.got(topic))
			status, text, _ := f.post(t, tt.path, body, tt.headers...)
			if status != tt.status {
				t.Errorf("%d, not %d: %s", status, tt.status, text)
			}
			if stored := len(f.producer.got(topic)) - before; stored != map[bool]int{true: 1}[status == 202] {
				t.Errorf("%d answered, %d records stored", status, stored)
			}
		})
	}
	for _, secret := range []string{"first-token", "second-token", "new-secret", "old-secret"} {
		if strings.Contains(f.log.String(), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
	if got := f.producer.got("t.changes"); got[0] != body {
		t.Errorf("the record is %q", got[0])
	}
}

func TestSignatures(t *testing.T) {
	body, keys := []byte("body"), [][]byte{[]byte("a"), []byte("b")}
	mac := func(key string) string {
		m := hmac.New(sha256.New, []byte(key))
		m.Write(body)
		return hex.EncodeToString(m.Sum(nil))
	}
	one := hmac.New(sha1.New, []byte("b"))
	one.Write(body)
	tests := []struct {
		scheme        Scheme
		header, value string
		want          bool
	}{
		{PagerDuty, "X-PagerDuty-Signature", "v1=" + mac("c") + ",v1=" + mac("b"), true},
		{PagerDuty, "X-PagerDuty-Signature", "v1=" + mac("c") + ", v1=" + mac("a"), true},
		{PagerDuty, "X-PagerDuty-Signature", "v1=" + mac("a") + ",v1=" + mac("c"), true},
		{PagerDuty, "X-PagerDuty-Signature", "v1=" + mac("c"), false},
		{PagerDuty, "X-PagerDuty-Signature", "v2=" + mac("a"), false},
		{PagerDuty, "X-PagerDuty-Signature", "", false},
		{GitHub, "X-Hub-Signature-256", "sha256=" + mac("b"), true},
		{GitHub, "X-Hub-Signature-256", mac("b"), false},
		{GitHub, "X-Hub-Signature", "sha256=" + mac("b"), false},
		{Intercom, "X-Hub-Signature", "sha1=" + hex.EncodeToString(one.Sum(nil)), true},
		{Intercom, "X-Hub-Signature", "sha1=" + mac("b"), false},
	}
	for _, tt := range tests {
		if got := tt.scheme.signed(keys, http.Header{http.CanonicalHeaderKey(tt.header): {tt.value}}, body, clock); got != tt.want {
			t.Errorf("%s, %s: %s is %v", tt.scheme, tt.header, tt.value, got)
		}
	}
	// GitHub's documentation has this example.
	h := http.Header{}
	h.Set("X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17")
	if !GitHub.signed([][]byte{[]byte("It's a Secret to Everybody")}, h, []byte("Hello, World!"), clock) {
		t.Error("the documented signature is refused")
	}
}

// A token that is changed holds from the next request on.
func TestTokensAreReadAnew(t *testing.T) {
	f := open(t, config, &memory{})
	if err := os.WriteFile(filepath.Join(f.dir, "tokens"), []byte("third-token"), 0o600); err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]int{"third-token": 202, "first-token": 401} {
		if status, text, _ := f.post(t, "/ingest/changes", "{}", "Authorization", "Bearer "+token); status != want {
			t.Errorf("%s: %d %s", token, status, text)
		}
	}
	if err := os.Remove(filepath.Join(f.dir, "tokens")); err != nil {
		t.Fatal(err)
	}
	if status, text, _ := f.post(t, "/ingest/changes", "{}", "Authorization", "Bearer third-token"); status != 503 {
		t.Errorf("without the file: %d %s", status, text)
	}
}

func TestBodies(t *testing.T) {
	f := open(t, config, &memory{})
	zip := func(s string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(s))
		_ = z.Close()
		return b.String()
	}
	tests := map[string]struct {
		body    string
		headers []string
		status  int
		says    string
	}{
		"the largest":           {strings.Repeat("x", 200), nil, 202, "accepted"},
		"too large":             {strings.Repeat("x", 201), nil, 413, "200 bytes"},
		"empty":                 {" \n", nil, 400, "empty"},
		"a form":                {"payload=%7B%7D", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "form"},
		"compressed":            {zip(`{"a":1}`), []string{"Content-Encoding", "gzip"}, 202, "accepted"},
		"compressed, too large": {zip(strings.Repeat("x", 1<<20)[:1<<16]), []string{"Content-Encoding", "gzip"}, 413, "200 bytes"},
		"not compressed":        {"{}", []string{"Content-Encoding", "gzip"}, 400, "gzip"},
		"compressed otherwise":  {"{}", []string{"Content-Encoding", "br"}, 415, "gzip or none"},
	}
	for name, tt := range tests {
		if status, text, _ := f.post(t, "/ingest/alerts", tt.body, tt.headers...); status != tt.status || !strings.Contains(text, tt.says) {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	// A length that is not told beforehand is bounded too.
	res, err := http.Post(f.server.URL+"/ingest/alerts", "", io.MultiReader(strings.NewReader(strings.Repeat("x", 150)), strings.NewReader(strings.Repeat("x", 150))))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != 413 {
		t.Errorf("without a length: %d", res.StatusCode)
	}
	if got := strings.Join(f.producer.got("t.alerts"), "|"); got != strings.Repeat("x", 200)+`|{"a":1}` && got != `{"a":1}|`+strings.Repeat("x", 200) {
		t.Errorf("stored: %.100s", got)
	}
	if status, _, _ := f.post(t, "/ingest/alerts/more", "{}"); status != 404 {
		t.Errorf("a longer path: %d", status)
	}
	counted := f.counted(t)
	for labels, want := range map[string]float64{"alerts accepted": 2, "alerts too_large": 3, "alerts bad_request": 4, "alerts denied": 0, "tickets accepted": 0} {
		if got, known := counted[labels]; !known || got != want {
			t.Errorf("%s: %v by the metric, not %v", labels, got, want)
		}
	}
}

func TestPrometheusPosts(t *testing.T) {
	f := open(t, config, &memory{})
	tests := map[string]struct {
		body   string
		status int
		stored int
	}{
		"alerts":    {`[{"labels":{"alertname":"A"},"endsAt":"2026-09-13T08:47:00Z"},{"labels":{"alertname":"B"}}]`, 200, 1},
		"none":      {`[]`, 200, 0},
		"one alone": {`{"labels":{"alertname":"A"}}`, 400, 0},
		"no labels": {`[{"labels":{"alertname":"A"}},{"labels":{}}]`, 400, 0},
		"not JSON":  {`[{`, 400, 0},
	}
	for name, tt := range tests {
		before := len(f.producer.got("t.alerts"))
		status, text, _ := f.post(t, "/api/v2/alerts", tt.body)
		if stored := len(f.producer.got("t.alerts")) - before; status != tt.status || stored != tt.stored {
			t.Errorf("%s: %d %s, %d stored", name, status, text, stored)
		}
	}
	without := open(t, "pipelines: [{pipeline: alerts, open: true}]", &memory{})
	if status, _, _ := without.post(t, "/api/v2/alerts", `[]`); status != 404 {
		t.Errorf("where no pipeline takes alerts: %d", status)
	}
}

func TestKafkaDoesNotTakeIt(t *testing.T) {
	p := &memory{err: errors.New("no route to broker-7.internal")}
	f := open(t, config, p)
	status, text, h := f.post(t, "/ingest/alerts", `{}`)
	if status != 503 || h.Get("Retry-After") == "" || strings.Contains(text, "broker-7") {
		t.Errorf("%d %s %v", status, text, h)
	}
	if !strings.Contains(f.log.String(), "broker-7") {
		t.Error("the log does not say why")
	}
	p.mu.Lock()
	p.err = fmt.Errorf("produce: %w", ErrTooLarge)
	p.mu.Unlock()
	if status, text, _ := f.post(t, "/ingest/alerts", `{}`); status != 413 {
		t.Errorf("%d %s", status, text)
	}
	// A broker that does not answer: the sender hears of it before it gives up by itself.
	slow := open(t, config+"timeout: 50ms\n", &memory{hold: make(chan struct{}), began: make(chan struct{}, 1)})
	if status, text, _ := slow.post(t, "/ingest/alerts", `{}`); status != 503 {
		t.Errorf("%d %s", status, text)
	}
}

func TestTooManyAtATime(t *testing.T) {
	p := &memory{hold: make(chan struct{}), began: make(chan struct{}, 1)}
	f := open(t, config+"concurrent_max: 1\n", p)
	first := make(chan int)
	go func() {
		status, _, _ := f.post(t, "/ingest/alerts", `{"n":1}`)
		first <- status
	}()
	<-p.began
	status, text, h := f.post(t, "/ingest/changes", `{"n":2}`, "Authorization", "Bearer first-token")
	if status != 429 || h.Get("Retry-After") == "" {
		t.Errorf("%d %s", status, text)
	}
	if n := f.counted(t)["changes busy"]; n != 1 {
		t.Errorf("%v busy by the metric", n)
	}
	p.hold <- struct{}{}
	if status := <-first; status != 202 {
		t.Errorf("the first: %d", status)
	}
	go func() { <-p.began; p.hold <- struct{}{} }()
	if status, text, _ := f.post(t, "/ingest/alerts", `{"n":3}`); status != 202 {
		t.Errorf("afterwards: %d %s", status, text)
	}
}

func TestConfigurationsThatAreWrong(t *testing.T) {
	tests := map[string]string{
		"pipelines: [{pipeline: a}]":                                                                  "nothing says who may send",
		"pipelines: [{pipeline: a, open: true, token_files: [x]}]":                                    "asks for proof",
		"pipelines: [{pipeline: a, signature: github}]":                                               "belong together",
		"pipelines: [{pipeline: a, signature: slack, secret_files: [x]}]":                             "slack",
		"pipelines: [{pipeline: a, open: true}, {pipeline: a, open: true}]":                           "listed twice",
		"pipelines: [{pipeline: a, open: true}]\nalerts: b":                                           "not among its pipelines",
		"pipelines: [{pipeline: a, open: true}]\nlisten: here":                                        "not host:port",
		"pipelines: [{pipeline: a, open: true}]\nconcurrent_max: 0":                                   "above 0",
		"pipelines: [{pipeline: a, token_files: [x], secret_files: [y]}]":                             "belong together",
		"pipelines: [{pipeline: changes, token_files: [missing]}]":                                    "read secret",
		"pipelines: [{pipeline: changes, token_files: [empty]}]":                                      "holds none",
		"pipelines: [{pipeline: nobody, open: true}]":                                                 "no such pipeline",
		"pipelines: [{pipeline: changes, signature: github, secret_files: [missing]}]":                "read secret",
		"pipelines: [{pipeline: changes, signature: github, secret_files: [secrets], surprise: yes}]": "surprise",
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"empty": "\n \n", "secrets": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range tests {
		c := Config{}
		c.SetDefaults()
		err := strictyaml.Decode("door.yaml", []byte(text), &c)
		if err == nil {
			err = c.Validate()
		}
		if err == nil {
			_, err = New(Options{Config: c, Pipelines: pipelines(t), Path: func(s string) string { return filepath.Join(dir, s) }})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
