package decode

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// metrics turns OpenTelemetry's metrics into gauges or requests, as the pipeline's stream is. Rows must be a function of
// the records that they come from. So cumulative counters and histograms are handed on as the totals that they are; what
// happened between two of them is found where all partitions meet: docs/decisions/0017.
type metrics struct {
	p      *pipeline.Pipeline
	own    *jsonDecoder // bounds texts, keeps the pipeline's attributes
	names  *namer
	keeper keeper
	terms  map[int][]string // conventions
	dims   []string
	sets   interner
	pairs  []signal.Attr

	// State of the record that is being read.
	resource map[string]string
	series   seriesState
	emit     func(signal.Event)
	reject   func(ingest.DeadLetter)
	refused  map[string]map[string]bool // why → names of metrics
}

func newMetrics(p *pipeline.Pipeline) *metrics {
	return &metrics{
		p: p, own: newJSON(p).(*jsonDecoder), names: newNamer(&p.Requests), keeper: keeper{drop: p.Requests.Drop}, terms: conventions, // what is counted already is not sampled
		dims: slices.Sorted(maps.Keys(p.Requests.Attributes)),
	}
}

func (m *metrics) begin(emit func(signal.Event), reject func(ingest.DeadLetter)) {
	m.emit, m.reject, m.refused = emit, reject, map[string]map[string]bool{}
	m.own.emit, m.own.bad = emit, nil
}

func (m *metrics) batch(batch *metricspb.MetricsData) {
	for _, rm := range batch.ResourceMetrics {
		m.resource = attrMap(rm.GetResource().GetAttributes())
		for _, sm := range rm.ScopeMetrics {
			m.series.under(m.resource, sm.GetScope().GetName(), sm.GetScope().GetVersion(), attrMap(sm.GetScope().GetAttributes()))
			for _, metric := range sm.Metrics {
				m.metric(metric)
			}
		}
	}
	m.end()
}

// wanted tells whether the pipeline reads metrics of this name.
func (m *metrics) wanted(name string) bool {
	return len(m.p.Metrics.Names) == 0 || slices.ContainsFunc(m.p.Metrics.Names, func(g pipeline.Glob) bool { return g.Match(name) })
}

func (m *metrics) metric(metric *metricspb.Metric) {
	name := metric.GetName()
	switch {
	case metric.GetData() == nil:
		m.bad(ingest.ReasonInvalid, name, "no data: perhaps no metric at all")
	case name == "":
		m.bad(ingest.ReasonMissing, name, "a metric has no name")
	case !m.wanted(name):
	case m.p.Stream == signal.Requests:
		m.requests(metric)
	default:
		m.gauges(metric)
	}
}

// Why metrics are not read. The texts are hints for whoever runs the sender.
const (
	whyCounter = "no gauge but a counter or distribution: list what is wanted under metrics, or read it as requests"
	whyDelta   = "a delta of an up-down counter, whose value depends on earlier ones: send it cumulative"
	whyNoCount = "neither a duration histogram nor a counter"
	whyTempo   = "no aggregation temporality"
)

// refuse remembers a metric that cannot be read. A record has one dead letter for all of them: batches repeat the same
// metrics for ever.
func (m *metrics) refuse(name, why string) {
	if m.refused[why] == nil {
		m.refused[why] = map[string]bool{}
	}
	m.refused[why][name] = true
}

func (m *metrics) end() {
	for _, why := range slices.Sorted(maps.Keys(m.refused)) {
		list := sorted(m.refused[why])
		names, more := strings.Join(list[:min(len(list), 8)], ", "), ""
		if len(list) > 8 {
			more = fmt.Sprintf(" and %d more", len(list)-8)
		}
		m.reject(ingest.DeadLetter{Reason: ingest.ReasonUnsupported, Detail: cut(names, maxTitle/2) + more + ": " + why, Payload: []byte(strings.Join(list, "\n"))})
	}
	m.resource, m.refused, m.series = nil, nil, seriesState{}
}

// bad is a dead letter for one point or metric; the name stands for it.
func (m *metrics) bad(reason, name, format string, args ...any) {
	m.reject(ingest.DeadLetter{Reason: reason, Detail: cut(name, maxName) + ": " + fmt.Sprintf(format, args...), Payload: []byte(cut(name, maxName))})
}

// at is a point's time.
func (m *metrics) at(name string, unixNano uint64) (time.Time, bool) {
	switch {
	case unixNano == 0:
		m.bad(ingest.ReasonMissing, name, "a point has no time")
	case unixNano > 1<<63-1:
		m.bad(ingest.ReasonInvalid, name, "a point has the time %d", unixNano)
	default:
		return time.Unix(0, int64(unixNano)).UTC(), true
	}
	return time.Time{}, false
}

// look finds the first of names that has a value, on the point before its resource.
func (m *metrics) look(point map[string]string, names []string) (value, name string) {
	for _, n := range names {
		if v := point[n]; v != "" {
			return v, n
		}
		if v := m.resource[n]; v != "" {
			return v, n
		}
	}
	return "", ""
}

func absent(flags uint32) bool {
	return flags&uint32(metricspb.DataPointFlags_DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK) != 0
}

func attrMap(list []*commonpb.KeyValue) map[string]string {
	m := make(map[string]string, len(list))
	for _, a := range list {
		if text := attrText(a.GetValue()); text != "" {
			m[a.GetKey()] = text
		}
	}
	return m
}

func attrText(v *commonpb.AnyValue) string {
	switch x := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return x.StringValue
	case *commonpb.AnyValue_IntValue:
		return strconv.FormatInt(x.IntValue, 10)
	case *commonpb.AnyValue_BoolValue:
		return strconv.FormatBool(x.BoolValue)
	case *commonpb.AnyValue_DoubleValue:
		return strconv.FormatFloat(x.DoubleValue, 'g', -1, 64)
	}
	return ""
}
