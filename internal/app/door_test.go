package app

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/fx"

	"github.com/tocsin-project/tocsin/internal/door"
)

// While Kafka cannot be reached a sender is told to come again, and nobody is let in without proof.
func TestDoorWithoutKafka(t *testing.T) {
	c := offline(t)
	if err := os.WriteFile(filepath.Join(filepath.Dir(c.file), "tokens"), []byte("the-token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	withDoor, err := ParseConfig(c.file, []byte(minimal+`http: {listen: '127.0.0.1:0'}
clickhouse: {addresses: ['127.0.0.1:1']}
self_page: {receivers: [oncall]}
respond: {data_dir: `+t.TempDir()+`}
door: {pipelines: [{pipeline: alerts, token_files: [tokens]}], alerts: alerts, timeout: 200ms}
`))
	if err != nil {
		t.Fatal(err)
	}
	var mux *http.ServeMux
	a := fx.New(wiring(Options{Config: withDoor, Stderr: io.Discard}), fx.Populate(&mux), fx.NopLogger, withSecrets(t))
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for _, tt := range []struct {
		path, token string
		status      int
	}{
		{"/ingest/alerts", "the-token", 503}, {"/api/v2/alerts", "the-token", 503}, {"/ingest/alerts", "another", 401}, {"/ingest/changes", "the-token", 404},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, tt.path, strings.NewReader(`[{"labels":{"alertname":"A"}}]`))
		r.Header.Set("Authorization", "Bearer "+tt.token)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if w.Code != tt.status {
			t.Errorf("%s with %s: %d %s", tt.path, tt.token, w.Code, w.Body)
		}
	}
}

// An address of its own has the door and nothing else, and the console's has no door then.
func TestDoorAlone(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	c := offline(t)
	c.Door.Listen, c.Door.Pipelines = address, []door.Sender{{Pipeline: "alerts", Open: true}}
	var mux *http.ServeMux
	a := fx.New(wiring(Options{Config: c, Stderr: io.Discard}), fx.Populate(&mux), fx.NopLogger, withSecrets(t))
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for path, want := range map[string]int{"/ingest/alerts": 400, "/api/v1/drill": 404, "/": 404, "/metrics": 404} {
		res, err := client.Post("http://"+address+path, "application/json", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	if _, pattern := mux.Handler(httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/ingest/alerts", nil)); pattern != "" {
		t.Errorf("the console's address serves %s", pattern)
	}
}

func TestDoorNeedsItsPipelines(t *testing.T) {
	for text, want := range map[string]string{
		"door: {pipelines: [{pipeline: alerts}]}": "tocsin.yaml:2:20: pipeline \"alerts\": nothing says who may send",
		"door: {concurrent_max: 0}":               "concurrent_max and timeout must be above 0",
		"door: {alerts: alerts}":                  "not among its pipelines",
	} {
		if _, err := ParseConfig("tocsin.yaml", []byte(minimal+text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
