package app

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"
)

// withSecrets puts the files beside the routes that the shipped ones name.
func withSecrets(t *testing.T) fx.Option {
	t.Helper()
	return fx.Decorate(func(f *Files) *Files {
		dir := t.TempDir()
		for name, v := range map[string]string{"pagerduty_routing_key": strings.Repeat("k", 32), "slack_token": "xoxb-test"} {
			name = filepath.Join(dir, "secrets", name)
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Error(err)
			}
			if err := os.WriteFile(name, []byte(v), 0o600); err != nil {
				t.Error(err)
			}
		}
		f.RoutesDir = dir
		return f
	})
}

// offline is a configuration whose Kafka and ClickHouse are not there.
func offline(t *testing.T) *Config {
	t.Helper()
	return config(t, minimal+`log: {level: debug}
http: {listen: '127.0.0.1:0'}
clickhouse: {addresses: ['127.0.0.1:1']}
self_page: {receivers: [oncall]}
respond: {data_dir: `+t.TempDir()+"}\n")
}

func startAndStop(t *testing.T, a *fx.App) {
	t.Helper()
	if err := a.Err(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := a.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := a.Stop(ctx); err != nil {
		t.Fatal(err)
	}
}

// recorder keeps the order in which loops began and ended and hooks of constructors ran.
type recorder struct {
	mu               sync.Mutex
	started, stopped []string
}

func (r *recorder) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, name, ok := strings.Cut(string(line), `msg="loop begins"`); ok {
		r.started = append(r.started, loopName(name))
	}
	if _, name, ok := strings.Cut(string(line), `msg="loop ended"`); ok {
		r.stopped = append(r.stopped, loopName(name))
	}
	return len(line), nil
}

func loopName(s string) string {
	_, s, _ = strings.Cut(s, "loop=")
	return strings.Trim(strings.TrimSpace(s), `"`)
}

func (r *recorder) LogEvent(e fxevent.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	short := func(s string) string { return s[strings.LastIndexByte(s, '.')+1:] }
	switch e := e.(type) {
	case *fxevent.OnStartExecuted:
		if n := short(e.CallerName); n != "background" {
			r.started = append(r.started, n)
		}
	case *fxevent.OnStopExecuted:
		if n := short(e.CallerName); n != "background" {
			r.stopped = append(r.stopped, n)
		}
	}
}

// What is used starts before its users and stops after them: a store that stopped before the loop that writes to it would
// lose what the loop still holds.
func TestStartAndStopOrder(t *testing.T) {
	var r recorder
	a := fx.New(
		wiring(Options{Config: offline(t), Stderr: &r}), withSecrets(t), fx.WithLogger(func() fxevent.Logger { return &r }),
	)
	startAndStop(t, a)
	before := func(list []string, a, b string) {
		i, j := slices.Index(list, a), slices.Index(list, b)
		if i < 0 || j < 0 || i > j {
			t.Errorf("%s (%d) should come before %s (%d) in %v", a, i, b, j, list)
		}
	}
	before(r.started, "self-page", "schema")
	before(r.started, "schema", "ingest")
	before(r.started, "schema", "detect and respond")
	before(r.started, "ingest", "serve")
	before(r.stopped, "serve", "detect and respond")
	before(r.stopped, "detect and respond", "newOutbox")
	before(r.stopped, "detect and respond", "newClickHouse")
	before(r.stopped, "ingest", "newClickHouse")
	before(r.stopped, "ingest", "newKafka")
	before(r.stopped, "schema", "self-page")
}
