package ingest

import (
	"errors"
	"fmt"

	"github.com/tocsin-project/tocsin/internal/ingest/mask"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Decoder turns records into events. It is used by one goroutine and may keep scratch memory between calls; what it
// gives depends on the record and the pipeline only. ingest/decode has the implementations.
type Decoder interface {
	// Decode calls emit for each event in the record and reject for each part that is none; of a dead letter it sets
	// Reason and Detail, and Payload where a part of the record says more than the whole. Events may be reused: they are
	// valid during the call of emit only. A record without any event that is meant for Tocsin calls neither.
	Decode(rec Record, emit func(signal.Event), reject func(DeadLetter))
}

// Source is a pipeline ready to be read.
type Source struct {
	Pipeline   *pipeline.Pipeline
	NewDecoder func() Decoder // called once for each partition
	Masker     *mask.Masker
}

// NewSource puts a pipeline and its decoder together.
func NewSource(p *pipeline.Pipeline, newDecoder func() Decoder) (Source, error) {
	if newDecoder == nil {
		return Source{}, errors.New("a source needs a decoder")
	}
	patterns := make([]mask.Pattern, len(p.Mask.Patterns))
	for i, m := range p.Mask.Patterns {
		patterns[i] = mask.Pattern{Name: m.Name, Regexp: m.Regexp}
	}
	m, err := mask.New(patterns...)
	if err != nil {
		return Source{}, fmt.Errorf("pipeline %q: %w", p.Name, err)
	}
	return Source{Pipeline: p, NewDecoder: newDecoder, Masker: m}, nil
}
