package main

import (
	"slices"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The generator writes what the definitions of OTLP read, the same each time, and its truth is right.
func TestSpansAreTheTruth(t *testing.T) {
	for _, w := range workloads {
		w.Spans = 5_000
		g, again := newWorld(w, 1_800_000_000e9), newWorld(w, 1_800_000_000e9)
		got, bytes := truth{}, 0
		for g.more() {
			m := g.message()
			if !slices.Equal(m, again.message()) {
				t.Fatalf("%s: not the same again", w.Name)
			}
			bytes += len(m)
			var d tracepb.TracesData
			if err := proto.Unmarshal(m, &d); err != nil {
				t.Fatal(err)
			}
			for _, rs := range d.ResourceSpans {
				k := pathKey{}
				for _, a := range rs.Resource.Attributes {
					switch a.Key {
					case "service.name":
						k.Service = a.Value.GetStringValue()
					case "cloud.region":
						k.Region = a.Value.GetStringValue()
					}
				}
				for _, s := range rs.ScopeSpans[0].Spans {
					for _, a := range s.Attributes {
						switch a.Key {
						case "http.route":
							k.Route = a.Value.GetStringValue()
						case "http.request.method":
							k.Method = a.Value.GetStringValue()
						}
					}
					n := got[k]
					n.Total++
					if s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR {
						n.Failed++
					}
					got[k] = n
				}
			}
		}
		if len(got) != len(g.truth) {
			t.Errorf("%s: %d paths, %d by the truth", w.Name, len(got), len(g.truth))
		}
		for k, n := range g.truth {
			if got[k] != n {
				t.Errorf("%s: %v: %v, %v by the truth", w.Name, k, got[k], n)
			}
		}
		if per := bytes / w.Spans; per < 500 || per > 620 {
			t.Errorf("%s: %d bytes a span", w.Name, per)
		}
		a := aggregate{groups: map[string]*group{}}
		for x := newWorld(w, 1_800_000_000e9); x.more(); {
			a.record(x.message())
		}
		var n int64
		for _, gr := range a.groups {
			n += gr.total
		}
		if n != int64(w.Spans) {
			t.Errorf("%s: the floor counts %d spans", w.Name, n)
		}
	}
}
