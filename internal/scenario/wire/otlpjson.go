package wire

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// The exporter's JSON is not protobuf's: ids are hexadecimal, enumerations are numbers, 64-bit numbers are texts, and
// an empty status is written.

type jsonTraces struct {
	ResourceSpans []jsonResourceSpans `json:"resourceSpans"`
}

type jsonResourceSpans struct {
	Resource struct {
		Attributes []jsonKeyValue `json:"attributes,omitempty"`
	} `json:"resource"`
	ScopeSpans []jsonScopeSpans `json:"scopeSpans"`
}

type jsonScopeSpans struct {
	Scope struct {
		Name    string `json:"name,omitempty"`
		Version string `json:"version,omitempty"`
	} `json:"scope"`
	Spans []jsonSpan `json:"spans"`
}

type jsonSpan struct {
	TraceID    string         `json:"traceId"`
	SpanID     string         `json:"spanId"`
	Name       string         `json:"name"`
	Kind       int32          `json:"kind"`
	Start      uint64         `json:"startTimeUnixNano,string"`
	End        uint64         `json:"endTimeUnixNano,string"`
	Attributes []jsonKeyValue `json:"attributes,omitempty"`
	Status     struct {
		Code int32 `json:"code,omitempty"`
	} `json:"status"`
}

type jsonKeyValue struct {
	Key   string `json:"key"`
	Value struct {
		Text   *string `json:"stringValue,omitempty"`
		Number *int64  `json:"intValue,omitempty,string"`
	} `json:"value"`
}

// ToOTLPJSON encodes requests as one message of the exporter with encoding otlp_json.
func (e *Encoder) ToOTLPJSON(requests []signal.Request) ([]byte, error) {
	data, err := e.Traces(requests)
	if err != nil {
		return nil, err
	}
	var out jsonTraces
	for _, rs := range data.ResourceSpans {
		var j jsonResourceSpans
		j.Resource.Attributes = jsonAttributes(rs.Resource.Attributes)
		for _, ss := range rs.ScopeSpans {
			var scope jsonScopeSpans
			scope.Scope.Name, scope.Scope.Version = ss.Scope.Name, ss.Scope.Version
			for _, s := range ss.Spans {
				scope.Spans = append(scope.Spans, jsonOf(s))
			}
			j.ScopeSpans = append(j.ScopeSpans, scope)
		}
		out.ResourceSpans = append(out.ResourceSpans, j)
	}
	value, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("marshal spans: %w", err)
	}
	return value, nil
}

func jsonOf(s *tracepb.Span) jsonSpan {
	j := jsonSpan{
		TraceID: hex.EncodeToString(s.TraceId), SpanID: hex.EncodeToString(s.SpanId), Name: s.Name, Kind: int32(s.Kind),
		Start: s.StartTimeUnixNano, End: s.EndTimeUnixNano, Attributes: jsonAttributes(s.Attributes),
	}
	j.Status.Code = int32(s.Status.Code)
	return j
}

func jsonAttributes(list []*commonpb.KeyValue) []jsonKeyValue {
	out := make([]jsonKeyValue, len(list))
	for i, kv := range list {
		out[i].Key = kv.Key
		switch v := kv.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			out[i].Value.Text = &v.StringValue
		case *commonpb.AnyValue_IntValue:
			out[i].Value.Number = &v.IntValue
		}
	}
	return out
}
