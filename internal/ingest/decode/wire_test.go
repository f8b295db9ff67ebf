package decode

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// wireData finds the captured bodies that lie beside a checkout; they are not part of the repository.
func wireData(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
	}
	data := filepath.Join(filepath.Dir(dir), "shared", "data", "wire", "otlp")
	if _, err := os.Stat(data); err != nil {
		t.Skip("no captured OTLP bodies beside the checkout (../shared/data/wire/otlp)")
	}
	return data
}

// The events of every captured trace body, as a golden file of our own.
func TestCapturedTraces(t *testing.T) {
	data := wireData(t)
	bodies := map[string]string{
		"kafkaexporter-capture/otlp_spans.otlp_proto.value": "otlp_proto",
		"kafkaexporter-capture/otlp_spans.otlp_json.value":  "otlp_json",
		"proto-examples/trace.json":                         "otlp_json",
	}
	more, err := filepath.Glob(filepath.Join(data, "telemetrygen-capture", "v1_traces.*.binpb"))
	if err != nil || len(more) == 0 {
		t.Fatalf("%d captures of telemetrygen, %v", len(more), err)
	}
	for _, name := range more {
		bodies["telemetrygen-capture/"+filepath.Base(name)] = "otlp_proto"
	}
	names := map[string]bool{}
	for name := range bodies {
		names[name] = true
	}
	var out strings.Builder
	got := map[string][]string{}
	for _, name := range sorted(names) {
		value, err := os.ReadFile(filepath.Join(data, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		// Telemetrygen's spans have a peer as their only attribute besides the service.
		p := minimal(t, signal.Requests, bodies[name], "attributes: {peer: [service.peer.name, peer.service]}")
		got[name] = run(t, p, value)
		fmt.Fprintf(&out, "> %s\n%s\n\n", name, strings.Join(got[name], "\n"))
	}
	for _, name := range []string{"kafkaexporter-capture/otlp_spans.otlp_json.value", "proto-examples/trace.json"} {
		if a, b := got["kafkaexporter-capture/otlp_spans.otlp_proto.value"], got[name]; len(a) != 1 || len(b) != 1 || a[0] != b[0] {
			t.Errorf("the same span in two encodings:\n%v\n%v", a, b)
		}
	}
	const file = "testdata/wire.golden"
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != out.String() {
		t.Errorf("events differ from %s:\n%s", file, strings.Join(difference(strings.Split(string(want), "\n"), strings.Split(out.String(), "\n")), "\n"))
	}
}

// Captured spans in both encodings have the ids that the Collector got.
func TestCapturedIDs(t *testing.T) {
	data := wireData(t)
	for _, encoding := range []string{"otlp_proto", "otlp_json"} {
		value, err := os.ReadFile(filepath.Join(data, "kafkaexporter-capture", "otlp_spans."+encoding+".value"))
		if err != nil {
			t.Fatal(err)
		}
		got := run(t, minimal(t, signal.Requests, encoding, ""), value)
		if len(got) != 1 || !strings.Contains(got[0], `"trace_id":"5b8efff798038103d269b633813fc60c"`) {
			t.Errorf("%s: %v", encoding, got)
		}
	}
}

// Other signals in the topic of spans must not pass silently: their protobuf parses as spans.
func TestOtherSignalsAreNoSpans(t *testing.T) {
	data := wireData(t)
	for _, name := range []string{"kafkaexporter-capture/otlp_metrics.otlp_proto.value", "kafkaexporter-capture/otlp_logs.otlp_proto.value",
		"telemetrygen-capture/v1_metrics.01.binpb", "telemetrygen-capture/v1_logs.01.binpb"} {
		value, err := os.ReadFile(filepath.Join(data, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		got := run(t, minimal(t, signal.Requests, "otlp_proto", ""), value)
		if len(got) == 0 {
			t.Errorf("%s passes as an empty batch of spans", name)
		}
		for _, line := range got {
			if !strings.HasPrefix(line, "dead letter") {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
	metrics, err := proto.Marshal(&metricspb.MetricsData{ResourceMetrics: []*metricspb.ResourceMetrics{{ScopeMetrics: []*metricspb.ScopeMetrics{{
		Metrics: []*metricspb.Metric{{Name: "m", Description: "d", Unit: "u"}}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := run(t, minimal(t, signal.Requests, "otlp_proto", ""), metrics); len(got) != 1 || !strings.HasPrefix(got[0], "dead letter") {
		t.Errorf("%v", got)
	}
}
