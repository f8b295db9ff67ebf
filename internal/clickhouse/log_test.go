package clickhouse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/respond"
)

// conclude commits ticks with the given events.
func conclude(t *testing.T, db *DB, ticks ...[]incident.Event) {
	t.Helper()
	line := NewTimeline(db)
	for i, events := range ticks {
		n := i + 1
		in, err := line.Claim(t.Context(), detect.Tick{Number: uint64(n), From: at(10*n - 10), To: at(10 * n), Clock: at(10*n + 3)})
		if err != nil {
			t.Fatal(err)
		}
		for j := range events {
			events[j].Tick, events[j].Clock = in.Tick.Number, in.Tick.Clock
		}
		if err := line.Commit(t.Context(), in.Tick, detect.Outputs{Events: events}); err != nil {
			t.Fatal(err)
		}
	}
}

func happened(id string, sequence uint64, seconds int, state incident.State) incident.Event {
	return incident.Event{Incident: id, Sequence: sequence, At: at(seconds), Type: incident.EventDeclared, By: "x", Reason: "it's so",
		After: incident.Incident{ID: id, Sequence: sequence, State: state, Severity: incident.Critical, StartedAt: at(1), Services: []string{"a", "b"},
			Suspects: []incident.Suspect{{Kind: incident.SuspectChange, ID: "job", Score: 0.9}}, Impact: incident.Impact{Failures: 7}}}
}

func names(events []incident.Event) (out []string) {
	for _, e := range events {
		out = append(out, fmt.Sprint(e.Incident, e.Sequence))
	}
	return out
}

func TestAfterReadsWholeTicks(t *testing.T) {
	db := migrated(t)
	log := NewIncidentLog(db)
	events, next, head, err := log.After(t.Context(), respond.Cursor{}, 10)
	if err != nil || len(events) != 0 || next.Tick != 0 || head != (respond.Head{}) {
		t.Fatalf("an empty log gives %v, %v, %v, %v", events, next, head, err)
	}
	conclude(t, db,
		[]incident.Event{happened("b", 1, 1, incident.Declared), happened("a", 1, 2, incident.Declared), happened("b", 2, 3, incident.Declared)},
		nil,
		[]incident.Event{happened("c", 1, 25, incident.Declared)},
		nil)
	want := respond.Head{Tick: 4, To: at(40), Clock: at(43)}
	for _, step := range []struct {
		from, limit uint64
		events      []string
		next        uint64
	}{
		{0, 1, []string{"b1", "a1", "b2"}, 1}, // a tick is not cut
		{0, 3, []string{"b1", "a1", "b2"}, 1},
		{0, 4, []string{"b1", "a1", "b2", "c1"}, 3},
		{0, 100, []string{"b1", "a1", "b2", "c1"}, 4},
		{1, 100, []string{"c1"}, 4},
		{3, 1, nil, 4},
		{4, 1, nil, 4},
	} {
		events, next, head, err := log.After(t.Context(), respond.Cursor{Tick: step.from}, int(step.limit))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(step.events, names(events)); d != "" || next.Tick != step.next || head != want {
			t.Errorf("after %d, limit %d: next %d, head %+v, events (-want +got)\n%s", step.from, step.limit, next.Tick, head, d)
		}
	}
	events, _, _, err = log.After(t.Context(), respond.Cursor{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	whole := happened("a", 1, 2, incident.Declared)
	whole.Tick, whole.Clock = 1, at(13)
	if d := cmp.Diff(whole, events[1]); d != "" {
		t.Errorf("event (-want +got):\n%s", d)
	}
}

func TestOpenReadsTheNewestEvents(t *testing.T) {
	db := migrated(t)
	conclude(t, db,
		[]incident.Event{happened("open", 1, 1, incident.Suspected), happened("ended", 1, 2, incident.Declared), happened("long over", 1, 3, incident.Resolved)},
		[]incident.Event{happened("open", 2, 11, incident.Declared), happened("ended", 2, 12, incident.Resolved)})
	log := NewIncidentLog(db)
	for since, want := range map[int][]string{12: {"open2", "ended2"}, 13: {"open2"}} {
		events, err := log.Open(t.Context(), at(since))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, names(events)); d != "" {
			t.Errorf("open since %d (-want +got):\n%s", since, d)
		}
	}
}

func TestLargeOutputsAreCutAlike(t *testing.T) {
	db := migrated(t)
	events := make([]incident.Event, 18)
	for i := range events {
		events[i] = happened(fmt.Sprint("i", i), 1, i, incident.Declared)
		events[i].After.Title = strings.Repeat("x", 1<<20)
	}
	line := NewTimeline(db)
	in, err := line.Claim(t.Context(), detect.Tick{Number: 1, To: at(10)})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := line.Commit(t.Context(), in.Tick, detect.Outputs{Events: events}); err != nil {
			t.Fatal(err)
		}
	}
	got, _, _, err := NewIncidentLog(db).After(t.Context(), respond.Cursor{}, 100)
	if err != nil || len(got) != len(events) {
		t.Fatalf("%d events, %v; want %d", len(got), err, len(events))
	}
	for i := range got {
		if got[i].Incident != events[i].Incident {
			t.Errorf("event %d is of %s, want %s", i, got[i].Incident, events[i].Incident)
		}
	}
}

func TestOneRowIsOneBlockWhateverItsSize(t *testing.T) {
	large := strings.Repeat("x", blockBytesMax)
	for rows, fits := range map[int]bool{1: true, 2: false} {
		b := newBlock("checkpoints", rows)
		same(b, "state", large+"x")
		if err := b.check(); (err == nil) != fits {
			t.Errorf("%d rows: %v", rows, err)
		}
	}
}
