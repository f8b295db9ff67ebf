package decode

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	runtimemetrics "runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// One target for each decoder, by its name, through the stage that the ingest loop uses: decoder, bounds and masks.
func FuzzJSON(f *testing.F)             { fuzzDecoder(f, "json") }
func FuzzOTLPProto(f *testing.F)        { fuzzDecoder(f, "otlp_proto") }
func FuzzOTLPJSON(f *testing.F)         { fuzzDecoder(f, "otlp_json") }
func FuzzOTLPMetricsProto(f *testing.F) { fuzzDecoder(f, "otlp_metrics_proto") }
func FuzzOTLPMetricsJSON(f *testing.F)  { fuzzDecoder(f, "otlp_metrics_json") }
func FuzzPrometheus(f *testing.F)       { fuzzDecoder(f, "prometheus") }
func FuzzAlertmanager(f *testing.F)     { fuzzDecoder(f, "alertmanager") }
func FuzzZendesk(f *testing.F)          { fuzzDecoder(f, "zendesk") }
func FuzzIntercom(f *testing.F)         { fuzzDecoder(f, "intercom") }
func FuzzCDEvents(f *testing.F)         { fuzzDecoder(f, "cdevents") }
func FuzzCloudEvents(f *testing.F)      { fuzzDecoder(f, "cloudevents") }
func FuzzGitHub(f *testing.F)           { fuzzDecoder(f, "github") }
func FuzzPagerDuty(f *testing.F)        { fuzzDecoder(f, "pagerduty") }

// fuzzedDecoders are those above; a decoder that is added needs a line there.
var fuzzedDecoders = []string{"json", "otlp_proto", "otlp_json", "otlp_metrics_proto", "otlp_metrics_json", "prometheus",
	"alertmanager", "zendesk", "intercom", "cdevents", "cloudevents", "github", "pagerduty"}

func TestEveryDecoderIsFuzzed(t *testing.T) {
	for _, e := range Entries {
		if !slices.Contains(fuzzedDecoders, e.Name) {
			t.Errorf("decoder %q has no fuzz target", e.Name)
		}
	}
}

const (
	fuzzHang  = 60 * time.Second // for one record of a few hundred KiB at most, on a busy machine
	fuzzSlow  = 5 * time.Second
	fuzzBytes = 256 << 10

	// What one record may make the stage allocate, whatever it holds: tables of the decoder, and a factor of its size.
	fuzzAllocBase   = 16 << 20
	fuzzAllocFactor = 4096
	fuzzEventBytes  = 512 << 10 // of one event written as JSON: a ticket's text, escaped
)

var fuzzAt = time.UnixMilli(1789288985000)

// fuzzSource is one pipeline that records are read by, with a reader that has read all records before.
type fuzzSource struct {
	ingest.Source
	old *ingest.Reader
}

// fuzzSources are the streams that a decoder gives, each as configured least and in ways that take other branches.
func fuzzSources(f *testing.F, decoder string) (out []fuzzSource) {
	d, ok := pipeline.DecoderByName(decoder)
	if !ok {
		f.Fatalf("no decoder %q", decoder)
	}
	options := []string{"", "max_age: 100y\nmax_ahead: 100y\nmax_record: 4KiB\nmask: {patterns: [{name: x, regexp: '[a-f]+[0-9]'}]}"}
	if d.Spans {
		options = append(options, walkOptions[1:]...)
	}
	if len(d.Resource) > 0 {
		options = append(options, "max_age: 100y\nresource: [host.name, instance, job, x]\nattributes: {a: [a, state], zone: [zone]}")
	}
	for _, s := range d.Streams {
		for _, o := range options {
			p, err := pipeline.Parse("p.yaml", fmt.Appendf(nil, "name: p\ntopic: t\nstream: %s\ndecoder: %s\n%s", s, decoder, o))
			if err != nil {
				f.Fatal(err)
			}
			source, err := Source(p)
			if err != nil {
				f.Fatal(err)
			}
			out = append(out, fuzzSource{source, source.Reader()})
		}
	}
	return out
}

