package wire

import (
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/cespare/xxhash/v2"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// attributeNames are the semantic conventions' names of the dimensions that scenarios use; others keep their own.
var attributeNames = map[string]string{"region": "cloud.region", "model": "gen_ai.request.model"}

// onResource are the dimensions that belong to the instance which answered, not to the request.
var onResource = map[string]bool{"region": true, "site": true}

var instrumentation = &commonpb.InstrumentationScope{Name: "go.opentelemetry.io/contrib/instrumentation", Version: "0.64.0"}

// group is what shares a resource.
type group struct {
	service    string
	attributes signal.Attributes
}

// span is one request as a span, its attributes not yet in any encoding. It is valid until the next is made.
type span struct {
	group      group
	ids        [24]byte // trace and span
	name       string
	start, end uint64
	attributes []*attribute
	failed     bool
}

// span reads a request in the words of the semantic conventions.
func (e *Encoder) span(r *signal.Request) (*span, error) {
	s := &e.scratch
	s.group = group{r.Path.Service, e.onResource(r.Attributes)}
	if len(r.TraceID) != 32 {
		return nil, fmt.Errorf("%q is not a trace id", r.TraceID)
	}
	if _, err := hex.Decode(s.ids[:], []byte(r.TraceID)); err != nil {
		return nil, fmt.Errorf("%q is not a trace id", r.TraceID)
	}
	end := r.Time.UnixNano()
	s.start, s.end, s.failed = uint64(end-int64(max(r.Latency, 0))), uint64(end), r.Outcome == signal.Failure
	h := xxhash.Sum64(s.ids[:16]) | 1
	for i := range 8 {
		s.ids[16+i] = byte(h >> (8 * i))
	}
	c := e.call(r.Path)
	s.name = c.name
	s.attributes = append(s.attributes[:0], c.attributes...)
	if c.RPC {
		s.attributes = append(s.attributes, e.words.number("rpc.grpc.status_code", grpcCodes[r.Status]))
	} else {
		status, err := strconv.ParseInt(r.Status, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not an HTTP status", r.Status)
		}
		s.attributes = append(s.attributes, e.words.number("http.response.status_code", status))
	}
	if r.Account != "" {
		s.attributes = append(s.attributes, e.words.text("account.id", r.Account))
	}
	if r.Error != "" {
		s.attributes = append(s.attributes, e.words.text("error.type", r.Error))
	}
	if r.Attempt > 1 {
		s.attributes = append(s.attributes, e.words.number("http.request.resend_count", int64(r.Attempt-1)))
	}
	if s.group.attributes != r.Attributes {
		for n, v := range r.Attributes.All() {
			if !onResource[n] {
				s.attributes = append(s.attributes, e.words.text(attributeName(n), v))
			}
		}
	}
	return s, nil
}

// Traces builds the message as OpenTelemetry's own types: the spans of one service instance stand together, in order of
// first sight. ToOTLP gives the bytes of this message.
func (e *Encoder) Traces(requests []signal.Request) (*tracepb.TracesData, error) {
	data := &tracepb.TracesData{}
	index := map[group]*tracepb.ScopeSpans{}
	for i := range requests {
		s, err := e.span(&requests[i])
		if err != nil {
			return nil, err
		}
		scope := index[s.group]
		if scope == nil {
			scope = &tracepb.ScopeSpans{Scope: instrumentation}
			index[s.group] = scope
			data.ResourceSpans = append(data.ResourceSpans, &tracepb.ResourceSpans{Resource: e.resource(s.group), ScopeSpans: []*tracepb.ScopeSpans{scope}})
		}
		p := &tracepb.Span{
			TraceId: append([]byte(nil), s.ids[:16]...), SpanId: append([]byte(nil), s.ids[16:]...), Name: s.name, Kind: tracepb.Span_SPAN_KIND_SERVER,
			StartTimeUnixNano: s.start, EndTimeUnixNano: s.end, Status: &tracepb.Status{},
		}
		for _, a := range s.attributes {
			p.Attributes = append(p.Attributes, a.message)
		}
		if s.failed {
			p.Status.Code = tracepb.Status_STATUS_CODE_ERROR
		}
		scope.Spans = append(scope.Spans, p)
	}
	return data, nil
}

func (e *Encoder) resource(g group) *resourcepb.Resource {
	r := &resourcepb.Resource{Attributes: []*commonpb.KeyValue{
		e.words.text("service.name", g.service).message, e.words.text("telemetry.sdk.language", "go").message, e.words.text("telemetry.sdk.name", "opentelemetry").message,
	}}
	for n, v := range g.attributes.All() {
		r.Attributes = append(r.Attributes, e.words.text(attributeName(n), v).message)
	}
	return r
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
