package decode

import (
	"fmt"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
)

var otlpProtoEntry = Entry{
	Name:    "otlp_proto",
	Summary: "OpenTelemetry spans as protobuf (TracesData, the same bytes as ExportTraceServiceRequest); SERVER and CONSUMER spans are requests.",
	Binary:  true,
	Example: "CsoBChwKGgoMc2VydmljZS5uYW1lEgoKCGNoZWNrb3V0EqkBEqYBChBbjv/3mAOBA9JptjOBP8YMEgju4Zt+w8GxdCoTUE9TVCAvcGF5L3thY2NvdW50fTACOQD+LXwFy2QYQQDIyLcFy2QYSh0KE2h0dHAucmVxdWVzdC5tZXRob2QSBgoEUE9TVEoeCgpodHRwLnJvdXRlEhAKDi9wYXkve2FjY291bnR9SiAKGWh0dHAucmVzcG9uc2Uuc3RhdHVzX2NvZGUSAxj0Aw==",
	New:     func(p *pipeline.Pipeline) ingest.Decoder { return newOTLPProto(p, newLearned()) },
	Many: func(p *pipeline.Pipeline) func() ingest.Decoder {
		known := newLearned()
		return func() ingest.Decoder { return newOTLPProto(p, known) }
	},
}

type otlpProto struct {
	m *mapper
	w *walker
	o otlpObjects

	run []ingest.Counted // one after another
}

var _ ingest.ShapedDecoder = (*otlpProto)(nil)

func newOTLPProto(p *pipeline.Pipeline, known *learned) *otlpProto {
	m := newMapper(&p.Requests)
	return &otlpProto{m: m, w: newWalker(m, known), o: otlpObjects{m: m}}
}

// Decode reads a batch of spans. A batch that is no protobuf is one dead letter; a span that is none is one of its own.
func (d *otlpProto) Decode(rec ingest.Record, emit func(signal.Event), reject func(ingest.DeadLetter)) {
	d.DecodeShaped(rec, nil, emit, reject)
}

// DecodeShaped is Decode for whoever can count by shape.
func (d *otlpProto) DecodeShaped(rec ingest.Record, count func([]ingest.Counted), emit func(signal.Event), reject func(ingest.DeadLetter)) {
	d.w.shaping = count != nil
	if !d.w.walk(rec.Value) {
		d.o.Decode(rec, emit, reject)
		return
	}
	d.run = d.run[:0]
	for i := range d.w.found {
		f := &d.w.found[i]
		if f.shape != nil {
			d.run = append(d.run, ingest.Counted{Shape: f.shape, End: f.end, Latency: time.Duration(f.latency)})
			continue
		}
		if len(d.run) > 0 {
			count(d.run)
			d.run = d.run[:0]
		}
		s, bad := d.w.read(rec.Value[f.from:f.upTo], f.res)
		if bad != "" {
			reject(ingest.DeadLetter{Reason: ingest.ReasonInvalid, Detail: bad})
			continue
		}
		deliver(d.m, s, emit, reject)
	}
	if len(d.run) > 0 {
		count(d.run)
	}
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

// protoKind is the kind by its number; "" for one of a later version.
func protoKind(n int32) pipeline.SpanKind { return protoKinds[tracepb.Span_SpanKind(n)] }

var protoKinds = map[tracepb.Span_SpanKind]pipeline.SpanKind{
	tracepb.Span_SPAN_KIND_SERVER:      pipeline.KindServer,
	tracepb.Span_SPAN_KIND_CONSUMER:    pipeline.KindConsumer,
	tracepb.Span_SPAN_KIND_CLIENT:      pipeline.KindClient,
	tracepb.Span_SPAN_KIND_PRODUCER:    pipeline.KindProducer,
	tracepb.Span_SPAN_KIND_INTERNAL:    pipeline.KindInternal,
	tracepb.Span_SPAN_KIND_UNSPECIFIED: pipeline.KindInternal,
}
