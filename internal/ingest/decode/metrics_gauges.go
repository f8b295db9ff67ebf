package decode

import (
	"math"
	"strconv"

	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// limitAttribute on a point is the most that its value can be: a pool's size, a quota.
const limitAttribute = "tocsin.limit"

func (m *metrics) gauges(metric *metricspb.Metric) {
	switch d := metric.Data.(type) {
	case *metricspb.Metric_Gauge:
		m.points(metric, d.Gauge.GetDataPoints())
	case *metricspb.Metric_Sum:
		switch {
		case d.Sum.GetIsMonotonic():
			m.refuse(metric.Name, whyCounter)
		case d.Sum.GetAggregationTemporality() != metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE:
			m.refuse(metric.Name, whyDelta)
		default:
			m.points(metric, d.Sum.GetDataPoints()) // an up-down counter: its cumulative value is what there is
		}
	default:
		m.refuse(metric.Name, whyCounter)
	}
}

func (m *metrics) points(metric *metricspb.Metric, points []*metricspb.NumberDataPoint) {
	for _, p := range points {
		if absent(p.GetFlags()) {
			continue
		}
		at, ok := m.at(metric.Name, p.GetTimeUnixNano())
		if !ok {
			continue
		}
		m.gauge(&signal.Gauge{Time: at, Metric: metric.Name, Value: number(p), Unit: metric.Unit}, attrMap(p.GetAttributes()))
	}
}

func number(p *metricspb.NumberDataPoint) float64 {
	if v, ok := p.GetValue().(*metricspb.NumberDataPoint_AsInt); ok {
		return float64(v.AsInt)
	}
	return p.GetAsDouble()
}

// gauge finds whose the measurement is and hands it on. What names the resource is no attribute besides.
func (m *metrics) gauge(g *signal.Gauge, point map[string]string) {
	if math.IsNaN(g.Value) || math.IsInf(g.Value, 0) {
		m.bad(ingest.ReasonInvalid, g.Metric, "a point has the value %v", g.Value)
		return
	}
	var from string
	if g.Resource, from = m.look(point, m.p.Metrics.Resource); g.Resource == "" {
		m.bad(ingest.ReasonMissing, g.Metric, "a point has none of %q, which name its resource", m.p.Metrics.Resource)
		return
	}
	if text, given := point[limitAttribute]; given {
		if limit, err := strconv.ParseFloat(text, 64); err == nil && limit > 0 && !math.IsInf(limit, 0) {
			g.Limit = limit
		}
	}
	m.pairs = m.pairs[:0]
	for name, v := range point {
		if name != from && name != limitAttribute {
			m.pairs = append(m.pairs, signal.Attr{Name: name, Value: v})
		}
	}
	g.Attributes = signal.AttributesOf(m.pairs...)
	m.own.event(g)
}
