package docstest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tocsin-project/tocsin/internal/clickhouse"
	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/kafka"
	"github.com/tocsin-project/tocsin/internal/respond"
)

// registrars is every package that has metrics.
var registrars = []func(prometheus.Registerer){
	func(r prometheus.Registerer) { clickhouse.NewMetrics(r) },
	func(r prometheus.Registerer) { ingest.NewMetrics(r) },
	func(r prometheus.Registerer) { kafka.NewMetrics(r) },
	func(r prometheus.Registerer) { respond.NewMetrics(r) },
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
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", m[1], labels, strings.ReplaceAll(m[2], `\"`, `"`)))
	}
	slices.Sort(rows)
	return "\n| metric | labels | meaning |\n|---|---|---|\n" + strings.Join(slices.Compact(rows), "") + "\n"
}

func TestTableOfMetricsIsWhatTheCodeSays(t *testing.T) {
	generated(t, "docs/operations.md", metricsTable(t))
}

// generated holds a page's generated part to what it should be, or with -update writes it.
func generated(t *testing.T, page, want string) {
	t.Helper()
	file := filepath.Join(root(t), page)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), generatedBegin)
	old, after, ok2 := strings.Cut(rest, generatedEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for what is generated", page)
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(file, []byte(before+generatedBegin+want+generatedEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if old != want {
		t.Errorf("%s is behind the code: run go test ./internal/docstest -update", page)
	}
}
