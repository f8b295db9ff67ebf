package pipeline

import (
	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// Pipeline is one file: what is read from Kafka and what it means.
type Pipeline struct {
	Name    string        `yaml:"name" strict:"required"`
	Topic   string        `yaml:"topic"`
	Topics  []string      `yaml:"topics"` // instead of topic, where several carry the same
	Stream  signal.Stream `yaml:"stream" strict:"required"`
	Decoder string        `yaml:"decoder" strict:"required"`

	// MaxAge and MaxAhead bound event times relative to the record's own timestamp: what is outside becomes a dead letter.
	MaxAge   strictyaml.Duration `yaml:"max_age"`
	MaxAhead strictyaml.Duration `yaml:"max_ahead"`
	// MaxRecord bounds the size of a record's value.
	MaxRecord Size `yaml:"max_record"`

	Requests Requests `yaml:",inline"`
	Metrics  Metrics  `yaml:",inline"`
	Mask     Mask     `yaml:"mask"`

	// Revision names the content of the file. Rows decoded under different revisions may differ.
	Revision string `yaml:"-"`
	File     string `yaml:"-"`

	Places strictyaml.Positions `yaml:"-"`
}

// Requests says how spans, and in part native request events, become requests. All lists of attribute names are in
// order of preference: the first that has a value counts, on the span before the resource. The name "span.name" is the
// span's own name.
type Requests struct {
	Service   []string `yaml:"service"`
	Operation []string `yaml:"operation"`
	Account   []string `yaml:"account"`
	// Attributes are the dimensions kept in cells: name → where it comes from. For native events an empty mapping keeps all.
	Attributes map[string][]string `yaml:"attributes"`
	// Kinds of spans that are requests.
	Kinds []SpanKind `yaml:"kinds"`
	// Routes rename operations; the first that matches counts.
	Routes []Route `yaml:"routes"`
	// Reads tells reads from writes.
	Reads Reads `yaml:"reads"`
	// CollapseIDs puts placeholders for ids in operations that no route names.
	CollapseIDs bool `yaml:"collapse_ids"`
	// Limits bound how many values are counted by name.
	Limits Limits `yaml:"limits"`
	// Outcomes overrule the built-in classification; the first that matches counts.
	Outcomes []OutcomeRule `yaml:"outcomes"`
	// Drop leaves requests out. Of those that it leaves, Sample keeps a part that then counts for the whole; the first rule
	// that matches counts.
	Drop   []DropRule   `yaml:"drop"`
	Sample []SampleRule `yaml:"sample"`
}

// Metrics says which metrics are read, and whose they are.
type Metrics struct {
	// Names are the metrics that are read; others are passed over in silence. Without it gauges are all read, and requests
	// come from the durations that OpenTelemetry's conventions name.
	Names []Glob `yaml:"metrics"`
	// Resource is where a gauge's resource is found, in order of preference, on the point before its resource.
	Resource []string `yaml:"resource"`
}

// Route maps requests onto an operation, and may say whether they read.
type Route struct {
	Service   Glob           `yaml:"service"`
	Match     Glob           `yaml:"match" strict:"required"` // "METHOD operation" or operation alone
	Operation string         `yaml:"operation"`               // "" keeps the name
	Access    *signal.Access `yaml:"access"`

	Places strictyaml.Positions `yaml:"-"`
}

// Reads names what only reads. What cannot be told to be a read is a write.
type Reads struct {
	Methods []string `yaml:"methods"` // HTTP methods
	Verbs   []string `yaml:"verbs"`   // first words of RPC methods
}

// OutcomeRule overrules how a request is judged. A rule with several conditions needs all of them.
type OutcomeRule struct {
	Service   Glob           `yaml:"service"`
	Operation Glob           `yaml:"operation"`
	Status    Glob           `yaml:"status"` // protocol status as text: 404, UNAVAILABLE
	Error     Glob           `yaml:"error"`  // error.type
	Outcome   signal.Outcome `yaml:"outcome" strict:"required"`

	Places strictyaml.Positions `yaml:"-"`
}

// Limits are for each service: the values of one attribute, and the operations. What is more is counted together. 0 is
// no limit.
type Limits struct {
	Values     int `yaml:"values"`
	Operations int `yaml:"operations"`

	Places strictyaml.Positions `yaml:"-"`
}

// DropRule tells requests that are not counted. One with several conditions needs all of them.
type DropRule struct {
	Service    Glob            `yaml:"service"`
	Operation  Glob            `yaml:"operation"` // as it is counted
	Access     *signal.Access  `yaml:"access"`
	Status     Glob            `yaml:"status"`
	Error      Glob            `yaml:"error"`
	Outcome    *signal.Outcome `yaml:"outcome"`
	Attributes map[string]Glob `yaml:"attributes"` // as they are counted

	Places strictyaml.Positions `yaml:"-"`
}

// SampleRule keeps a part of the requests that it matches.
type SampleRule struct {
	Service    Glob            `yaml:"service"`
	Operation  Glob            `yaml:"operation"`
	Access     *signal.Access  `yaml:"access"`
	Status     Glob            `yaml:"status"`
	Error      Glob            `yaml:"error"`
	Outcome    *signal.Outcome `yaml:"outcome"`
	Attributes map[string]Glob `yaml:"attributes"`
	Keep       float64         `yaml:"keep" strict:"required"` // which part, above 0 and below 1

	Places strictyaml.Positions `yaml:"-"`
}

// Mask says what is taken out of ticket texts and dead letters besides what always is.
type Mask struct {
	Patterns []MaskPattern `yaml:"patterns"`
}

// MaskPattern is one more kind of secret; its name stands in its place.
type MaskPattern struct {
	Name   string `yaml:"name" strict:"required"`
	Regexp string `yaml:"regexp" strict:"required"`

	Places strictyaml.Positions `yaml:"-"`
}

// SpanKind is a kind of span that counts as a request.
type SpanKind string

// UnmarshalText reads the word used in files.
func (k *SpanKind) UnmarshalText(text []byte) (err error) {
	*k, err = strictyaml.Enum("kind of span", text, KindServer, KindConsumer, KindClient, KindProducer, KindInternal)
	return err
}

// The kinds of spans.
const (
	KindServer   SpanKind = "server"
	KindConsumer SpanKind = "consumer"
	KindClient   SpanKind = "client"
	KindProducer SpanKind = "producer"
	KindInternal SpanKind = "internal"
)

// AllTopics are the topics of the pipeline, whichever way they were given.
func (p *Pipeline) AllTopics() []string {
	if p.Topic != "" {
		return append([]string{p.Topic}, p.Topics...)
	}
	return p.Topics
}
