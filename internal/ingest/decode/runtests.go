package decode

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/signal/signaljson"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// Result is the outcome of one test of a pipeline.
type Result struct {
	Name string
	Pos  strictyaml.Pos
	// Diff is empty if the test passed; else what was expected (-) and what came (+), a line each.
	Diff string
}

// testFile is a *_test.yaml: records in, events out.
type testFile struct {
	Pipeline string     `yaml:"pipeline"` // file name; by default that of the test without _test
	Tests    []testCase `yaml:"tests" strict:"required"`
}

type testCase struct {
	Name        string           `yaml:"name" strict:"required"`
	Record      testRecord       `yaml:"record" strict:"required"`
	Events      []map[string]any `yaml:"events"` // native events, what is at its default may be left out
	DeadLetters []testLetter     `yaml:"dead_letters"`

	Pos strictyaml.Pos `yaml:"-"`
}

// testRecord is a record's value in one of four forms.
type testRecord struct {
	Time   time.Time `yaml:"time" strict:"required"` // the record's timestamp
	Text   *string   `yaml:"text"`
	JSON   any       `yaml:"json"`
	Base64 *string   `yaml:"base64"`
	File   string    `yaml:"file"` // beside the test

	Pos strictyaml.Pos `yaml:"-"`
}

type testLetter struct {
	Reason string `yaml:"reason" strict:"required"`
	Detail string `yaml:"detail"` // a part of it
}

// RunTests runs all tests of a folder of pipelines. The error is about files that cannot be read; failed tests are
// results.
func RunTests(fsys fs.FS) ([]Result, error) {
	names, err := fs.Glob(fsys, "*_test.yaml")
	if err != nil {
		return nil, fmt.Errorf("list tests: %w", err)
	}
	var out []Result
	var errs strictyaml.Errors
	for _, name := range names {
		results, err := runFile(fsys, name)
		errs.Add(strictyaml.Pos{File: name}, err)
		out = append(out, results...)
	}
	return out, errs.Err()
}

func runFile(fsys fs.FS, name string) ([]Result, error) {
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("read test: %w", err)
	}
	f := testFile{Pipeline: strings.TrimSuffix(path.Base(name), "_test.yaml") + ".yaml"}
	if err := strictyaml.Decode(name, data, &f); err != nil {
		return nil, err
	}
	if data, err = fs.ReadFile(fsys, f.Pipeline); err != nil {
		return nil, fmt.Errorf("read the pipeline of the test: %w", err)
	}
	p, err := pipeline.Parse(f.Pipeline, data)
	if err != nil {
		return nil, err
	}
	source, err := Source(p)
	if err != nil {
		return nil, err
	}
	var out []Result
	for i := range f.Tests {
		t := &f.Tests[i]
		diff, err := t.run(fsys, source)
		if err != nil {
			return out, err
		}
		out = append(out, Result{Name: path.Base(name) + ": " + t.Name, Pos: t.Pos, Diff: diff})
	}
	return out, nil
}

func (t *testCase) run(fsys fs.FS, source ingest.Source) (diff string, err error) {
	value, err := t.Record.value(fsys)
	if err != nil {
		return "", err
	}
	want := []string{}
	for _, e := range t.Events {
		lines, err := nativeLines(e, source.Pipeline.Stream)
		if err != nil {
			return "", t.Pos.Errorf("an expected event is none: %v", err)
		}
		want = append(want, lines...)
	}
	var got []string
	var letters []ingest.DeadLetter
	source.Reader().Read(ingest.Record{Time: t.Record.Time, Value: value}, t.Record.Time,
		func(e signal.Event) { got = append(got, Native(e)) },
		func(d ingest.DeadLetter) { letters = append(letters, d) })
	lines := difference(want, got)
	for i := range max(len(t.DeadLetters), len(letters)) {
		switch {
		case i >= len(letters):
			lines = append(lines, "- dead letter "+t.DeadLetters[i].Reason)
		case i >= len(t.DeadLetters):
			lines = append(lines, fmt.Sprintf("+ dead letter %s: %s", letters[i].Reason, letters[i].Detail))
		case letters[i].Reason != t.DeadLetters[i].Reason || !strings.Contains(letters[i].Detail, t.DeadLetters[i].Detail):
			lines = append(lines, fmt.Sprintf("- dead letter %s: %s", t.DeadLetters[i].Reason, t.DeadLetters[i].Detail),
				fmt.Sprintf("+ dead letter %s: %s", letters[i].Reason, letters[i].Detail))
		}
	}
	return strings.Join(lines, "\n"), nil
}

func (r *testRecord) value(fsys fs.FS) ([]byte, error) {
	given := 0
	for _, set := range []bool{r.Text != nil, r.JSON != nil, r.Base64 != nil, r.File != ""} {
		if set {
			given++
		}
	}
	if given != 1 {
		return nil, r.Pos.Errorf("a record needs one of text, json, base64 and file")
	}
	switch {
	case r.Text != nil:
		return []byte(*r.Text), nil
	case r.JSON != nil:
		b, err := json.Marshal(r.JSON)
		if err != nil {
			return nil, r.Pos.Errorf("json: %v", err)
		}
		return b, nil
	case r.Base64 != nil:
		b, err := base64.StdEncoding.DecodeString(*r.Base64)
		if err != nil {
			return nil, r.Pos.Errorf("base64: %v", err)
		}
		return b, nil
	}
	b, err := fs.ReadFile(fsys, r.File)
	if err != nil {
		return nil, r.Pos.Errorf("file: %v", err)
	}
	return b, nil
}

// nativeLines reads an expected event as the json decoder would, so that defaults are the same on both sides.
func nativeLines(event map[string]any, s signal.Stream) (lines []string, err error) {
	b, err := json.Marshal(event)
	if err != nil {
		return nil, err
	}
	err = signaljson.Decode(b, s, func(e signal.Event) { lines = append(lines, Native(e)) })
	return lines, err
}

// difference compares events in order, field by field where both sides have one.
func difference(want, got []string) (lines []string) {
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(got):
			lines = append(lines, "- "+want[i])
		case i >= len(want):
			lines = append(lines, "+ "+got[i])
		case want[i] != got[i]:
			lines = append(lines, fmt.Sprintf("  event %d:", i+1))
			lines = append(lines, fields(want[i], got[i])...)
		}
	}
	return lines
}

func fields(want, got string) (lines []string) {
	w, g := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if json.Unmarshal([]byte(want), &w) != nil || json.Unmarshal([]byte(got), &g) != nil {
		return []string{"- " + want, "+ " + got}
	}
	names := map[string]bool{}
	for n := range w {
		names[n] = true
	}
	for n := range g {
		names[n] = true
	}
	for _, n := range sorted(names) {
		if string(w[n]) == string(g[n]) {
			continue
		}
		if w[n] != nil {
			lines = append(lines, fmt.Sprintf("-   %s: %s", n, w[n]))
		}
		if g[n] != nil {
			lines = append(lines, fmt.Sprintf("+   %s: %s", n, g[n]))
		}
	}
	return lines
}
