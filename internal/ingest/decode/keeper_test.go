package decode

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// What is kept of a sample counts for all, by whichever way spans are counted, and the same spans are kept each time.
func TestSamplesCountForAll(t *testing.T) {
	const n, keep = 40_000, 0.15
	text := func(k, v string) *commonpb.KeyValue {
		return &commonpb.KeyValue{Key: k, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: v}}}
	}
	var spans []*tracepb.Span
	for i := range n {
		s := &tracepb.Span{Name: "x", Kind: tracepb.Span_SPAN_KIND_SERVER, StartTimeUnixNano: 1, EndTimeUnixNano: 1_000_000_000,
			TraceId: make([]byte, 16), SpanId: binary.BigEndian.AppendUint64(nil, uint64(i))}
		s.Attributes = append(s.Attributes, text("http.route", []string{"/a", "/health", "/b"}[i%3]))
		spans = append(spans, s)
	}
	value, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource:   &resourcepb.Resource{Attributes: []*commonpb.KeyValue{text("service.name", "s")}},
		ScopeSpans: []*tracepb.ScopeSpans{{Spans: spans}}}}})
	if err != nil {
		t.Fatal(err)
	}
	p := minimal(t, signal.Requests, "otlp_proto", fmt.Sprintf("drop: [{operation: /health}]\nsample: [{operation: /b, keep: %v}]", keep))
	e, _ := ByName("otlp_proto")
	counts := func(shaped bool) map[string]uint64 {
		total := map[string]uint64{}
		d := e.New(p)
		emit := func(e signal.Event) {
			r := e.(*signal.Request)
			total[r.Path.Operation] += r.Count
			if r.Estimated != (r.Path.Operation == "/b") {
				t.Errorf("%s: estimated %v", r.Path.Operation, r.Estimated)
			}
		}
		reject := func(d ingest.DeadLetter) { t.Error(d.Detail) }
		rec := ingest.Record{Time: time.Unix(1, 0), Value: value}
		if s, ok := d.(ingest.ShapedDecoder); ok && shaped {
			s.DecodeShaped(rec, func(list []ingest.Counted) {
				for _, c := range list {
					emit(c.Shape.At(c.End, c.Latency))
				}
			}, emit, reject)
		} else {
			d.Decode(rec, emit, reject)
		}
		return total
	}
	plain, shaped := counts(false), counts(true)
	if plain["/a"] != (n+2)/3 || plain["/health"] != 0 || len(plain) != 2 {
		t.Errorf("counted %v", plain)
	}
	if off := math.Abs(float64(plain["/b"])/(n/3) - 1); off > 0.08 { // six standard deviations
		t.Errorf("the sample counts %d of %d", plain["/b"], n/3)
	}
	if fmt.Sprint(plain) != fmt.Sprint(shaped) {
		t.Errorf("counted by shape %v, else %v", shaped, plain)
	}
}
