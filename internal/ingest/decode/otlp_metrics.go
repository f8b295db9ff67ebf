package decode

import (
	"bytes"

	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
)

var otlpMetricsProtoEntry = Entry{
	Name:    "otlp_metrics_proto",
	Summary: "OpenTelemetry metrics as protobuf. Stream gauges: gauges and up-down counters. Stream requests: duration histograms by status code, and counters, be they deltas or totals.",
	Binary:  true,
	Example: "CoUBChoKGAoMc2VydmljZS5uYW1lEggKBm9yZGVycxJnEmUKGmRiLmNsaWVudC5jb25uZWN0aW9uLmNvdW50Ggx7Y29ubmVjdGlvbn0qOQo3GQDIa+XY1NQYOg8KBXN0YXRlEgYKBHVzZWQ6EgoMdG9jc2luLmxpbWl0EgIYMjEtAAAAAAAAAA==",
	New:     func(p *pipeline.Pipeline) ingest.Decoder { return &otlpMetrics{m: newMetrics(p)} },
}

var otlpMetricsJSONEntry = Entry{
	Name:    "otlp_metrics_json",
	Summary: "OpenTelemetry metrics as OTLP/JSON, read as otlp_metrics_proto reads them.",
	Example: `{"resourceMetrics":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"orders"}}]},"scopeMetrics":[{"metrics":[{"name":"db.client.connection.count","unit":"{connection}","gauge":{"dataPoints":[{"timeUnixNano":"1789288980000000000","asInt":"45","attributes":[{"key":"state","value":{"stringValue":"used"}},{"key":"tocsin.limit","value":{"intValue":"50"}}]}]}}]}]}]}`,
	New:     func(p *pipeline.Pipeline) ingest.Decoder { return &otlpMetrics{m: newMetrics(p), json: true} },
}

// otlpMetrics reads whole messages: a record of metrics stands for far more requests than one of spans, so what it costs
// to read matters little.
type otlpMetrics struct {
	m    *metrics
	json bool
}

var _ ingest.Decoder = (*otlpMetrics)(nil)

// Decode reads a batch of metrics. A batch that is none is one dead letter; a point or metric that is none is one of its own.
func (d *otlpMetrics) Decode(rec ingest.Record, emit func(signal.Event), reject func(ingest.DeadLetter)) {
	var batch metricspb.MetricsData
	if d.json {
		// The only ids in metrics are those of exemplars, which nobody reads here: protojson does.
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(rec.Value, &batch); err != nil {
			reject(ingest.DeadLetter{Reason: ingest.ReasonMalformed, Detail: "not OTLP/JSON of metrics"})
			return
		}
		if batch.ResourceMetrics == nil && !bytes.Contains(rec.Value, []byte(`"resourceMetrics"`)) {
			reject(ingest.DeadLetter{Reason: ingest.ReasonMalformed, Detail: "JSON without resourceMetrics"})
			return
		}
	} else if err := proto.Unmarshal(rec.Value, &batch); err != nil {
		// The library's text varies from build to build on purpose; a dead letter must not.
		reject(ingest.DeadLetter{Reason: ingest.ReasonMalformed, Detail: "not protobuf of OTLP metrics"})
		return
	} else if len(batch.ResourceMetrics) == 0 && len(batch.ProtoReflect().GetUnknown()) > 0 {
		reject(ingest.DeadLetter{Reason: ingest.ReasonMalformed, Detail: "protobuf, but no OTLP metrics"})
		return
	}
	d.m.begin(emit, reject)
	d.m.batch(&batch)
}
