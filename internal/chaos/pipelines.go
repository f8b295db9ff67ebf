package chaos

// pipelineTexts are the pipelines that the members read by, one for each stream. The topics are named as the streams.
var pipelineTexts = map[string]string{
	spans: `name: spans
topic: spans
stream: requests
decoder: otlp_proto
attributes: {region: [cloud.region]}
`,
	gauges: `name: gauges
topic: gauges
stream: gauges
decoder: json
`,
	tickets: `name: tickets
topic: tickets
stream: tickets
decoder: json
`,
}
