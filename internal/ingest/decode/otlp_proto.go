package decode

import (
	"encoding/hex"
	"fmt"
	"strconv"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
)

var otlpProtoEntry = Entry{
	Name:    "otlp_proto",
	Summary: "OpenTelemetry spans as protobuf (TracesData, the same bytes as ExportTraceServiceRequest); SERVER and CONSUMER spans are requests.",
	Binary:  true,
	Example: "CsoBChwKGgoMc2VydmljZS5uYW1lEgoKCGNoZWNrb3V0EqkBEqYBChBbjv/3mAOBA9JptjOBP8YMEgju4Zt+w8GxdCoTUE9TVCAvcGF5L3thY2NvdW50fTACOQD+LXwFy2QYQQDIyLcFy2QYSh0KE2h0dHAucmVxdWVzdC5tZXRob2QSBgoEUE9TVEoeCgpodHRwLnJvdXRlEhAKDi9wYXkve2FjY291bnR9SiAKGWh0dHAucmVzcG9uc2Uuc3RhdHVzX2NvZGUSAxj0Aw==",
	New:     func(p *pipeline.Pipeline) ingest.Decoder { return &otlpProto{m: newMapper(&p.Requests)} },
}

type otlpProto struct {
	m *mapper
	s span
}

var _ ingest.Decoder = (*otlpProto)(nil)

// Decode reads a batch of spans. A batch that is no protobuf is one dead letter; a span that is none is one of its own.
func (d *otlpProto) Decode(rec ingest.Record, emit func(signal.Event), reject func(ingest.DeadLetter)) {
	var batch tracepb.TracesData
	if err := proto.Unmarshal(rec.Value, &batch); err != nil {
		// The library's text varies from build to build on purpose; a dead letter must not.
		reject(ingest.DeadLetter{Reason: ingest.ReasonMalformed, Detail: "not protobuf of OTLP spans"})
		return
	}
	if len(batch.ResourceSpans) == 0 && len(batch.ProtoReflect().GetUnknown()) > 0 {
		reject(ingest.DeadLetter{Reason: ingest.ReasonMalformed, Detail: "protobuf, but no OTLP spans"})
		return
	}
	for _, rs := range batch.ResourceSpans {
		d.m.beginResource()
		for _, a := range rs.GetResource().GetAttributes() {
			d.m.resourceAttr(a.GetKey(), protoValue(a.GetValue()))
		}
		for _, ss := range rs.ScopeSpans {
			for _, sp := range ss.Spans {
				d.span(sp, emit, reject)
			}
		}
	}
}

func (d *otlpProto) span(sp *tracepb.Span, emit func(signal.Event), reject func(ingest.DeadLetter)) {
	// Metrics and logs parse as spans, too; what gives them away are ids of a wrong length and missing times.
	if bad := badIDs(len(sp.TraceId), len(sp.SpanId)); bad != "" {
		reject(ingest.DeadLetter{Reason: ingest.ReasonInvalid, Detail: bad})
		return
	}
	d.m.beginSpan()
	for _, a := range sp.Attributes {
		d.m.spanAttr(a.GetKey(), protoValue(a.GetValue()))
	}
	d.s = span{
		id:         sp.SpanId,
		name:       sp.Name,
		kind:       protoKinds[sp.Kind],
		start:      sp.StartTimeUnixNano,
		end:        sp.EndTimeUnixNano,
		failed:     sp.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR,
		traceState: sp.TraceState,
	}
	if d.m.kinds[d.s.kind] {
		d.s.traceID = hex.EncodeToString(sp.TraceId)
	}
	deliver(d.m, &d.s, emit, reject)
}

// deliver hands on what the mapper made of a span.
func deliver(m *mapper, s *span, emit func(signal.Event), reject func(ingest.DeadLetter)) {
	switch r, bad := m.finish(s); {
	case r != nil:
		emit(r)
	case bad.Reason != "":
		reject(bad)
	}
}

// badIDs says what is wrong with ids of these lengths in bytes; absent ones are let pass.
func badIDs(trace, span int) string {
	switch {
	case trace != 0 && trace != 16:
		return fmt.Sprintf("a trace id of %d bytes, 16 are right: perhaps no spans at all", trace)
	case span != 0 && span != 8:
		return fmt.Sprintf("a span id of %d bytes, 8 are right: perhaps no spans at all", span)
	}
	return ""
}

var protoKinds = map[tracepb.Span_SpanKind]pipeline.SpanKind{
	tracepb.Span_SPAN_KIND_SERVER:      pipeline.KindServer,
	tracepb.Span_SPAN_KIND_CONSUMER:    pipeline.KindConsumer,
	tracepb.Span_SPAN_KIND_CLIENT:      pipeline.KindClient,
	tracepb.Span_SPAN_KIND_PRODUCER:    pipeline.KindProducer,
	tracepb.Span_SPAN_KIND_INTERNAL:    pipeline.KindInternal,
	tracepb.Span_SPAN_KIND_UNSPECIFIED: pipeline.KindInternal,
}

// protoValue reads texts, numbers and truth values; lists and maps have no single value and count as absent.
func protoValue(v *commonpb.AnyValue) value {
	switch x := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return value{text: x.StringValue}
	case *commonpb.AnyValue_IntValue:
		return value{number: x.IntValue, isInt: true}
	case *commonpb.AnyValue_BoolValue:
		return value{text: strconv.FormatBool(x.BoolValue)}
	case *commonpb.AnyValue_DoubleValue:
		return value{text: strconv.FormatFloat(x.DoubleValue, 'g', -1, 64)}
	}
	return value{}
}
