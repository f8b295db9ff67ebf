package wire

import (
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/cespare/xxhash/v2"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// attributeNames are the semantic conventions' names of the dimensions that scenarios use; others keep their own.
var attributeNames = map[string]string{"region": "cloud.region", "model": "gen_ai.request.model"}

// onResource are the dimensions that belong to the instance which answered, not to the request.
var onResource = map[string]bool{"region": true, "site": true}

var instrumentation = &commonpb.InstrumentationScope{Name: "go.opentelemetry.io/contrib/instrumentation", Version: "0.64.0"}

// ToOTLP encodes requests as one message of the exporter: protobuf of TracesData, which has the bytes of an
// ExportTraceServiceRequest.
func (e *Encoder) ToOTLP(requests []signal.Request) ([]byte, error) {
	data, err := e.traces(requests)
	if err != nil {
		return nil, err
	}
	value, err := proto.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("marshal spans: %w", err)
	}
	return value, nil
}

// group is what shares a resource.
type group struct {
	service    string
	attributes signal.Attributes
}

// traces builds the message: the spans of one service instance stand together, in order of first sight.
func (e *Encoder) traces(requests []signal.Request) (*tracepb.TracesData, error) {
	data := &tracepb.TracesData{}
	index := map[group]*tracepb.ScopeSpans{}
	for i := range requests {
		r := &requests[i]
		g := group{r.Path.Service, e.words.resource(r.Attributes)}
		scope := index[g]
		if scope == nil {
			scope = &tracepb.ScopeSpans{Scope: instrumentation}
			index[g] = scope
			data.ResourceSpans = append(data.ResourceSpans, &tracepb.ResourceSpans{
				Resource: &resourcepb.Resource{Attributes: e.resource(g)}, ScopeSpans: []*tracepb.ScopeSpans{scope},
			})
		}
		span, err := e.span(r)
		if err != nil {
			return nil, err
		}
		scope.Spans = append(scope.Spans, span)
	}
	return data, nil
}

func (e *Encoder) resource(g group) []*commonpb.KeyValue {
	kv := []*commonpb.KeyValue{
		e.words.text("service.name", g.service), e.words.text("telemetry.sdk.language", "go"), e.words.text("telemetry.sdk.name", "opentelemetry"),
	}
	for n, v := range g.attributes.All() {
		kv = append(kv, e.words.text(attributeName(n), v))
	}
	return kv
}

func (e *Encoder) span(r *signal.Request) (*tracepb.Span, error) {
	ids := make([]byte, 24)
	if n, err := hex.Decode(ids, []byte(r.TraceID)); err != nil || n != 16 {
		return nil, fmt.Errorf("%q is not a trace id", r.TraceID)
	}
	end := r.Time.UnixNano()
	// A retry is another span of its own, in a trace of its own.
	h := xxhash.Sum64(strconv.AppendInt([]byte(r.TraceID), end, 16)) | 1
	for i := range 8 {
		ids[16+i] = byte(h >> (8 * i))
	}
	s := &tracepb.Span{
		TraceId: ids[:16:16], SpanId: ids[16:], Kind: tracepb.Span_SPAN_KIND_SERVER,
		StartTimeUnixNano: uint64(end - int64(max(r.Latency, 0))), EndTimeUnixNano: uint64(end),
		Attributes: make([]*commonpb.KeyValue, 0, 8), Status: &tracepb.Status{},
	}
	call := e.call(r.Path)
	if call.RPC {
		s.Name = r.Path.Service + "/" + r.Path.Operation
		s.Attributes = append(s.Attributes, e.words.text("rpc.system", "grpc"), e.words.text("rpc.method", r.Path.Operation),
			e.words.number("rpc.grpc.status_code", grpcCodes[r.Status]))
	} else {
		status, err := strconv.ParseInt(r.Status, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not an HTTP status", r.Status)
		}
		s.Name = call.Method + " " + r.Path.Operation
		s.Attributes = append(s.Attributes, e.words.text("http.request.method", call.Method), e.words.text("http.route", r.Path.Operation),
			e.words.number("http.response.status_code", status))
	}
	if r.Account != "" {
		s.Attributes = append(s.Attributes, e.words.text("account.id", r.Account))
	}
	if r.Error != "" {
		s.Attributes = append(s.Attributes, e.words.text("error.type", r.Error))
	}
	if r.Attempt > 1 {
		s.Attributes = append(s.Attributes, e.words.number("http.request.resend_count", int64(r.Attempt-1)))
	}
	for n, v := range r.Attributes.All() {
		if !onResource[n] {
			s.Attributes = append(s.Attributes, e.words.text(attributeName(n), v))
		}
	}
	if r.Outcome == signal.Failure {
		s.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR}
	}
	return s, nil
}

func attributeName(n string) string {
	if name, ok := attributeNames[n]; ok {
		return name
	}
	return n
}

// grpcCodes are the numbers of those statuses that a scenario can have.
var grpcCodes = map[string]int64{
	"OK": 0, "INVALID_ARGUMENT": 3, "DEADLINE_EXCEEDED": 4, "NOT_FOUND": 5, "PERMISSION_DENIED": 7, "RESOURCE_EXHAUSTED": 8,
	"INTERNAL": 13, "UNAVAILABLE": 14, "UNAUTHENTICATED": 16,
}
