package timelinetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

func transition(rule string, at time.Time, from, to incident.FindingState, attrs ...signal.Attr) incident.Transition {
	k := incident.FindingKey{Rule: rule, Service: "a", Attributes: signal.AttributesOf(attrs...)}
	return incident.Transition{At: at, From: from, Finding: incident.Finding{Key: k, Rule: rule, Kind: "failure_rate", State: to, ActiveAt: at, Value: 0.5}}
}

// logSays holds what a new leader is told of findings and incidents, with and without a checkpoint.
func logSays(t *testing.T, s Subject) {
	d := lead(t, s)
	k := key("a", "x", signal.Write)
	slice := []signal.Attr{{Name: "site", Value: "iad"}, {Name: "az", Value: "1"}, {Name: "model", Value: "x"}}
	over := event("over", 2, at(0))
	over.After.State = incident.Resolved
	high := transition("High", at(10), incident.Pending, incident.Firing)
	high.Finding.Kind = "high_impact"
	early := []incident.Transition{
		transition("R", at(10), incident.Inactive, incident.Pending, slice...), transition("R", at(10), incident.Pending, incident.Firing), transition("Q", at(10), incident.Inactive, incident.Pending), high,
	}
	late := []incident.Transition{transition("R", at(7300), incident.Pending, incident.Firing, slice...), transition("R", at(7300), incident.Firing, incident.Unknown)}
	for n, o := range []detect.Outputs{
		{Transitions: early, Events: []incident.Event{event("open", 1, at(0)), event("over", 1, at(0)), over}},
		{Checkpoint: []byte("state")},
		{Transitions: late, Events: []incident.Event{event("open", 2, at(7300)), event("new", 1, at(7300))}},
	} {
		s.Feed(t, Rows{Cells: []signal.Cell{cell(3600*n, k, uint64(n)+1, 0)}})
		tick := d.tick()
		tick.From, tick.To = at(3600*n), at(3600*(n+1))
		d.commit(d.claim(tick).Tick, o)
	}
	d = lead(t, s)
	r := d.resume()
	findings := func(want []incident.Transition, got []incident.Transition) {
		t.Helper()
		by := map[incident.FindingKey]incident.Transition{}
		for _, x := range got {
			x.Finding.Key.Rule = x.Finding.Rule
			by[x.Finding.Key] = x
		}
		if len(by) != len(want) || len(by) != len(got) {
			t.Errorf("%d findings, want %d: %+v", len(got), len(want), got)
		}
		for _, w := range want {
			if g := by[w.Finding.Key]; !cmp.Equal(g.Finding.State, w.Finding.State) || !g.At.Equal(w.At) || g.From != w.From || !g.Finding.ActiveAt.Equal(w.Finding.ActiveAt) {
				t.Errorf("finding %+v, want %+v", g, w)
			}
		}
	}
	newest := func(want map[string]uint64, got []incident.Event) {
		t.Helper()
		by := map[string]uint64{}
		for _, e := range got {
			by[e.Incident] = e.Sequence
			if e.After.ID != e.Incident {
				t.Errorf("event %+v is without its incident", e)
			}
		}
		same(t, "incidents", want, by)
	}
	findings(late, r.Findings)
	newest(map[string]uint64{"open": 2, "new": 1}, r.Incidents)

	r, err := d.line.Recall(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if r.Checkpoint != nil || r.Unfinished || r.CheckpointTick != 2 || len(r.Ticks) != 1 || r.Ticks[0].Tick.Number != 3 {
		t.Errorf("recalls from tick %d, %d ticks, checkpoint %q; want the third alone", r.CheckpointTick, len(r.Ticks), r.Checkpoint)
	} else {
		same(t, "cells of the last hour", []signal.Cell{cell(7200, k, 3, 0)}, r.Ticks[0].Cells)
	}
	findings(append(late, early[2]), r.Findings)
	newest(map[string]uint64{"open": 2, "new": 1, "over": 2}, r.Incidents)
	if r, err = d.line.Recall(t.Context(), 24*time.Hour); err != nil || len(r.Ticks) != 3 || r.CheckpointTick != 0 {
		t.Errorf("recalls %d ticks after %d: %v; want all", len(r.Ticks), r.CheckpointTick, err)
	}
}

func sourcesKept(t *testing.T, s Subject) {
	d := lead(t, s)
	want := detect.Source{Kind: detect.SourceRules, Revision: "r1", Files: map[string]string{"b/two.yaml": "it's\n\\n \"β\"", "a.yaml": ""}}
	for range 2 {
		if err := d.line.KeepSource(t.Context(), want); err != nil {
			t.Fatal(err)
		}
	}
	for _, other := range []detect.Source{{Kind: detect.SourceRules, Revision: "r2", Files: map[string]string{"a.yaml": "x"}}, {Kind: detect.SourceCatalogue, Revision: "r1", Files: map[string]string{"c": "y"}}} {
		if err := d.line.KeepSource(t.Context(), other); err != nil {
			t.Fatal(err)
		}
	}
	got, ok, err := lead(t, s).line.Source(t.Context(), detect.SourceRules, "r1")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	same(t, "source", want, got)
	if got, ok, err := d.line.Source(t.Context(), detect.SourceCatalogue, "r2"); err != nil || ok {
		t.Errorf("%+v %v %v of a revision that was never kept", got, ok, err)
	}
}
