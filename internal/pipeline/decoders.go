package pipeline

import "github.com/tocsin-project/tocsin/internal/signal"

// DecoderInfo says what a decoder can be used for.
type DecoderInfo struct {
	Name    string
	Summary string
	Streams []signal.Stream
	// Spans tells whether it reads spans, so that the keys of Requests mean something.
	Spans bool
	// Resource is where it finds a gauge's resource unless the file says otherwise; only decoders of metrics have it, and
	// the keys of Metrics mean something to them alone.
	Resource []string
	// Scraped tells whether its names are those of Prometheus' conventions rather than OpenTelemetry's.
	Scraped bool
}

// requestKeys tells whether the keys of Requests mean something: native events say themselves what they would say.
func (d *DecoderInfo) requestKeys(s signal.Stream) bool {
	return d.Spans || len(d.Resource) > 0 && s == signal.Requests
}

var (
	otelResource    = []string{"tocsin.resource", "k8s.pod.name", "host.name", "service.name"}
	metricStreams   = []signal.Stream{signal.Gauges, signal.Requests}
	scrapedResource = []string{"resource", "instance", "pod", "job"}
)

// Decoders are the names a file may give. Adding one takes three places: a line here, its file in ingest/decode, and
// its line in the list there.
var Decoders = []DecoderInfo{
	{Name: "json", Summary: "native events as JSON", Streams: signal.Streams},
	{Name: "otlp_proto", Summary: "OpenTelemetry spans as protobuf, as the Collector's Kafka exporter writes them", Streams: []signal.Stream{signal.Requests}, Spans: true},
	{Name: "otlp_json", Summary: "OpenTelemetry spans as OTLP/JSON, as the Collector's Kafka exporter writes them", Streams: []signal.Stream{signal.Requests}, Spans: true},
	{Name: "otlp_metrics_proto", Summary: "OpenTelemetry metrics as protobuf: gauges, or requests from duration histograms and counters, deltas or totals", Streams: metricStreams, Resource: otelResource},
	{Name: "otlp_metrics_json", Summary: "OpenTelemetry metrics as OTLP/JSON, read in the same way", Streams: metricStreams, Resource: otelResource},
	{Name: "prometheus", Summary: "metrics in Prometheus' text format: gauges, or requests from counters and histograms", Streams: metricStreams, Resource: scrapedResource, Scraped: true},
	{Name: "alertmanager", Summary: "alerts as Alertmanager's webhook and Prometheus send them", Streams: []signal.Stream{signal.Alerts}},
	{Name: "zendesk", Summary: "tickets from Zendesk's webhooks", Streams: []signal.Stream{signal.Tickets}},
	{Name: "intercom", Summary: "tickets from Intercom's webhooks", Streams: []signal.Stream{signal.Tickets}},
	{Name: "cdevents", Summary: "changes as CDEvents, bare or in a CloudEvents envelope", Streams: []signal.Stream{signal.Changes}},
	{Name: "cloudevents", Summary: "native events in CloudEvents envelopes", Streams: signal.Streams},
	{Name: "github", Summary: "changes from GitHub's webhooks deployment, deployment_status and workflow_run", Streams: []signal.Stream{signal.Changes}},
	{Name: "pagerduty", Summary: "changes in the form of PagerDuty's change events", Streams: []signal.Stream{signal.Changes}},
}

// DecoderByName finds an entry.
func DecoderByName(name string) (DecoderInfo, bool) {
	for _, d := range Decoders {
		if d.Name == name {
			return d, true
		}
	}
	return DecoderInfo{}, false
}
