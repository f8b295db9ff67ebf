package pipeline

import (
	"errors"
	"io/fs"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// Whatever a file of pipelines holds, it is read within moments, in the same way again, and each mistake has its place.
func FuzzParse(f *testing.F) {
	shipped := os.DirFS("../../pipelines")
	names, err := fs.Glob(shipped, "*.yaml")
	if err != nil || len(names) == 0 {
		f.Fatalf("no pipelines: %v", err)
	}
	for _, name := range names {
		data, err := fs.ReadFile(shipped, name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, text := range []string{
		"name: p\ntopic: t\nstream: requests\ndecoder: otlp_proto\nroutes: [{match: \"GET /a*\", operation: a, access: write}]\n",
		"name: p\ntopics: [a, b]\nstream: gauges\ndecoder: prometheus\nmetrics: [\"a_*\"]\nresource: [instance]\nmax_age: 100y\n",
		"name: p\ntopic: t\nstream: tickets\ndecoder: json\nmask: {patterns: [{name: x, regexp: '(a|b)*'}]}\nmax_record: 64KiB\n",
		"name: &a p\ntopic: *a\n",
		"outcomes: [{status: \"5*\", error: \"[a-z]?\", outcome: rejected}]\nreads: {methods: [GET], verbs: [Get]}\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 64<<10 {
			return
		}
		hang := time.AfterFunc(time.Minute, func() { panic("it hangs") })
		defer hang.Stop()
		p, err := Parse("p.yaml", data)
		again, errAgain := Parse("p.yaml", data)
		if (err == nil) != (errAgain == nil) || err != nil && err.Error() != errAgain.Error() {
			t.Fatalf("not the same again: %v, %v", err, errAgain)
		}
		if err != nil {
			var list strictyaml.Errors
			if !errors.As(err, &list) || len(list) == 0 {
				t.Fatalf("not a list of mistakes: %T %v", err, err)
			}
			for _, e := range list {
				if e.File != "p.yaml" || e.Line < 1 || e.Col < 1 || e.Msg == "" {
					t.Errorf("a mistake without a place: %#v", e)
				}
			}
			return
		}
		if !reflect.DeepEqual(p, again) {
			t.Errorf("not the same again:\n%+v\n%+v", p, again)
		}
		if _, ok := DecoderByName(p.Decoder); !ok || p.Name == "" || len(p.Revision) != 12 || p.Revision != again.Revision {
			t.Errorf("accepted: %+v", p)
		}
		if _, err := NewSet([]*Pipeline{p}); err != nil && !errors.As(err, new(strictyaml.Errors)) {
			t.Errorf("a set of it: %T %v", err, err)
		}
	})
}
