package decode

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
)

var prometheusEntry = Entry{
	Name:    "prometheus",
	Summary: "Gauges in Prometheus' text format, as scraped or pushed; counters and distributions are refused as unsupported.",
	Example: "# TYPE mysql_connections gauge\nmysql_connections{instance=\"mysql/collab/primary\"} 3900 1789288980000\n",
	New:     func(p *pipeline.Pipeline) ingest.Decoder { return &prometheusText{newMetrics(p)} },
}

type prometheusText struct{ m *metrics }

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
		switch t := f.GetType().String(); {
		case !d.m.wanted(name):
			continue
		case t != "GAUGE" && t != "UNTYPED":
			d.m.refuse(name, whyCounter)
			continue
		}
		for _, s := range f.GetMetric() {
			g := &signal.Gauge{Time: rec.Time.UTC(), Metric: name, Value: s.GetGauge().GetValue()}
			if s.Untyped != nil {
				g.Value = s.GetUntyped().GetValue()
			}
			if s.TimestampMs != nil {
				g.Time = time.UnixMilli(s.GetTimestampMs()).UTC()
			}
			labels := make(map[string]string, len(s.GetLabel()))
			for _, l := range s.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			d.m.gauge(g, labels)
		}
	}
	d.m.end()
}
