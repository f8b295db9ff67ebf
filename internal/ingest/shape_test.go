package ingest_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// shapeless hides that a decoder knows shapes.
type shapeless struct{ d ingest.Decoder }

func (s shapeless) Decode(rec ingest.Record, emit func(signal.Event), reject func(ingest.DeadLetter)) {
	s.d.Decode(rec, emit, reject)
}

// Requests that go by shape give the very batches that all would give one by one: rows, samples, sketches, markers, dead letters.
func TestShapesGiveTheSameBatches(t *testing.T) {
	src := source(t, "requests", "spans", "otlp_proto", "max_age: 1h\nmax_ahead: 1m\nmax_record: 8MiB\n")
	plain := src
	plain.NewDecoder = func() ingest.Decoder { return shapeless{src.NewDecoder()} }
	var batches [2][]*ingest.Batch
	for i, s := range []ingest.Source{src, plain} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, func(c *ingest.Config) { c.MaxRows = 50_100 }, s)
			w.kafka.CreateTopic("spans", 1)
			r := w.start(1, peace, nil)
			for part := range 4 { // several batches, so that shapes outlive one
				for n, v := range mixedSpans(t, time.Now(), part) {
					w.kafka.Produce("spans", 0, time.Now().Add(time.Duration(n)*time.Millisecond), v)
				}
				advance(7 * time.Second)
			}
			r.stop(t)
			for _, b := range w.store.Batches() {
				if !b.Marker.Heartbeat {
					batches[i] = append(batches[i], b)
				}
			}
		})
	}
	if len(batches[0]) < 4 || len(batches[0]) != len(batches[1]) {
		t.Fatalf("%d and %d batches", len(batches[0]), len(batches[1]))
	}
	var late, rejected, samples uint64
	for i, a := range batches[0] {
		b := batches[1][i]
		a.Marker.Clock, b.Marker.Clock = time.Time{}, time.Time{} // when it was made, which is not of the records
		if diff := cmp.Diff(b, a, cmp.Transformer("cell", func(c ingest.Cell) signal.Cell { return c.Signal() }), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("batch %d (-one by one +by shape):\n%s", i, diff[:min(len(diff), 3000)])
		}
		late, rejected = late+a.Marker.Late, rejected+a.Marker.Rejected
		for _, c := range a.Cells {
			samples += uint64(len(c.Samples()))
		}
	}
	if late == 0 || rejected == 0 || samples == 0 {
		t.Errorf("nothing tested: %d late, %d rejected, %d samples", late, rejected, samples)
	}
}

// mixedSpans are records with spans of several buckets, late, too old, of the future, failed, retried and sampled ones,
// a record with more events than one may have, and one that is broken.
func mixedSpans(t *testing.T, now time.Time, part int) (out [][]byte) {
	attr := func(k, v string) *commonpb.KeyValue {
		return &commonpb.KeyValue{Key: k, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: v}}}
	}
	record := func(spans int) []byte {
		b := &tracepb.TracesData{}
		for svc := range 2 {
			rs := &tracepb.ResourceSpans{Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{attr("service.name", fmt.Sprint("s", svc)), attr("cloud.region", fmt.Sprint("r", spans%3))}}, ScopeSpans: []*tracepb.ScopeSpans{{}}}
			for i := range spans {
				end := now.Add(-time.Duration(i*i%25_000) * time.Millisecond)
				switch {
				case i%91 == 17:
					end = now.Add(-2 * time.Hour)
				case i%101 == 17:
					end = now.Add(2 * time.Minute)
				}
				sp := &tracepb.Span{TraceId: fmt.Appendf(nil, "%016d", i), SpanId: fmt.Appendf(nil, "%08d", i), Name: "GET /x", Kind: tracepb.Span_SPAN_KIND_SERVER,
					StartTimeUnixNano: uint64(end.Add(-time.Duration(i) * time.Millisecond).UnixNano()), EndTimeUnixNano: uint64(end.UnixNano()),
					Attributes: []*commonpb.KeyValue{attr("http.route", fmt.Sprint("/r/", i%7)), attr("http.request.method", "GET"), attr("account.id", fmt.Sprint("a", i%90)), attr("http.response.status_code", []string{"200", "200", "404", "429", "200", "503"}[i%6])}}
				switch i % 37 {
				case 3:
					sp.Attributes = append(sp.Attributes, attr("http.request.resend_count", "2"))
				case 5:
					sp.TraceState = "ot=th:c"
				case 7:
					sp.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR}
					sp.Attributes = append(sp.Attributes, attr("error.type", "timeout"))
				}
				rs.ScopeSpans[0].Spans = append(rs.ScopeSpans[0].Spans, sp)
			}
			b.ResourceSpans = append(b.ResourceSpans, rs)
		}
		v, err := proto.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for i := range 5 {
		out = append(out, record(60+i*50))
	}
	out = append(out, out[0][:len(out[0])/2], []byte{})
	if part == 1 {
		many := &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{attr("service.name", "s")}}, ScopeSpans: []*tracepb.ScopeSpans{{}}}}}
		for i := range ingest.MaxEvents + 3 {
			many.ResourceSpans[0].ScopeSpans[0].Spans = append(many.ResourceSpans[0].ScopeSpans[0].Spans, &tracepb.Span{Kind: tracepb.Span_SPAN_KIND_SERVER, EndTimeUnixNano: uint64(now.UnixNano()) + uint64(i), Name: "x"})
		}
		v, err := proto.Marshal(many)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}
