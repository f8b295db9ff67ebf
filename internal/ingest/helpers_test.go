package ingest

import (
	"testing"

	"github.com/tocsin-project/tocsin/internal/pipeline"
)

func testPipeline(t *testing.T) *pipeline.Pipeline {
	t.Helper()
	p, err := pipeline.Parse("p.yaml", []byte("name: g\ntopic: g\nstream: gauges\ndecoder: json\n"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}
