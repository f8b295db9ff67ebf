package docstest

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tocsin-project/tocsin/internal/clickhouse"
	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/door"
	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/kafka"
	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/respond/selfpage"
)

// registrars is every package that has metrics.
var registrars = []func(prometheus.Registerer){
	func(r prometheus.Registerer) { clickhouse.NewMetrics(r) },
	func(r prometheus.Registerer) { detect.NewMetrics(r) },
	func(r prometheus.Registerer) { door.NewMetrics(r) },
	func(r prometheus.Registerer) { ingest.NewMetrics(r) },
	func(r prometheus.Registerer) { kafka.NewMetrics(r) },
	func(r prometheus.Registerer) { respond.NewMetrics(r) },
	func(r prometheus.Registerer) { selfpage.New(selfpage.Options{Registry: r}) },
	func(r prometheus.Registerer) {
		conf := selfpage.HeartbeatConfig{URL: "http://127.0.0.1:1"}
		_, _ = selfpage.NewHeartbeat(conf, "", nil, nil, nil, r)
	},
}

// described collects what is registered, also vectors that have no value yet.
type described struct{ all []*prometheus.Desc }

var _ prometheus.Registerer = (*described)(nil)

func (d *described) Register(c prometheus.Collector) error {
	ch := make(chan *prometheus.Desc)
	go func() {
		c.Describe(ch)
		close(ch)
	}()
	for desc := range ch {
		d.all = append(d.all, desc)
	}
	return nil
}

func (d *described) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		_ = d.Register(c)
	}
}

func (d *described) Unregister(prometheus.Collector) bool { return false }

var descText = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: "((?:[^"\\]|\\.)*)", (?:unit: "[^"]*", )?constLabels: \{.*?\}, variableLabels: \{([^}]*)\}`)

// metricsTable is a row for each metric, by name.
func metricsTable(t *testing.T) string {
	t.Helper()
	var d described
	for _, register := range registrars {
		register(&d)
	}
	var rows []string
	for _, desc := range d.all {
		m := descText.FindStringSubmatch(desc.String())
		if m == nil {
			t.Fatalf("can't read %s", desc)
		}
		labels := ""
		if m[3] != "" {
			labels = "`" + strings.ReplaceAll(m[3], ",", "`, `") + "`"
		}
		rows = append(rows, "| `"+m[1]+"` | "+labels+" | "+strings.ReplaceAll(m[2], `\"`, `"`)+" |\n")
	}
	slices.Sort(rows)
	return "\n| metric | labels | meaning |\n|---|---|---|\n" + strings.Join(slices.Compact(rows), "") + "\n"
}

func TestTableOfMetricsIsWhatTheCodeSays(t *testing.T) {
	generated(t, "docs/operations.md", "metrics", metricsTable(t))
}

func TestTableOfCausesIsWhatTheCodeSays(t *testing.T) {
	table := "\n| cause | Tocsin says |\n|---|---|\n"
	for _, c := range slices.Sorted(maps.Keys(selfpage.Causes)) {
		table += "| `" + string(c) + "` | " + selfpage.Causes[c] + " |\n"
	}
	generated(t, "docs/operations.md", "causes", table+"\n")
}
