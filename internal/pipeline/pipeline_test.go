package pipeline

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func TestFourLinesAreEnough(t *testing.T) {
	p, err := Parse("p.yaml", []byte("name: telemetry\ntopic: otlp_spans\nstream: requests\ndecoder: otlp_proto\n"))
	if err != nil {
		t.Fatal(err)
	}
	if p.MaxAge.Std() != 7*24*time.Hour || p.MaxAhead.Std() != 5*time.Minute || p.MaxRecord != 1<<20 {
		t.Errorf("bounds: %v %v %v", p.MaxAge, p.MaxAhead, p.MaxRecord)
	}
	if p.Requests.Service[0] != "service.name" || len(p.Requests.Kinds) != 2 || len(p.Requests.Attributes["region"]) != 1 {
		t.Errorf("span defaults: %+v", p.Requests)
	}
	if p.Requests.Reads.Methods[0] != "GET" || p.Requests.Reads.Verbs[0] != "Get" {
		t.Errorf("reads: %+v", p.Requests.Reads)
	}
}

func TestMetricsHaveDefaults(t *testing.T) {
	parse := func(text string) *Pipeline {
		p, err := Parse("p.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := parse("name: m\ntopic: t\nstream: requests\ndecoder: otlp_metrics_proto\noutcomes:\n  - {status: '404', outcome: failure}\n")
	if p.Requests.Service[0] != "service.name" || len(p.Metrics.Names) != 5 || !p.Metrics.Names[0].Match("http.server.request.duration") {
		t.Errorf("requests: %+v", p)
	}
	p = parse("name: m\ntopic: t\nstream: gauges\ndecoder: otlp_metrics_json\n")
	if len(p.Metrics.Names) != 0 || len(p.Requests.Attributes) != 0 || p.Metrics.Resource[0] != "tocsin.resource" {
		t.Errorf("gauges: %+v", p)
	}
}

func TestRevisionIsTheContent(t *testing.T) {
	text := "name: a\ntopic: t\nstream: gauges\ndecoder: json\n"
	rev := func(s string) string {
		p, err := Parse("p.yaml", []byte(s))
		if err != nil {
			t.Fatal(err)
		}
		return p.Revision
	}
	first, again := rev(text), rev(text)
	if first != again || rev(text) == rev(text+"max_age: 1d\n") || rev(text) == "" {
		t.Error("the revision does not follow the content")
	}
}

func TestMistakesHavePlaces(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"no topic":       {"name: a\nstream: gauges\ndecoder: json\n", `p.yaml:1:1: "topic" is required`},
		"stream":         {"name: a\ntopic: t\nstream: request\ndecoder: json\n", `p.yaml:3:9: unknown stream "request" (known: requests, gauges`},
		"decoder":        {"name: a\ntopic: t\nstream: gauges\ndecoder: xml\n", `p.yaml:4:10: unknown decoder "xml" (known: json, otlp_proto, otlp_json`},
		"decoder stream": {"name: a\ntopic: t\nstream: gauges\ndecoder: otlp_json\n", `p.yaml:4:10: decoder "otlp_json" gives no gauges`},
		"misspelt key":   {"name: a\ntopic: t\nstream: gauges\ndecoder: json\nmax_agee: 1d\n", `p.yaml:5:1: unknown field "max_agee" (did you mean "max_age"?)`},
		"span key":       {"name: a\ntopic: t\nstream: requests\ndecoder: json\noperation: [x]\n", `p.yaml:5:12: "operation" means nothing to decoder "json"`},
		"metric key":     {"name: a\ntopic: t\nstream: gauges\ndecoder: json\nmetrics: [x]\n", `p.yaml:5:10: "metrics" means nothing to decoder "json"`},
		"gauge route":    {"name: a\ntopic: t\nstream: gauges\ndecoder: prometheus\noutcomes:\n  - {status: x, outcome: failure}\n", `"outcomes" means nothing to decoder "prometheus"`},
		"size":           {"name: a\ntopic: t\nstream: gauges\ndecoder: json\nmax_record: 1 big\n", `p.yaml:5:13: "max_record": "1 big" is not a size`},
		"huge":           {"name: a\ntopic: t\nstream: gauges\ndecoder: json\nmax_record: 1GiB\n", `p.yaml:5:13: max_record must be between 1B and 16MiB`},
		"idle route":     {"name: a\ntopic: t\nstream: requests\ndecoder: json\nroutes:\n  - match: x\n", `p.yaml:6:5: the route changes nothing`},
		"all requests":   {"name: a\ntopic: t\nstream: requests\ndecoder: otlp_json\noutcomes:\n  - outcome: success\n", `p.yaml:6:5: the rule matches every request`},
		"drop all":       {"name: a\ntopic: t\nstream: requests\ndecoder: json\ndrop:\n  - {}\n", `p.yaml:6:5: the rule drops every request`},
		"keep":           {"name: a\ntopic: t\nstream: requests\ndecoder: json\nsample:\n  - {outcome: success, keep: 1.5}\n", `p.yaml:6:30: keep must be above 0 and below 1, not 1.5`},
		"keep nothing":   {"name: a\ntopic: t\nstream: requests\ndecoder: json\nsample:\n  - {outcome: success, keep: .nan}\n", `p.yaml:6:30: `},
		"no keep":        {"name: a\ntopic: t\nstream: requests\ndecoder: json\nsample:\n  - {outcome: success}\n", `p.yaml:6:5: "keep" is required`},
		"attribute":      {"name: a\ntopic: t\nstream: requests\ndecoder: otlp_json\ndrop:\n  - {attributes: {regoin: x}}\n", `p.yaml:6:18: attribute "regoin" is not counted (known: environment, model, region, site, version)`},
		"gauges dropped": {"name: a\ntopic: t\nstream: gauges\ndecoder: json\ndrop:\n  - {service: x}\n", `p.yaml:6:3: gauges have no drop`},
		"outcome":        {"name: a\ntopic: t\nstream: requests\ndecoder: otlp_json\noutcomes:\n  - {status: \"4*\", outcome: fine}\n", `p.yaml:6:29: "outcome": outcome "fine" is none of success`},
		"regexp":         {"name: a\ntopic: t\nstream: tickets\ndecoder: json\nmask: {patterns: [{name: x, regexp: '('}]}\n", `p.yaml:5:37: error parsing regexp`},
		"empty regexp":   {"name: a\ntopic: t\nstream: tickets\ndecoder: json\nmask: {patterns: [{name: x, regexp: 'a*'}]}\n", `matches the empty text`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("p.yaml", []byte(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestSetRefusesTwoReadersOfATopic(t *testing.T) {
	file := func(name, topic string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("name: " + name + "\ntopic: " + topic + "\nstream: gauges\ndecoder: json\n")}
	}
	_, err := Load(fstest.MapFS{"a.yaml": file("a", "t"), "b.yaml": file("b", "t"), "a_test.yaml": {Data: []byte("not a pipeline")}})
	if err == nil || !strings.Contains(err.Error(), `b.yaml:2:8: topic "t" is read by pipeline "a" in a.yaml already`) {
		t.Errorf("got %v", err)
	}
	s, err := Load(fstest.MapFS{"a.yaml": file("a", "t"), "b.yaml": file("b", "u")})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.Topics(), " "); got != "t u" || s.ByTopic("u").Name != "b" || s.ByTopic("v") != nil {
		t.Errorf("topics %s", got)
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]Size{"1MiB": 1 << 20, "500KB": 500_000, "12": 12, "7B": 7, "0": 0} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%s: %d, %v", text, s, err)
		}
		var back Size
		if err := back.UnmarshalText([]byte(s.String())); err != nil || back != s {
			t.Errorf("%s is written as %s", text, s)
		}
	}
	for _, text := range []string{"", "-1", "1.5MiB", "MiB", "9999999GiB"} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was read as %d", text, s)
		}
	}
}

func TestGlobs(t *testing.T) {
	tests := []struct {
		pattern, text string
		want          bool
	}{
		{"GET /repos/*/pulls", "GET /repos/a/pulls", true},
		{"GET /repos/*/pulls", "GET /repos/a/b/pulls", false},
		{"GET /repos/**", "GET /repos/a/b/pulls", true},
		{"4*", "404", true},
		{"4*", "504", false},
		{"a.b", "axb", false},
		{"**", "", true},
	}
	for _, tt := range tests {
		g, err := NewGlob(tt.pattern)
		if err != nil || g.Match(tt.text) != tt.want {
			t.Errorf("%q on %q: %v, %v", tt.pattern, tt.text, !tt.want, err)
		}
	}
	if _, err := NewGlob(""); err == nil {
		t.Error("the empty pattern is accepted")
	}
}

func TestDecodersListStreams(t *testing.T) {
	for _, d := range Decoders {
		if d.Summary == "" || len(d.Streams) == 0 {
			t.Errorf("decoder %q says too little of itself", d.Name)
		}
		for _, s := range d.Streams {
			if !isKnownStream(s) {
				t.Errorf("decoder %q: stream %q", d.Name, s)
			}
		}
	}
}
