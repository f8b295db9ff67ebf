package decode

import (
	"fmt"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/pipeline"
)

// Entry is one decoder with what a reader of the documentation wants to know of it.
type Entry struct {
	Name    string // as in pipeline.Decoders
	Summary string
	Example string // a record's value; base64 where Binary
	Binary  bool
	New     func(p *pipeline.Pipeline) ingest.Decoder
	// Many makes decoders for the partitions of a pipeline, where these share what they learn; else nil.
	Many func(p *pipeline.Pipeline) func() ingest.Decoder
}

// Entries lists all decoders. testdata has a folder for each.
var Entries = []Entry{
	jsonEntry,
	otlpProtoEntry,
	otlpJSONEntry,
	otlpMetricsProtoEntry,
	otlpMetricsJSONEntry,
	prometheusEntry,
	alertmanagerEntry,
	zendeskEntry,
	intercomEntry,
	cdeventsEntry,
	cloudeventsEntry,
	githubEntry,
	pagerdutyEntry,
}

// ByName finds an entry.
func ByName(name string) (Entry, bool) {
	for _, e := range Entries {
		if e.Name == name {
			return e, true
		}
	}
	return Entry{}, false
}

// Source makes a pipeline ready to be read.
func Source(p *pipeline.Pipeline) (ingest.Source, error) {
	e, ok := ByName(p.Decoder)
	if !ok {
		return ingest.Source{}, fmt.Errorf("pipeline %q: there is no decoder %q", p.Name, p.Decoder)
	}
	if e.Many != nil {
		return ingest.NewSource(p, e.Many(p))
	}
	return ingest.NewSource(p, func() ingest.Decoder { return e.New(p) })
}

// Sources makes all pipelines of a set ready to be read.
func Sources(set *pipeline.Set) ([]ingest.Source, error) {
	out := make([]ingest.Source, 0, len(set.Pipelines))
	for _, p := range set.Pipelines {
		s, err := Source(p)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}
