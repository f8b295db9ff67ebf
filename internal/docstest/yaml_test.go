package docstest

import (
	"testing"

	"github.com/tocsin-project/tocsin/internal/app"
	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/respond/receivers"
	"github.com/tocsin-project/tocsin/internal/rule"
)

// readers parse a YAML block by what its fence says it is.
var readers = map[string]func(name string, data []byte) error{
	"rules": func(name string, data []byte) error {
		_, err := rule.Parse(name, data)
		return err
	},
	"catalogue": func(name string, data []byte) error {
		_, err := catalogue.Parse(name, data)
		return err
	},
	"pipeline": func(name string, data []byte) error {
		_, err := pipeline.Parse(name, data)
		return err
	},
	"routes": func(name string, data []byte) error {
		_, err := receivers.Load(name, data)
		return err
	},
	"config": func(name string, data []byte) error {
		_, err := app.ParseConfig(name, data)
		return err
	},
}

func TestYAMLBlocksAreValid(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range blocks(t, "yaml") {
		if _, ok := testsOf(b); ok {
			continue // they are run
		}
		read, ok := readers[b.what]
		if !ok {
			t.Errorf("%s: the fence says %q after yaml, which is none of the kinds of files", b, b.what)
			continue
		}
		seen[b.what] = true
		if err := read(b.String(), []byte(b.text)); err != nil {
			t.Errorf("%s: %v", b, err)
		}
	}
	for what := range readers {
		if !seen[what] {
			t.Errorf("no page shows a file of the kind %q", what)
		}
	}
}

func TestReadersRefuse(t *testing.T) {
	for what, read := range readers {
		if read("x", []byte("unknown_key: 1\ngroups: 5\n")) == nil && what != "catalogue" {
			t.Errorf("a broken file of the kind %q is accepted", what)
		}
	}
}
