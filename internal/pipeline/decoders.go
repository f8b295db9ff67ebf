package pipeline

import "github.com/tocsin-project/tocsin/internal/signal"

// DecoderInfo says what a decoder can be used for.
type DecoderInfo struct {
	Name    string
	Summary string
	Streams []signal.Stream
	// Spans tells whether it reads spans, so that the keys of Spans mean something.
	Spans bool
}

// Decoders are the names a file may give. Adding one takes three places: a line here, its file in ingest/decode, and
// its line in the list there.
var Decoders = []DecoderInfo{
	{Name: "json", Summary: "native events as JSON", Streams: signal.Streams},
	{Name: "otlp_proto", Summary: "OpenTelemetry spans as protobuf, as the Collector's Kafka exporter writes them", Streams: []signal.Stream{signal.Requests}, Spans: true},
	{Name: "otlp_json", Summary: "OpenTelemetry spans as OTLP/JSON, as the Collector's Kafka exporter writes them", Streams: []signal.Stream{signal.Requests}, Spans: true},
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
