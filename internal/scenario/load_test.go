package scenario_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tocsin-project/tocsin/deploy"
	"github.com/tocsin-project/tocsin/internal/scenario"
	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

const smallScenario = `title: t
date: 2030-01-01T00:00:00Z
start: "23:59"
end: "24:01"
catalogue: ../catalogue.yaml
world: ../world.yaml
shifts: {s: 1m}
drivers:
  - {name: down, source: assumed, points: [{at: "24:00", value: 0}, {at: "24:00:10", value: 1, shape: step}]}
effects:
  - {driver: down, source: assumed, on: {depends_on: db}, failure_share: 1}
changes:
  - {id: c, kind: job, target: db, start: "24:00", source: assumed}
truth:
  incidents:
    - {id: i, start: "24:00", end: "24:01", source: assumed, cause: {resource: db}, drivers: [down]}
`

const smallWorld = `accounts: {count: 10, exponent: 1}
daily: {peak: "12:00"}
defaults: {latency: 10ms}
attributes: {region: {a: 0.5, b: 0.5}}
services:
  web: {operations: [{route: /, access: read, rate: 5}, {rpc: Put, access: write, rate: 2}]}
  other: {attributes: {}, operations: [{route: /o, access: read, rate: 5}]}
resources:
  db: [{metric: m, base: 10, every: 30s}]
`

const smallCatalogue = `services:
  - {name: web, depends_on: [db]}
  - {name: other}
resources:
  - {name: db}
`

func small(edit ...string) fstest.MapFS {
	file := func(text string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(strings.NewReplacer(edit...).Replace(text))}
	}
	return fstest.MapFS{"scenarios/x.yaml": file(smallScenario), "world.yaml": file(smallWorld), "catalogue.yaml": file(smallCatalogue)}
}

func TestAnyWorldPlays(t *testing.T) {
	s, err := scenario.Load(small(), "x")
	if err != nil {
		t.Fatal(err)
	}
	for slice := range s.Generate(1) {
		at, n := slice.From, 0
		for e := range slice.Events() {
			if e.At().Before(at) || !e.At().Before(slice.To) {
				t.Fatalf("event at %s after one at %s in the slice up to %s", e.At(), at, slice.To)
			}
			at = e.At()
			n++
		}
		if n != slice.Len() {
			t.Fatalf("%d of %d events", n, slice.Len())
		}
	}
	d := play(t, s, 1)
	im := d.truth.Impacts
	if len(im) != 1 || im["web"].Onset.Before(time.Date(2030, 1, 2, 0, 0, 10, 0, time.UTC)) {
		t.Errorf("impacts %+v: only web depends on db, which is gone from ten seconds after midnight on", im)
	}
	for _, p := range d.truth.Paths() {
		late := d.truth.Sum(p, s.Start.Add(80*time.Second), s.End).FailureRate()
		if want := map[string]float64{"web": 1}[p.Service]; late != want {
			t.Errorf("%s fails at %v, want %v", p, late, want)
		}
	}
	if n := len(d.gauges["db m"]); n != 4 {
		t.Errorf("%d measurements in two minutes, one each 30 s is said", n)
	}
}

func TestLoadFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, small()); err != nil {
		t.Fatal(err)
	}
	s, err := scenario.LoadFile(filepath.Join(dir, "scenarios", "x.yaml"))
	if err != nil || s.Name != "x" {
		t.Errorf("%v, %v", s, err)
	}
	if _, err := scenario.LoadFile(filepath.Join(dir, "scenarios", "y.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestMistakesHavePlaces(t *testing.T) {
	tests := map[string]struct{ old, new, want string }{
		"unknown key":      {"failure_share: 1", "failure_chare: 1", `scenarios/x.yaml:11:59: unknown field "failure_chare" (did you mean`},
		"unknown driver":   {"{driver: down", "{driver: up", `scenarios/x.yaml:11:5: there is no driver "up"`},
		"no path":          {"depends_on: db}, f", "depends_on: nothing}, f", `scenarios/x.yaml:11:41: no path of the world is chosen`},
		"no gauge":         {"on: {depends_on: db}", "on: {resource: db, metric: n}", `no gauge "n" of resource "db"`},
		"unknown target":   {"target: db", "target: dbx", `scenarios/x.yaml:13:5: the catalogue has no target "dbx"`},
		"unknown kind":     {"kind: job", "kind: jab", `"jab" is no kind of change`},
		"time":             {`start: "23:59"`, `start: "23h"`, `scenarios/x.yaml:3:8: "start": "23h" is not a time of day (write 08:43`},
		"ends first":       {`end: "24:01"`, `end: "22:01"`, "ends before it starts"},
		"order":            {`at: "24:00:10"`, `at: "23:00:10"`, `scenarios/x.yaml:9:5: driver "down": the points must be in order`},
		"source":           {"source: assumed, points", "source: rumour, points", `unknown source "rumour"`},
		"world service":    {"  other: {attr", "  another: {attr", `world.yaml:7:12: the catalogue has no service "another"`},
		"world operation":  {"{rpc: Put,", "{", "an operation has either a route or an rpc"},
		"dependency":       {"[db]}", "[db, dbx]}", `catalogue.yaml:2:5: web depends on "dbx"`},
		"incident driver":  {"drivers: [down]}", "drivers: [dawn]}", `there is no driver "dawn"`},
		"missing shift":    {"target: db, start", "target: db, shift: r, start", `there is no shift "r"`},
		"two wrong files":  {"count: 10", "count: x", "world.yaml:1:19"},
		"shape":            {"shape: step", "shape: stairs", `"stairs"`},
		"access of nobody": {"access: read, rate: 5}, {", "access: reed, rate: 5}, {", `"reed" is neither read nor write`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := scenario.Load(small(tt.old, tt.new), "x")
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v\nwant …%s…", err, tt.want)
			}
			var list strictyaml.Errors
			if err != nil && !errors.As(err, &list) {
				t.Errorf("%T is no list of mistakes", err)
			}
		})
	}
}

func TestNames(t *testing.T) {
	names, err := scenario.Names(small())
	if diff := cmp.Diff([]string{"x"}, names); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// TestShippedScenariosPlay checks of every scenario what its truth says: who is hit, and that quiet spans are quiet.
func TestShippedScenariosPlay(t *testing.T) {
	names, err := scenario.Names(deploy.Demo)
	if err != nil || len(names) < 3 {
		t.Fatalf("%v, %v", names, err)
	}
	hit := map[string]int{"2026-09-13": 28, "2026-08-26": 6, "quiet": 0}
	for _, name := range names {
		if name == demo {
			continue // has a test of its own
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := scenario.Load(deploy.Demo, name)
			if err != nil {
				t.Fatal(err)
			}
			d := play(t, s, s.Seed)
			if len(d.truth.Impacts) != hit[name] {
				t.Errorf("%d services are hit: %v", len(d.truth.Impacts), d.truth.Impacts)
			}
			for _, in := range d.truth.Labels.Incidents {
				for service, im := range d.truth.Impacts {
					if im.Onset.Before(in.Start) || im.Last.After(in.End.Add(time.Minute)) {
						t.Errorf("%s is hit from %s to %s, the incident is from %s to %s", service, im.Onset, im.Last, in.Start, in.End)
					}
				}
			}
			checkTotals(t, d)
			for _, q := range d.truth.Labels.Quiet {
				loud := 0
				for _, p := range d.truth.Paths() {
					for at := q.From; at.Add(10 * time.Minute).Before(q.To); at = at.Add(10 * time.Minute) {
						if sum := d.truth.Sum(p, at, at.Add(10*time.Minute)); sum.FailureRate() > 0.025 && sum.Outcomes[signal.Failure] > 6 {
							loud++
						}
					}
				}
				if loud > 3 {
					t.Errorf("%d loud spans in the quiet from %s to %s", loud, q.From, q.To)
				}
			}
		})
	}
}
