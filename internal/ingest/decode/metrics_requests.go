package decode

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	delta      = metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA
	cumulative = metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
)

// requests reads the points of one metric, each of which stands for the requests of one interval with equal attributes.
func (m *metrics) requests(metric *metricspb.Metric) {
	var temporality metricspb.AggregationTemporality
	switch d := metric.Data.(type) {
	case *metricspb.Metric_Histogram:
		temporality = d.Histogram.GetAggregationTemporality()
	case *metricspb.Metric_ExponentialHistogram:
		temporality = d.ExponentialHistogram.GetAggregationTemporality()
	case *metricspb.Metric_Sum:
		if !d.Sum.GetIsMonotonic() {
			m.refuse(metric.Name, whyNoCount)
			return
		}
		temporality = d.Sum.GetAggregationTemporality()
	default:
		m.refuse(metric.Name, whyNoCount)
		return
	}
	if temporality != delta && temporality != cumulative {
		m.refuse(metric.Name, whyTempo)
		return
	}
	m.series.cumulative = temporality == cumulative
	switch d := metric.Data.(type) {
	case *metricspb.Metric_Sum:
		m.counter(metric.Name, d.Sum.GetDataPoints())
	case *metricspb.Metric_Histogram:
		if unit, ok := m.unit(metric); ok {
			for _, p := range d.Histogram.GetDataPoints() {
				m.histogram(metric.Name, unit, p)
			}
		}
	case *metricspb.Metric_ExponentialHistogram:
		if unit, ok := m.unit(metric); ok {
			for _, p := range d.ExponentialHistogram.GetDataPoints() {
				m.exponential(metric.Name, unit, p)
			}
		}
	}
}

// unit is how long one of the histogram's units is.
func (m *metrics) unit(metric *metricspb.Metric) (time.Duration, bool) {
	switch metric.Unit {
	case "s", "seconds":
		return time.Second, true
	case "ms", "milliseconds":
		return time.Millisecond, true
	case "us", "µs":
		return time.Microsecond, true
	case "ns":
		return time.Nanosecond, true
	}
	m.bad(ingest.ReasonInvalid, metric.Name, "%q is no unit of a duration: s, ms, us or ns is needed", cut(metric.Unit, 40))
	return 0, false
}

func (m *metrics) counter(name string, points []*metricspb.NumberDataPoint) {
	for _, p := range points {
		n := number(p)
		switch {
		case absent(p.GetFlags()) || n == 0 && !m.series.cumulative:
			continue
		case n < 0 || n != math.Trunc(n) || n > maxCount:
			m.bad(ingest.ReasonInvalid, name, "a point counts %v: a whole number of at most %d is needed", n, int64(maxCount))
			continue
		}
		at, ok := m.at(name, p.GetTimeUnixNano())
		if !ok {
			continue
		}
		m.series.start = p.GetStartTimeUnixNano()
		m.deliverCount(name, at, attrMap(p.GetAttributes()), uint64(n))
	}
}

// request is what the attributes say of a point's requests: the path, and how they ended. It is nil where they say too
// little. Conventions are those of spans.
func (m *metrics) request(metric string, at time.Time, point map[string]string) *signal.Request {
	get := func(names ...string) string {
		v, _ := m.look(point, names)
		return v
	}
	cfg := &m.p.Requests
	service, method := get(cfg.Service...), get(m.terms[fieldMethod]...)
	// A server without routes names its spans by the method alone, and so do we; a consumer has what it consumes.
	operation := cmp.Or(get(cfg.Operation...), method, get("messaging.destination.name", "messaging.destination"))
	switch {
	case service == "":
		m.bad(ingest.ReasonMissing, metric, "no %s", cfg.Service[0])
		return nil
	case operation == "":
		m.bad(ingest.ReasonMissing, metric, "none of %q, which name the operation", cfg.Operation)
		return nil
	}
	messaging := get(m.terms[fieldMessaging]...)
	named := m.names.of(call{service: cut(service, maxName), name: cut(operation, maxOper), method: method,
		rpc: get(m.terms[fieldRPC]...), graphql: get(m.terms[fieldGraphQL]...), messaging: messaging != ""})
	e := ending{grpc: get(m.terms[fieldGRPC]...), errorType: cut(get(m.terms[fieldError]...), maxName)}
	e.http = statusNumber(get(m.terms[fieldStatus]...))
	r := &signal.Request{
		Time: at, Path: signal.Path{Service: cut(service, maxName), Operation: named.operation, Access: named.access},
		Latency: -1, Attempt: 1, Account: cut(get(cfg.Account...), maxName), Error: e.errorType, Outcome: e.outcome(), Status: cut(e.status(), maxName),
	}
	m.pairs = m.pairs[:0]
	for _, dim := range m.dims {
		if v := get(cfg.Attributes[dim]...); v != "" {
			m.pairs = append(m.pairs, signal.Attr{Name: dim, Value: cut(v, maxName)})
		}
	}
	r.Attributes = m.sets.of(m.pairs)
	overrule(cfg.Outcomes, r)
	if !m.keeper.none() && !m.keeper.keep(r, 0) {
		return nil
	}
	return r
}

// statusNumber reads a status code, or a class of them such as 5xx; 0 where it is neither.
func statusNumber(s string) int {
	if len(s) == 3 && s[0] >= '1' && s[0] <= '5' && strings.EqualFold(s[1:], "xx") {
		return int(s[0]-'0') * 100
	}
	n, _ := strconv.Atoi(s)
	return n
}
