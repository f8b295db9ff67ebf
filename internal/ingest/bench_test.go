package ingest_test

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/ingest/ingesttest"
)

func attr(key string, v any) *commonpb.KeyValue {
	kv := &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{}}
	switch v := v.(type) {
	case string:
		kv.Value.Value = &commonpb.AnyValue_StringValue{StringValue: v}
	case int:
		kv.Value.Value = &commonpb.AnyValue_IntValue{IntValue: int64(v)}
	}
	return kv
}

// spanRecords are records of 250 spans in five services each, as a gateway's batch would be.
func spanRecords(b *testing.B, n int, at time.Time) (out [][]byte) {
	b.Helper()
	for r := range n {
		batch := &tracepb.TracesData{}
		for s := range 5 {
			rs := &tracepb.ResourceSpans{Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{
				attr("service.name", fmt.Sprint("service-", (r+s)%28)), attr("cloud.region", fmt.Sprint("region-", r%3)), attr("telemetry.sdk.name", "opentelemetry"), attr("host.name", "a-host")}},
				ScopeSpans: []*tracepb.ScopeSpans{{}}}
			for i := range 50 {
				id := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(r*1000+s)), uint64(i)|1<<60)
				end := uint64(at.UnixNano()) + uint64(r)*uint64(time.Millisecond)
				sp := &tracepb.Span{TraceId: id, SpanId: id[8:], Name: "GET /x", Kind: tracepb.Span_SPAN_KIND_SERVER, StartTimeUnixNano: end - 1e7*uint64(i), EndTimeUnixNano: end,
					Attributes: []*commonpb.KeyValue{attr("http.request.method", []string{"GET", "POST"}[i%2]), attr("http.route", fmt.Sprint("/route/", i%8)), attr("account.id", fmt.Sprint("account-", i)), attr("url.path", "/route/with/some/path")}}
				status := 200
				if i%25 == 0 {
					status = 503
					sp.Attributes = append(sp.Attributes, attr("error.type", "503"))
				}
				sp.Attributes = append(sp.Attributes, attr("http.response.status_code", status))
				rs.ScopeSpans[0].Spans = append(rs.ScopeSpans[0].Spans, sp)
			}
			batch.ResourceSpans = append(batch.ResourceSpans, rs)
		}
		v, err := proto.Marshal(batch)
		if err != nil {
			b.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

// BenchmarkSpans goes from records to stored batches; one operation is one span.
func BenchmarkSpans(b *testing.B) {
	at := time.Now()
	values := spanRecords(b, 200, at)
	w := &world{kafka: ingesttest.NewKafka(), store: ingesttest.NewStore(), cfg: defaults(nil)}
	w.kafka.CreateTopic("spans", 1)
	src := source(b, "requests", "spans", "otlp_proto", "")
	p := ingesttest.NewProcess(1, peace, func() {})
	loop, err := ingest.New(w.cfg, ingest.Deps{Log: w.kafka.Log(p), Group: w.kafka.Group(p), Store: w.store.Client(p), Sources: []ingest.Source{src},
		Clock: ingest.NewClock(ingest.ClockWall, nil), Logger: slog.New(slog.DiscardHandler), Metrics: ingest.NewMetrics(nil)})
	if err != nil {
		b.Fatal(err)
	}
	n := b.N/250 + 1
	for i := range n {
		w.kafka.Produce("spans", 0, at.Add(time.Second), values[i%len(values)])
	}
	b.ReportAllocs()
	b.ResetTimer()
	done := make(chan error, 1)
	go func() { done <- loop.Run(b.Context()) }()
	for {
		if h := loop.Health(); len(h.Partitions) == 1 && h.Partitions[0].Position == int64(n) {
			return
		}
		select {
		case err := <-done:
			b.Fatal(err)
		case <-time.After(time.Millisecond):
		}
	}
}
