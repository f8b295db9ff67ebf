package respond

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/respond/route"
	"github.com/tocsin-project/tocsin/internal/signal"
)

func testConfig(t testing.TB) *route.Config {
	t.Helper()
	cfg, err := route.Load("routes.yaml", []byte(defaultRoutes), testKinds)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// keep#6300, #3159: with 10,000 open incidents a plan of everything stays far below half a second.
func TestPlanWithTenThousandIncidents(t *testing.T) {
	cfg := testConfig(t)
	p := NewPlanner(cfg, testPlaces(cfg), Settings{})
	now := testStart
	for k := range 10_000 {
		i := incident.Incident{ID: fmt.Sprintf("i%05d", k), State: incident.Declared, DeclaredAt: now, Page: k%10 == 0, Services: []string{"s"}}
		p.Observe(incident.Event{Incident: i.ID, Sequence: 1, At: now, Clock: now, Type: incident.EventDeclared, After: i}, true)
	}
	p.SetHead(Head{To: now, Clock: now})
	p.Plan(now)
	var took []time.Duration
	for range 20 {
		now = now.Add(time.Second)
		begun := time.Now()
		p.Plan(now)
		took = append(took, time.Since(begun))
	}
	if worst := slices.Max(took); worst > 500*time.Millisecond {
		t.Errorf("a plan took %s", worst)
	}
	pages := 0
	for _, r := range p.byPlace["pager"] {
		if r.Joined == "" {
			pages++
		}
	}
	if pages != 4 { // three and the summary
		t.Errorf("%d pages for a thousand incidents", pages)
	}
	for _, v := range p.Dirty() {
		if len(v) > 64<<10 {
			t.Fatalf("a record of %d bytes", len(v))
		}
	}
}

// A record stays far below what a Kafka record may hold, whatever the incident.
func TestRecordsAreBounded(t *testing.T) {
	long := strings.Repeat("ü", 100_000)
	i := incident.Incident{ID: "i", Title: long, Reason: long, Accounts: signal.Sketch{}}
	for range 2000 {
		i.Paths = append(i.Paths, incident.PathImpact{Path: signal.Path{Service: long, Operation: long}})
		i.Suspects = append(i.Suspects, incident.Suspect{Title: long, Reasons: []string{long, long}})
		i.Warnings = append(i.Warnings, incident.Warning{Suspects: []incident.Suspect{{ID: long}, {ID: long}}})
		i.Findings = append(i.Findings, incident.Attached{Why: long})
	}
	raw, err := json.Marshal(NewNotice(incident.Event{After: i}))
	if err != nil || len(raw) > 256<<10 {
		t.Errorf("a notice of %d bytes, %v", len(raw), err)
	}
	r := Record{}
	for k := range uint64(1000) {
		r.addNote(Note{Sequence: k + 1, Text: "x"})
		r.addNote(Note{Sequence: k + 1, Text: "again"})
	}
	if len(r.Notes) != maxNotes || r.Dropped != 1000-maxNotes || r.Notes[maxNotes-1].Sequence != 1000 {
		t.Errorf("%d notes, %d dropped", len(r.Notes), r.Dropped)
	}
}

// What is over is forgotten after the retention, in memory and in the store, and not before.
func TestForgets(t *testing.T) {
	cfg := testConfig(t)
	p := NewPlanner(cfg, testPlaces(cfg), Settings{})
	now := testStart
	turn := func(state incident.State, seq uint64) map[string][]byte {
		i := incident.Incident{ID: "a", State: state, DeclaredAt: now, Page: true}
		p.Observe(incident.Event{Incident: "a", Sequence: seq, At: now, Clock: now, Type: incident.EventDeclared, After: i}, true)
		p.SetHead(Head{To: now, Clock: now})
		p.Plan(now)
		for _, place := range []string{"pager", "chat"} {
			for s, ok, _ := p.Take(place, now); ok; s, ok, _ = p.Take(place, now) {
				p.Done(s, Receipt{}, nil, now)
			}
		}
		return p.Dirty()
	}
	turn(incident.Declared, 1)
	turn(incident.Resolved, 2)
	now = now.Add(47 * time.Hour)
	if turn(incident.Resolved, 2); len(p.records) != 2 {
		t.Fatalf("%d records", len(p.records))
	}
	now = now.Add(2 * time.Hour)
	if gone := turn(incident.Resolved, 2); len(p.records)+len(p.incidents) > 0 || len(gone) != 2 || gone["a/pager"] != nil {
		t.Errorf("%d records, %d incidents, %v", len(p.records), len(p.incidents), gone)
	}
}

// A record that cannot be read is named, and does not keep the others from being used.
func TestRestoreOfBadRecords(t *testing.T) {
	cfg := testConfig(t)
	p := NewPlanner(cfg, testPlaces(cfg), Settings{})
	bad := p.Restore(map[string][]byte{
		cursorKey: []byte(`{"tick":7}`), "x/pager": []byte("{"), "y/pager": []byte(`{"incident":"z","place":"pager"}`),
		"ok/pager": []byte(`{"incident":"ok","place":"pager","want":{"status":"open"},"got":{"status":"open"},"future":true}`),
	}, testStart)
	if !slices.Equal(bad, []string{"x/pager", "y/pager"}) || p.records["ok/pager"] == nil {
		t.Errorf("bad %v, records %v", bad, p.records)
	}
}

func TestNewer(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{`{"revision":2}`, `{"revision":1}`, true}, {`{"revision":1}`, `{"revision":1}`, false}, {`{"revision":1}`, `broken`, true}, {`broken`, `{}`, false}} {
		if got := Newer([]byte(c.a), []byte(c.b)); got != c.want {
			t.Errorf("Newer(%s, %s) is %v", c.a, c.b, got)
		}
	}
}

func TestTexts(t *testing.T) {
	for got, want := range map[string]string{
		Percent(.96): "96%", Percent(.088): "8.8%", Percent(.0003): "0.03%", Percent(0): "0%", Percent(1): "100%", Percent(.04): "4%", Percent(.9999): "100%",
		Number(1234567): "1,234,567", Number(12): "12", Number(123): "123",
		Minutes(14 * time.Minute): "14 min", Minutes(125 * time.Minute): "2 h 5 min", Minutes(2 * time.Hour): "2 h", Minutes(time.Second): "1 min",
		Cut("üüüü", 3): "üü…", Cut("ab", 3): "ab",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	w := incident.Warning{Resource: "db", Metric: "connections", Value: 10, Limit: 10, ExhaustedAt: testStart}
	if got := WarningText(w, testStart.Add(-time.Minute)); got != "db connections near its limit (10 of 10)" {
		t.Error(got)
	}
}
