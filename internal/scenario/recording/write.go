package recording

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
	"go.yaml.in/yaml/v3"

	"github.com/tocsin-project/tocsin/internal/scenario"
	"github.com/tocsin-project/tocsin/internal/signal/signaljson"
)

// Write plays the scenario for a seed into a new recording: events.jsonl.zst, catalogue.yaml and labels.yaml. The folder
// is made if need be; a recording that is there is replaced. It gives the truth of what was written.
func Write(dir string, s *scenario.Scenario, seed int64) (*scenario.Truth, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("write recording: %w", err)
	}
	g := scenario.NewGenerator(s, seed)
	if err := writeEvents(filepath.Join(dir, eventsFile+".zst"), g); err != nil {
		return nil, fmt.Errorf("write recording: %w", err)
	}
	labels, err := yaml.Marshal(g.Truth().Labels)
	if err != nil {
		return nil, fmt.Errorf("write recording: encode labels: %w", err)
	}
	for name, data := range map[string][]byte{catalogueFile: s.Catalogue, labelsFile: labels} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return nil, fmt.Errorf("write recording: %w", err)
		}
	}
	return g.Truth(), nil
}

func writeEvents(name string, g *scenario.Generator) (err error) {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	z, err := zstd.NewWriter(file, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, z.Close()) }()
	out := bufio.NewWriterSize(z, 256<<10)
	var line []byte
	for {
		slice, ok := g.Next()
		if !ok {
			return out.Flush()
		}
		for e := range slice.Events() {
			if line, err = signaljson.AppendTyped(line[:0], e); err != nil {
				return err
			}
			if _, err = out.Write(append(line, '\n')); err != nil {
				return err
			}
		}
	}
}
