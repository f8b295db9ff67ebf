package decode

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
)

var prometheusEntry = Entry{
	Name:    "prometheus",
	Summary: "Metrics in Prometheus' text format, as scraped or pushed. Stream gauges: gauges. Stream requests: counters, and histograms of durations, whose totals are counted from scrape to scrape.",
	Example: "# TYPE mysql_connections gauge\nmysql_connections{instance=\"mysql/collab/primary\"} 3900 1789288980000\n",
	New:     func(p *pipeline.Pipeline) ingest.Decoder { return newPrometheusText(p) },
}

type prometheusText struct{ m *metrics }

// scraped are the names of labels for what is not configured.
var scraped = map[int][]string{
	fieldMethod:    {"http_request_method", "method", "http_method", "verb"},
	fieldStatus:    {"http_response_status_code", "code", "status", "status_code", "http_status_code", "http_status"},
	fieldGRPC:      {"rpc_grpc_status_code", "grpc_code", "grpc_status"},
	fieldError:     {"error_type"},
	fieldGraphQL:   {"graphql_operation_type"},
	fieldRPC:       {"rpc_method", "grpc_method"},
	fieldMessaging: {"messaging_system", "messaging_destination_name"},
}

func newPrometheusText(p *pipeline.Pipeline) *prometheusText {
	m := newMetrics(p)
	m.terms = scraped
	return &prometheusText{m}
}

var _ ingest.Decoder = (*prometheusText)(nil)

// Decode reads one exposition. One that cannot be parsed is one dead letter, because what stands after the mistake
// cannot be trusted.
func (d *prometheusText) Decode(rec ingest.Record, emit func(signal.Event), reject func(ingest.DeadLetter)) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	text := rec.Value
	if !bytes.HasSuffix(text, []byte("\n")) {
		text = append(bytes.Clone(text), '\n')
	}
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		reject(ingest.DeadLetter{Reason: ingest.ReasonMalformed, Detail: cut(err.Error(), maxTitle/2)})
		return
	}
	d.m.begin(emit, reject)
	for _, name := range slices.Sorted(maps.Keys(families)) {
		f := families[name]
		t := f.GetType().String()
		switch {
		case !d.m.wanted(name):
			continue
		case d.m.p.Stream == signal.Gauges && t != "GAUGE" && t != "UNTYPED":
			d.m.refuse(name, whyCounter)
			continue
		}
		for _, s := range f.GetMetric() {
			at, labels := rec.Time.UTC(), labelMap(s.GetLabel())
			if s.TimestampMs != nil {
				at = time.UnixMilli(s.GetTimestampMs()).UTC()
			}
			if d.m.p.Stream == signal.Gauges {
				g := &signal.Gauge{Time: at, Metric: name, Value: s.GetGauge().GetValue()}
				if s.Untyped != nil {
					g.Value = s.GetUntyped().GetValue()
				}
				d.m.gauge(g, labels)
				continue
			}
			d.writer(rec.Key, labels)
			switch {
			case s.Counter != nil:
				d.count(name, at, labels, s.GetCounter().GetValue())
			case s.Untyped != nil && strings.HasSuffix(name, "_total"):
				d.count(name, at, labels, s.GetUntyped().GetValue())
			case s.Histogram != nil:
				d.histogram(name, at, labels, s.GetHistogram().GetSampleCount(), bucketsOf(s.GetHistogram().GetBucket()))
			case s.Summary != nil: // its quantiles do not add up
				d.count(name, at, labels, float64(s.GetSummary().GetSampleCount()))
			default:
				d.m.refuse(name, whyNoCount)
			}
		}
	}
	d.m.end()
}
