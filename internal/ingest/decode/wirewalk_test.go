package decode

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// reading is one way to read a file, and what must come out of it: events, or dead letters of one reason only.
type reading struct {
	decoder string
	stream  signal.Stream
	reason  string // "" wants events
}

var (
	logsAnywhere = []reading{{"otlp_json", signal.Requests, ingest.ReasonMalformed}, {"otlp_metrics_json", signal.Gauges, ingest.ReasonMalformed}}
	asChange     = []reading{{"cdevents", signal.Changes, ""}}
	noChange     = []reading{{"cdevents", signal.Changes, ingest.ReasonUnsupported}}
	noPagerDuty  = []reading{{"pagerduty", signal.Changes, ingest.ReasonUnsupported}}
)

// captured says of every file of captured bytes how it is read; the first pattern that matches counts. nil is for what is
// no record. github-webhooks/index.json holds many records and has a test of its own.
var captured = []struct {
	pattern string
	read    []reading
}{
	{"*/LICENSE*", nil}, {"*/SOURCE.txt", nil}, {"*/*/README.md", nil}, {"*/*/*/README.md", nil}, {"*/*/LICENSE*", nil}, {"*/*/package.json", nil}, {"*/*/am.yml", nil},
	{"payloads/github-webhooks/index.json", nil},
	{"payloads/cdevents/schemas/*", nil}, {"payloads/cdevents/schemas/*/*", nil}, {"payloads/cdevents/conformance/formats/*", nil},
	{"otlp/kafkaexporter-capture/*.meta.json", nil},

	{"otlp/kafkaexporter-capture/otlp_spans.otlp_proto.value", []reading{{"otlp_proto", signal.Requests, ""}}},
	{"otlp/kafkaexporter-capture/otlp_spans.otlp_json.value", []reading{{"otlp_json", signal.Requests, ""}, {"otlp_metrics_json", signal.Gauges, ingest.ReasonMalformed}}},
	{"otlp/kafkaexporter-capture/otlp_metrics.otlp_proto.value", []reading{{"otlp_metrics_proto", signal.Gauges, "events, and " + ingest.ReasonUnsupported}}},
	{"otlp/kafkaexporter-capture/otlp_metrics.otlp_json.value", []reading{{"otlp_metrics_json", signal.Gauges, "events, and " + ingest.ReasonUnsupported}, {"otlp_json", signal.Requests, ingest.ReasonMalformed}}},
	{"otlp/kafkaexporter-capture/otlp_logs.otlp_json.value", logsAnywhere},
	{"otlp/kafkaexporter-capture/otlp_logs.otlp_proto.value", []reading{{"otlp_metrics_proto", signal.Gauges, ingest.ReasonMalformed}}},
	{"otlp/proto-examples/trace.json", []reading{{"otlp_json", signal.Requests, ""}}},
	{"otlp/proto-examples/metrics.json", []reading{{"otlp_metrics_json", signal.Gauges, "events, and " + ingest.ReasonUnsupported}}},
	{"otlp/proto-examples/logs.json", logsAnywhere},
	{"otlp/proto-examples/events.json", logsAnywhere},
	{"otlp/telemetrygen-capture/v1_traces.*.binpb", []reading{{"otlp_proto", signal.Requests, ""}}},
	{"otlp/telemetrygen-capture/v1_metrics.*.binpb", []reading{{"otlp_metrics_proto", signal.Gauges, ingest.ReasonUnsupported}}},
	{"otlp/telemetrygen-capture/v1_logs.*.binpb", []reading{{"otlp_metrics_proto", signal.Gauges, ingest.ReasonMalformed}}},

	{"payloads/alertmanager-*/*.json", []reading{{"alertmanager", signal.Alerts, ""}, {"json", signal.Alerts, ""}}},
	{"payloads/cdevents/conformance/service_*.json", asChange},
	{"payloads/cdevents/conformance/environment_*.json", asChange},
	{"payloads/cdevents/conformance/pipelinerun_queued.json", noChange},
	{"payloads/cdevents/conformance/pipelinerun_*.json", asChange},
	{"payloads/cdevents/conformance/*.json", noChange},
	{"payloads/pagerduty/change-event.json", []reading{{"pagerduty", signal.Changes, ""}}},
	{"payloads/pagerduty/*.json", noPagerDuty},
}

// Every captured file becomes events, or is refused for the right reason; a new file must find its line above.
func TestEveryCapturedFile(t *testing.T) {
	root := filepath.Dir(wireData(t))
	var out strings.Builder
	used, files := map[string]bool{}, 0
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		i := slices.IndexFunc(captured, func(c struct {
			pattern string
			read    []reading
		}) bool {
			ok, _ := path.Match(c.pattern, name)
			return ok
		})
		if i < 0 {
			t.Errorf("%s: nobody says how it is read", name)
			return nil
		}
		used[captured[i].pattern] = true
		value, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		for _, r := range captured[i].read {
			lines := run(t, minimal(t, r.stream, r.decoder, ""), value)
			if got := verdict(lines); got != r.reason {
				t.Errorf("%s as %s: %q, not %q:\n%s", name, r.decoder, got, r.reason, strings.Join(lines, "\n"))
			}
			fmt.Fprintf(&out, "> %s as %s\n%s\n\n", name, r.decoder, strings.Join(lines, "\n"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 100 {
		t.Errorf("only %d files", files)
	}
	for _, c := range captured {
		if !used[c.pattern] {
			t.Errorf("no file is like %s", c.pattern)
		}
	}
	sameAs(t, "testdata/wire_all.golden", out.String())
}

// verdict is "" for events alone, a reason for dead letters of that reason alone, and both words for both.
func verdict(lines []string) string {
	events, reasons := 0, map[string]bool{}
	for _, l := range lines {
		if rest, ok := strings.CutPrefix(l, "dead letter "); ok {
			reason, _, _ := strings.Cut(rest, ":")
			reasons[reason] = true
		} else {
			events++
		}
	}
	list := strings.Join(sorted(reasons), " and ")
	switch {
	case events > 0 && list != "":
		return "events, and " + list
	case events == 0 && list == "":
		return "nothing"
	}
	return list
}

func sameAs(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("what comes out differs from %s:\n%s", file, strings.Join(difference(strings.Split(string(want), "\n"), strings.Split(got, "\n")), "\n"))
	}
}

// Of GitHub's examples of 58 events three kinds are read, and no other is mistaken for one of them.
func TestEveryExampleOfGitHub(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(filepath.Dir(wireData(t)), "payloads", "github-webhooks", "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var index []struct {
		Name     string            `json:"name"`
		Examples []json.RawMessage `json:"examples"`
	}
	if err := json.Unmarshal(data, &index); err != nil {
		t.Fatal(err)
	}
	p := minimal(t, signal.Changes, "github", "")
	var out strings.Builder
	read := 0
	for _, event := range index {
		for i, body := range event.Examples {
			lines := run(t, p, body)
			v := verdict(lines)
			switch event.Name {
			case "deployment", "deployment_status", "workflow_run":
				fmt.Fprintf(&out, "> %s %d\n%s\n\n", event.Name, i+1, strings.Join(lines, "\n"))
				if v == "" {
					read++
				}
			default:
				if v != ingest.ReasonUnsupported {
					t.Errorf("%s %d: %v", event.Name, i+1, lines)
				}
			}
		}
	}
	if len(index) < 58 || read < 9 {
		t.Errorf("%d kinds of events, %d examples read", len(index), read)
	}
	sameAs(t, "testdata/github.golden", out.String())
}
