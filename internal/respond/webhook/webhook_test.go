package webhook

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/respond/respondtest"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func bodies(t *testing.T, f Format, deliveries ...respond.Delivery) []map[string]any {
	t.Helper()
	var out []map[string]any
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		var m map[string]any
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Error(err)
		}
		out = append(out, m)
	}))
	defer srv.Close()
	s, err := New(&Config{Format: f}, strictyaml.Secret(srv.URL), "hook", "https://tocsin.example.com", srv.Client())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range deliveries {
		if _, err := s.Send(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// The body has the keys that Alertmanager's has, as captured from version 0.35, and a close follows the open (hyperdx#861).
func TestShapeOfAlertmanager(t *testing.T) {
	file := filepath.Join("..", "..", "..", "..", "shared", "data", "wire", "payloads", "alertmanager-v0.35-capture", "alertmanager-webhook.01.firing.json")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Skip("no captured webhook at ../shared/data/wire/payloads beside the checkout")
	}
	var captured map[string]any
	if err := json.Unmarshal(raw, &captured); err != nil {
		t.Fatal(err)
	}
	if inner, ok := captured["body"].(map[string]any); ok {
		captured = inner
	}
	over := respondtest.Example()
	over.State, over.ResolvedAt = incident.Resolved, respondtest.Start
	got := bodies(t, Alertmanager, respondtest.Delivery(respond.ActionOpen, respondtest.Example(), "k"), respondtest.Delivery(respond.ActionClose, over, "k"))
	for key := range captured {
		if _, ok := got[0][key]; !ok && key != "notification_reason" {
			t.Errorf("%s is missing", key)
		}
	}
	alert := func(k int) map[string]any { return got[k]["alerts"].([]any)[0].(map[string]any) }
	for key := range captured["alerts"].([]any)[0].(map[string]any) {
		if _, ok := alert(0)[key]; !ok {
			t.Errorf("alerts[].%s is missing", key)
		}
	}
	if got[0]["status"] != "firing" || got[1]["status"] != "resolved" || alert(0)["fingerprint"] != alert(1)["fingerprint"] || alert(1)["endsAt"] != "2026-09-13T08:43:00Z" {
		t.Errorf("got %v", got)
	}
}

func TestNative(t *testing.T) {
	got := bodies(t, Native, respondtest.Delivery(respond.ActionRaise, respondtest.Example(), "k"))
	if got[0]["action"] != "raise" || got[0]["notice"].(map[string]any)["incident"].(map[string]any)["id"] != respondtest.Example().ID {
		t.Errorf("got %v", got)
	}
}
