package decode

import (
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/pipelines"
)

var update = flag.Bool("update", false, "write golden files anew")

func parse(t testing.TB, text string) *pipeline.Pipeline {
	t.Helper()
	p, err := pipeline.Parse("p.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func minimal(t testing.TB, stream signal.Stream, decoder, more string) *pipeline.Pipeline {
	return parse(t, fmt.Sprintf("name: p\ntopic: t\nstream: %s\ndecoder: %s\n%s", stream, decoder, more))
}

func fromBase64(t testing.TB, s string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// run decodes one record and prints what comes out, a line each.
func run(t testing.TB, p *pipeline.Pipeline, value []byte) []string {
	t.Helper()
	e, ok := ByName(p.Decoder)
	if !ok {
		t.Fatalf("no decoder %q", p.Decoder)
	}
	var lines []string
	e.New(p).Decode(ingest.Record{Time: time.UnixMilli(1789288985000), Value: value},
		func(e signal.Event) { lines = append(lines, Native(e)) },
		func(d ingest.DeadLetter) { lines = append(lines, "dead letter "+d.Reason+": "+d.Detail) })
	return lines
}

func TestDecodersAndNamesAgree(t *testing.T) {
	var ours, theirs []string
	for _, e := range Entries {
		ours = append(ours, e.Name)
		if e.Summary == "" || e.Example == "" || e.New == nil {
			t.Errorf("decoder %q says too little of itself", e.Name)
		}
		if files, _ := filepath.Glob(filepath.Join("testdata", e.Name, "*")); len(files) == 0 {
			t.Errorf("decoder %q has no testdata", e.Name)
		}
	}
	for _, d := range pipeline.Decoders {
		theirs = append(theirs, d.Name)
		if _, ok := ByName(d.Name); !ok {
			t.Errorf("pipelines may name decoder %q, which does not exist", d.Name)
		}
	}
	if !slices.Equal(ours, theirs) {
		t.Errorf("decoders %v, names %v", ours, theirs)
	}
}

// streamOf is the stream of that name if the decoder gives it, else the first that it gives.
func streamOf(t testing.TB, decoder, name string) signal.Stream {
	t.Helper()
	d, ok := pipeline.DecoderByName(decoder)
	if !ok {
		t.Fatalf("no decoder %q", decoder)
	}
	if s := signal.Stream(name); slices.Contains(d.Streams, s) {
		return s
	}
	return d.Streams[0]
}

// exampleStreams are the streams of examples that are not of the decoder's first.
var exampleStreams = map[string]string{"cloudevents": "changes", "otlp_metrics_json": "gauges"}

func TestExamplesDecode(t *testing.T) {
	for _, e := range Entries {
		value := []byte(e.Example)
		if e.Binary {
			value = fromBase64(t, e.Example)
		}
		if got := run(t, minimal(t, streamOf(t, e.Name, exampleStreams[e.Name]), e.Name, ""), value); len(got) != 1 || strings.HasPrefix(got[0], "dead letter") {
			t.Errorf("%s: %v", e.Name, got)
		}
	}
}

func TestShippedPipelines(t *testing.T) {
	set, err := pipeline.Load(pipelines.FS)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Sources(set); err != nil {
		t.Fatal(err)
	}
	for _, topic := range []string{"otlp_spans", "tocsin.requests", "tocsin.gauges", "tocsin.tickets", "tocsin.changes", "tocsin.alerts"} {
		if set.ByTopic(topic) == nil {
			t.Errorf("nobody reads %s", topic)
		}
	}
	results, err := RunTests(pipelines.FS)
	if err != nil {
		t.Fatal(err)
	}
	if len(results) < 15 {
		t.Errorf("only %d tests", len(results))
	}
	for _, r := range results {
		if r.Diff != "" {
			t.Errorf("%s: %s\n%s", r.Pos, r.Name, r.Diff)
		}
	}
}

// Files in testdata/<decoder>: a case begins with "> options of the pipeline" or "> " and a record's text follows; after
// "=" stands what comes out. -update writes that part.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.ToSlash(file), func(t *testing.T) { golden(t, file) })
	}
}

func golden(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	decoder := filepath.Base(filepath.Dir(file))
	stream := streamOf(t, decoder, strings.TrimSuffix(filepath.Base(file), ".txt"))
	var out strings.Builder
	for _, c := range strings.Split(strings.TrimPrefix(string(data), "> "), "\n> ") {
		in, _, _ := strings.Cut(c+"\n", "\n=\n")
		options, record, _ := strings.Cut(strings.TrimRight(in, "\n"), "\n")
		name, options, _ := strings.Cut(options, " | ")
		value := []byte(record)
		if e, _ := ByName(decoder); e.Binary {
			value = fromBase64(t, record)
		}
		p := minimal(t, stream, decoder, strings.ReplaceAll(options, " ; ", "\n"))
		if options != "" {
			name += " | " + options
		}
		fmt.Fprintf(&out, "> %s\n%s\n=\n%s\n\n", name, record, strings.Join(run(t, p, value), "\n"))
	}
	got := strings.TrimRight(out.String(), "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != string(data) {
		t.Errorf("%s differs; with -update it is written anew:\n%s", file, strings.Join(difference(strings.Split(string(data), "\n"), strings.Split(got, "\n")), "\n"))
	}
}