// fuzzDecoder holds a decoder to what its partition relies on, whatever a record holds: it ends soon, allocates and gives
// no more than the record's size explains, gives the same again (from a reader just made and from one that has read
// much), gives only what the vocabulary and the pipeline allow, and says why of all else in the closed set of reasons.
func fuzzDecoder(f *testing.F, decoder string) {
	sources := fuzzSources(f, decoder)
	fuzzSeeds(f, decoder, func(value []byte) {
		for i := range sources {
			f.Add(uint8(i), value)
		}
	})
	f.Fuzz(func(t *testing.T, which uint8, value []byte) {
		if len(value) > fuzzBytes {
			return
		}
		s := sources[int(which)%len(sources)]
		hang := time.AfterFunc(fuzzHang, func() { panic(fmt.Sprintf("%s hangs on %q", decoder, value)) })
		defer hang.Stop()
		before, began := allocated(), time.Now()
		fresh := s.Reader()
		first := fuzzRead(t, s, fresh, value)
		took, bytes := time.Since(began), allocated()-before
		if limit := uint64(fuzzAllocBase + fuzzAllocFactor*len(value)); bytes > limit {
			t.Errorf("%d bytes allocated for a record of %d", bytes, len(value))
		}
		second := time.Now()
		again := fuzzRead(t, s, fresh, value)
		if took > fuzzSlow && time.Since(second) > fuzzSlow { // twice: a machine may be busy once
			t.Errorf("%s, then %s for a record of %d bytes", took, time.Since(second), len(value))
		}
		for _, again := range [][]string{again, fuzzRead(t, s, s.old, value)} {
			if !slices.Equal(first, again) {
				t.Fatalf("not the same again:\n%s\n%s", strings.Join(first, "\n"), strings.Join(again, "\n"))
			}
		}
	})
}

// fuzzRead reads a record and gives what came out, a line each.
func fuzzRead(t *testing.T, s fuzzSource, r *ingest.Reader, value []byte) (out []string) {
	p, events, letters := s.Pipeline, 0, 0
	r.Read(ingest.Record{Offset: 7, Time: fuzzAt, Value: value}, fuzzAt, func(e signal.Event) {
		line := Native(e)
		out = append(out, line)
		events++
		if e.Stream() != p.Stream {
			t.Fatalf("an event of %s", e.Stream())
		}
		if at := e.At(); at.Before(fuzzAt.Add(-p.MaxAge.Std())) || at.After(fuzzAt.Add(p.MaxAhead.Std())) {
			t.Fatalf("an event of %s", at)
		}
		if !strings.HasPrefix(line, "{") || len(line) > fuzzEventBytes {
			t.Fatalf("%d bytes: %.300s", len(line), line)
		}
		if r, ok := e.(*signal.Request); ok && (r.Path.Service == "" || r.Path.Operation == "" || r.Count < 1 ||
			r.Count > maxCount || r.Attempt < 1 || r.Outcome >= signal.NumOutcomes) {
			t.Fatalf("%+v", r)
		}
	}, func(d ingest.DeadLetter) {
		out = append(out, d.Reason+": "+d.Detail)
		letters++
		if !slices.Contains(ingest.Reasons, d.Reason) || d.Detail == "" || len(d.Payload) > ingest.MaxPayload || d.Offset != 7 ||
			!d.Time.Equal(fuzzAt) {
			t.Fatalf("%+v", d)
		}
	})
	if events > min(ingest.MaxEvents, len(value)) || letters > ingest.MaxDeadLetters+1 {
		t.Fatalf("%d events and %d dead letters of %d bytes", events, letters, len(value))
	}
	if len(value) == 0 && letters != 1 {
		t.Fatal("a record without a value is no event")
	}
	return out
}

var allocsMetric = []runtimemetrics.Sample{{Name: "/gc/heap/allocs:bytes"}}

func allocated() uint64 {
	runtimemetrics.Read(allocsMetric)
	return allocsMetric[0].Value.Uint64()
}

// fuzzSeeds gives the example of a decoder, the cases of its golden files, and what was captured for it where that lies
// beside the checkout.
func fuzzSeeds(f *testing.F, decoder string, add func([]byte)) {
	e, _ := ByName(decoder)
	text := func(s string) []byte {
		if e.Binary {
			return fromBase64(f, s)
		}
		return []byte(s)
	}
	add(nil)
	add(text(e.Example))
	files, err := filepath.Glob(filepath.Join("testdata", decoder, "*.txt"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no cases of %s: %v", decoder, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, c := range strings.Split(string(data), "\n> ") {
			in, _, _ := strings.Cut(c+"\n", "\n=\n")
			_, record, _ := strings.Cut(strings.TrimRight(in, "\n"), "\n")
			add(text(record))
		}
	}
	for _, value := range capturedFor(f, decoder) {
		add(value)
	}
}

func capturedFor(f *testing.F, decoder string) (out [][]byte) {
	root := os.DirFS(filepath.Join("..", "..", "..", "..", "shared", "data", "wire"))
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // nothing captured is there
		}
		for _, c := range captured {
			if ok, _ := path.Match(c.pattern, name); !ok {
				continue
			}
			for _, r := range c.read {
				if r.decoder == decoder {
					value, err := fs.ReadFile(root, name)
					if err == nil && len(value) < 16<<10 {
						out = append(out, value)
					}
					return err
				}
			}
			break
		}
		return nil
	})
	if err != nil {
		f.Fatal(err)
	}
	return out
}
