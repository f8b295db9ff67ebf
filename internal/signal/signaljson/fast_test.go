package signaljson

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tocsin-project/tocsin/internal/signal"
)

var seeds = []string{
	`{"type":"request","time":"2026-09-13T08:43:00.123Z","service":"a","operation":"b","outcome":"failure","count":2,"latency_ms":1.5e3,"attributes":{"x":"y"},"attempt":3}`,
	`{ "time" : 1789292580000 , "service":"a","operation":"b","outcome":"success","attributes":{} }`,
	`{"time":"2026-09-13T08:43:00Z","resource":"r","metric":"m","value":-0.5,"limit":10}`,
	`{"value":01}`, `{"value":1.}`, `{"value":-}`, `{"value":1e}`, `{"value":.5}`, `{"value":0.5}`, `{"value":-01}`, `{"value":00}`, `{"value":1,}`, `{,}`, `{}`, `{"value":1}x`,
	`{"time":null}`, `{"time":1.0}`, `{"Time":1}`, `{"service":"\u0061"}`, `{"attributes":{"a":1}}`, `{"attributes":null}`, `{"value":1 2}`, `{"a":1}`, `{"value":1--2}`,
	`{"time":-1}`, `{"time":01}`, `{"time":"2026-09-13T08:43:00.1234567891Z"}`, `{"time":"2026-09-13T08:43:00,5Z"}`,
}

// FuzzPlain holds the quick reader to encoding/json: what it takes, it takes in the same way.
func FuzzPlain(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		same(t, s, plainRequest)
		same(t, s, plainGauge)
	})
}

func same[T any](t *testing.T, s string, plain func([]byte) (*T, bool)) {
	t.Helper()
	got, ok := plain([]byte(s))
	if !ok {
		return
	}
	var want T
	if err := json.Unmarshal([]byte(s), &want); err != nil {
		t.Fatalf("%q is taken, though: %v", s, err)
	}
	if diff := cmp.Diff(&want, got, cmp.AllowUnexported(timeJSON{})); diff != "" {
		t.Fatalf("%q (-encoding/json +plain):\n%s", s, diff)
	}
}

func TestOurOwnLinesArePlain(t *testing.T) {
	r, err := AppendTyped(nil, &signal.Request{Path: signal.Path{Service: "a", Operation: "/:b"}, Count: 2, Latency: 1234567, Attributes: signal.AttributesOf(signal.Attr{Name: "x", Value: "y"})})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := plainRequest(r); !ok {
		t.Errorf("%s is not plain", r)
	}
	g, err := AppendTyped(nil, &signal.Gauge{Resource: "r", Metric: "m", Value: 0.25, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := plainGauge(g); !ok {
		t.Errorf("%s is not plain", g)
	}
	if _, ok := plainRequest([]byte(strings.Replace(string(r), `"a"`, `"\u0061"`, 1))); ok {
		t.Error("an escape is plain")
	}
}
