package decode

import (
	"encoding/hex"
	"strconv"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// otlpObjects reads spans by the protobuf library, an object for each part of them. It is slow and never wrong about what
// is malformed: the walker leaves to it what is not as usual, and tests hold the two to the same answers.
type otlpObjects struct {
	m *mapper
	s span
}

var _ ingest.Decoder = (*otlpObjects)(nil)

// Decode reads a batch of spans. A batch that is no protobuf is one dead letter; a span that is none is one of its own.
func (d *otlpObjects) Decode(rec ingest.Record, emit func(signal.Event), reject func(ingest.DeadLetter)) {
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

func (d *otlpObjects) span(sp *tracepb.Span, emit func(signal.Event), reject func(ingest.DeadLetter)) {
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
