package ingest

import (
	"fmt"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// What has not been seen for a day makes room: versions of a service come and go.
func TestForgottenValuesMakeRoom(t *testing.T) {
	now := time.Date(2026, 9, 13, 8, 0, 0, 0, time.UTC)
	p := &partition{src: Source{Pipeline: &pipeline.Pipeline{Requests: pipeline.Requests{Limits: pipeline.Limits{Values: 2}}}}}
	d := newDictionary()
	d.began = now
	named := map[string]int{}
	for hour := range 6 * 24 {
		b := &batch{readAt: now.Add(time.Duration(hour) * time.Hour)}
		for _, v := range []string{"steady", fmt.Sprint("v", hour/48)} {
			key := NewKey(signal.Key{Path: signal.Path{Service: "s"}, Attributes: signal.AttributesOf(signal.Attr{Name: "version", Value: v})}, 0)
			b.cells = append(b.cells, Cell{key: key})
		}
		changes := p.wanted(d, b)
		for i := range changes {
			changes[i].Version = d.version + 1
		}
		d.learn(changes)
		for i := range b.cells {
			eachValue(p.src.Pipeline, &b.cells[i].key.Key, func(v Value) {
				if d.admitted(v, d.version) {
					named[v.Value]++
				}
			})
		}
		if n := d.counts[scope{"s", "version"}]; n > 2 {
			t.Fatalf("%d values are admitted", n)
		}
	}
	// A new version is counted together with others until the last one has been gone for a day.
	if named["steady"] != 144 || named["v0"] != 48 || named["v1"] < 20 || named["v2"] < 20 {
		t.Errorf("hours counted by name: %v", named)
	}
}

// Who has read nothing for a day does not know what is gone: the first batches afterwards, and what is taken over from
// before, drive out nothing.
func TestNothingIsForgottenUnseen(t *testing.T) {
	now := time.Date(2026, 9, 13, 8, 0, 0, 0, time.UTC)
	d := newDictionary()
	d.learn([]Admission{{Version: 1, Value: Value{"s", "version", "v1"}}})
	for _, at := range []time.Duration{-48 * time.Hour, 0, time.Hour, 5 * 24 * time.Hour} { // reserved two days ago, a restart, days without a share
		d.watch(now.Add(at))
		if f := d.forgotten(now.Add(at)); len(f) != 0 {
			t.Errorf("after %s forgotten are %v", at, f)
		}
	}
	for hour := range 25 {
		d.watch(now.Add(5*24*time.Hour + time.Duration(hour)*time.Hour))
	}
	if f := d.forgotten(now.Add(6 * 24 * time.Hour)); len(f) != 1 {
		t.Errorf("after a day of watching forgotten are %v", f)
	}
}
