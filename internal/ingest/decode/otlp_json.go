package decode

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
)

var otlpJSONEntry = Entry{
	Name:    "otlp_json",
	Summary: "OpenTelemetry spans as OTLP/JSON: ids in hexadecimal, 64-bit numbers as texts or numbers, kinds and codes as numbers or names.",
	Example: `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"checkout"}}]},"scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","name":"POST /pay/{account}","kind":2,"startTimeUnixNano":"1757752979000000000","endTimeUnixNano":"1757752980000000000","attributes":[{"key":"http.request.method","value":{"stringValue":"POST"}},{"key":"http.route","value":{"stringValue":"/pay/{account}"}},{"key":"http.response.status_code","value":{"intValue":"500"}}]}]}]}]}`,
	New:     func(p *pipeline.Pipeline) ingest.Decoder { return &otlpJSON{m: newMapper(&p.Requests)} },
}

// otlpJSON reads the format by hand: protojson takes hexadecimal ids for base64 without an error.
type otlpJSON struct{ m *mapper }

var _ ingest.Decoder = (*otlpJSON)(nil)

type jsonTraces struct {
	ResourceSpans []struct {
		Resource struct {
			Attributes []jsonAttribute `json:"attributes"`
		} `json:"resource"`
		ScopeSpans []struct {
			Spans []jsonSpan `json:"spans"`
		} `json:"scopeSpans"`
	} `json:"resourceSpans"`
}

type jsonSpan struct {
	TraceID    string          `json:"traceId"`
	SpanID     string          `json:"spanId"`
	TraceState string          `json:"traceState"`
	Name       string          `json:"name"`
	Kind       scalar          `json:"kind"`
	Start      scalar          `json:"startTimeUnixNano"`
	End        scalar          `json:"endTimeUnixNano"`
	Attributes []jsonAttribute `json:"attributes"`
	Status     struct {
		Code scalar `json:"code"`
	} `json:"status"`
}

type jsonAttribute struct {
	Key   string `json:"key"`
	Value struct {
		String *string `json:"stringValue"`
		Int    *scalar `json:"intValue"`
		Bool   *bool   `json:"boolValue"`
		Double *scalar `json:"doubleValue"`
	} `json:"value"`
}

// Decode reads a batch of spans. A batch that is no JSON is one dead letter; a span with a wrong value is one of its own.
func (d *otlpJSON) Decode(rec ingest.Record, emit func(signal.Event), reject func(ingest.DeadLetter)) {
	var batch jsonTraces
	if err := json.Unmarshal(rec.Value, &batch); err != nil {
		reject(ingest.DeadLetter{Reason: ingest.ReasonMalformed, Detail: "no OTLP spans: " + err.Error()})
		return
	}
	if batch.ResourceSpans == nil && !bytes.Contains(rec.Value, []byte(`"resourceSpans"`)) {
		reject(ingest.DeadLetter{Reason: ingest.ReasonMalformed, Detail: "JSON without resourceSpans"})
		return
	}
	for _, rs := range batch.ResourceSpans {
		d.m.beginResource()
		for i := range rs.Resource.Attributes {
			d.m.resourceAttr(rs.Resource.Attributes[i].Key, rs.Resource.Attributes[i].value())
		}
		for _, ss := range rs.ScopeSpans {
			for i := range ss.Spans {
				d.span(&ss.Spans[i], emit, reject)
			}
		}
	}
}

func (d *otlpJSON) span(sp *jsonSpan, emit func(signal.Event), reject func(ingest.DeadLetter)) {
	s, err := sp.plain()
	if err != nil {
		reject(ingest.DeadLetter{Reason: ingest.ReasonInvalid, Detail: fmt.Sprintf("span %q: %v", cut(sp.Name, maxName), err)})
		return
	}
	d.m.beginSpan()
	for i := range sp.Attributes {
		d.m.spanAttr(sp.Attributes[i].Key, sp.Attributes[i].value())
	}
	deliver(d.m, &s, emit, reject)
}

var jsonKinds = [...]struct {
	name string
	kind pipeline.SpanKind
}{
	{"SPAN_KIND_UNSPECIFIED", pipeline.KindInternal},
	{"SPAN_KIND_INTERNAL", pipeline.KindInternal},
	{"SPAN_KIND_SERVER", pipeline.KindServer},
	{"SPAN_KIND_CLIENT", pipeline.KindClient},
	{"SPAN_KIND_PRODUCER", pipeline.KindProducer},
	{"SPAN_KIND_CONSUMER", pipeline.KindConsumer},
}

func (sp *jsonSpan) plain() (s span, err error) {
	trace, err := hex.DecodeString(sp.TraceID)
	if err != nil {
		return s, fmt.Errorf("traceId is not hexadecimal")
	}
	if s.id, err = hex.DecodeString(sp.SpanID); err != nil {
		return s, fmt.Errorf("spanId is not hexadecimal")
	}
	if bad := badIDs(len(trace), len(s.id)); bad != "" {
		return s, fmt.Errorf("%s", bad)
	}
	s.traceID, s.name, s.traceState = strings.ToLower(sp.TraceID), sp.Name, sp.TraceState
	if s.start, err = sp.Start.uint("startTimeUnixNano"); err != nil {
		return s, err
	}
	if s.end, err = sp.End.uint("endTimeUnixNano"); err != nil {
		return s, err
	}
	s.kind = pipeline.KindInternal // of a later version of the format
	number, convErr := sp.Kind.uint("kind")
	for i, k := range jsonKinds {
		if convErr == nil && number == uint64(i) || sp.Kind.text == k.name {
			s.kind = k.kind
		}
	}
	if convErr != nil && !strings.HasPrefix(sp.Kind.text, "SPAN_KIND_") {
		return s, convErr
	}
	s.failed = sp.Status.Code.text == "2" || sp.Status.Code.text == "STATUS_CODE_ERROR"
	return s, nil
}

func (a *jsonAttribute) value() value {
	switch v := a.Value; {
	case v.String != nil:
		return value{text: *v.String}
	case v.Int != nil:
		if n, err := v.Int.int(); err == nil {
			return value{number: n, isInt: true}
		}
	case v.Bool != nil && *v.Bool:
		return value{text: "true"}
	case v.Bool != nil:
		return value{text: "false"}
	case v.Double != nil:
		return value{text: v.Double.text}
	}
	return value{}
}
