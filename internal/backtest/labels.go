package backtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// Labels is the truth beside a recording. It is only ever read to score, never by the detector.
type Labels struct {
	Incidents []Label        `yaml:"incidents"`
	Quiet     []Span         `yaml:"quiet"`
	Extra     map[string]any `yaml:",inline"`
}

// Label is one true incident; any part may be missing.
type Label struct {
	ID    string         `yaml:"id"`
	Start time.Time      `yaml:"start"`
	End   time.Time      `yaml:"end"`
	Scope LabelScope     `yaml:"scope"`
	Cause LabelCause     `yaml:"cause"`
	Extra map[string]any `yaml:",inline"`
}

// LabelScope is where it was felt.
type LabelScope struct {
	Service    string            `yaml:"service"`
	Operation  string            `yaml:"operation"`
	Access     string            `yaml:"access"`
	Area       string            `yaml:"area"`
	Attributes map[string]string `yaml:"attributes"`
	Extra      map[string]any    `yaml:",inline"`
}

// LabelCause is what was at fault.
type LabelCause struct {
	Service    string            `yaml:"service"`
	Resource   string            `yaml:"resource"`
	Change     string            `yaml:"change"`
	Attributes map[string]string `yaml:"attributes"`
	Extra      map[string]any    `yaml:",inline"`
}

// Span is a stretch of time in which nothing was wrong.
type Span struct {
	From time.Time `yaml:"from"`
	To   time.Time `yaml:"to"`
}

// ReadLabels reads labels.yaml of a recording; nil where there is none.
func ReadLabels(folder string) (*Labels, error) {
	name := filepath.Join(folder, "labels.yaml")
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading labels: %w", err)
	}
	var l Labels
	if err := strictyaml.Decode(name, data, &l); err != nil {
		return nil, err
	}
	return &l, nil
}
