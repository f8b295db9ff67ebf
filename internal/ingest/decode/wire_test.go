package decode

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tocsin-project/tocsin/internal/ingest"
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

// Whatever a record holds, a decoder ends, gives only what the vocabulary allows, and the same again.
func fuzz(f *testing.F, stream signal.Stream, decoder string) {
	e, _ := ByName(decoder)
	p := minimal(f, stream, decoder, "")
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, value []byte) {
		read := func(d ingest.Decoder) (out []string) {
			d.Decode(ingest.Record{Time: time.UnixMilli(1789288985000), Value: value}, func(e signal.Event) {
				out = append(out, Native(e))
				if e.Stream() != stream {
					t.Fatalf("an event of %s", e.Stream())
				}
				if r, ok := e.(*signal.Request); ok && (r.Path.Service == "" || r.Path.Operation == "" || r.Count < 1 || r.Count > maxCount || r.Attempt < 1 || r.Outcome >= signal.NumOutcomes) {
					t.Fatalf("%+v", r)
				}
			}, func(d ingest.DeadLetter) { out = append(out, d.Reason+d.Detail) })
			return out
		}
		d := e.New(p)
		first := read(d)
		for _, again := range [][]string{read(d), read(e.New(p))} {
			if strings.Join(first, "\n") != strings.Join(again, "\n") {
				t.Fatalf("not the same again:\n%v\n%v", first, again)
			}
		}
	})
}

func seedCases(f *testing.F, file string, decodeBase64 func(string) []byte) {
	data, err := os.ReadFile(file)
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range strings.Split(string(data), "\n> ") {
		in, _, _ := strings.Cut(c, "\n=\n")
		_, record, _ := strings.Cut(in, "\n")
		f.Add(decodeBase64(record))
	}
}

func plain(s string) []byte { return []byte(s) }

func FuzzJSONRequests(f *testing.F) {
	seedCases(f, "testdata/json/requests.txt", plain)
	fuzz(f, signal.Requests, "json")
}

func FuzzJSONTickets(f *testing.F) {
	f.Add([]byte(`{"time":1789288980000,"id":1,"text":"x","tags":["a",2]}`))
	fuzz(f, signal.Tickets, "json")
}

func FuzzJSONGauges(f *testing.F) {
	f.Add([]byte(`{"time":1789288980000,"resource":"r","metric":"m","value":1e400}`))
	fuzz(f, signal.Gauges, "json")
}

func FuzzJSONChanges(f *testing.F) {
	f.Add([]byte(`{"time":1789288980000,"id":"x","kind":"job","phase":"started","dose":0.5}`))
	fuzz(f, signal.Changes, "json")
}

func FuzzJSONAlerts(f *testing.F) {
	f.Add([]byte(`{"alerts":[{"status":"firing","labels":{"a":"b"},"startsAt":"2026-09-13T08:45:00Z"}]}`))
	fuzz(f, signal.Alerts, "json")
}

func FuzzOTLPJSON(f *testing.F) {
	seedCases(f, "testdata/otlp_json/spans.txt", plain)
	fuzz(f, signal.Requests, "otlp_json")
}

func FuzzOTLPProto(f *testing.F) {
	b, err := hex.DecodeString("0a0012")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	e, _ := ByName("otlp_proto")
	f.Add(fromBase64(f, e.Example))
	fuzz(f, signal.Requests, "otlp_proto")
}
