package clickhouse

import (
	"fmt"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/respond/silence"
)

// An analyst asks whether an incident was silenced, by whom, and for how long. The answer is what the responder would have heeded.
func TestWhatWasSilenced(t *testing.T) {
	db := migrated(t)
	all := []silence.Silence{
		{ID: "same", Matchers: []string{`service="issues"`, `severity=~"maj.*|critical"`}, StartsAt: at(0), EndsAt: at(3600), CreatedAt: at(0), CreatedBy: "ada", Comment: "moving"},
		{ID: "ended", Matchers: []string{`service="issues"`}, StartsAt: at(0), EndsAt: at(3600), CreatedAt: at(0), CreatedBy: "ada", Comment: "moving"},
		{ID: "other service", Matchers: []string{`service="pulls"`}, StartsAt: at(0), EndsAt: at(3600), CreatedAt: at(0), CreatedBy: "ada", Comment: "-"},
		{ID: "before", Matchers: []string{`service="issues"`}, StartsAt: at(-100), EndsAt: at(5), CreatedAt: at(-100), CreatedBy: "ada", Comment: "-"},
		{ID: "odd value", Matchers: []string{`service="("`, `team!="("`}, StartsAt: at(0), EndsAt: at(3600), CreatedAt: at(0), CreatedBy: "ada", Comment: "-"},
		{ID: "not this severity", Matchers: []string{`service!~"p.*"`, `severity=critical`}, StartsAt: at(0), EndsAt: at(3600), CreatedAt: at(0), CreatedBy: "ada", Comment: "-"},
		{ID: "of nothing", Matchers: []string{`area!=""`, `team=""`, `region=eu`}, StartsAt: at(0), EndsAt: at(9000), CreatedAt: at(0), CreatedBy: "grace", Comment: "no team"},
	}
	one := NewSilences(db)
	for range 2 {
		if err := one.Copy(t.Context(), all); err != nil {
			t.Fatal(err)
		}
	}
	all[1].EndsAt, all[1].ExpiredAt, all[1].ExpiredBy = at(30), at(30), "grace"
	if err := one.Copy(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	before := *NewSilences(db)
	stale := all[1]
	stale.EndsAt, stale.ExpiredAt, stale.ExpiredBy = at(3600), time.Time{}, ""
	if err := before.Copy(t.Context(), []silence.Silence{stale}); err != nil { // a process that has not heard of it
		t.Fatal(err)
	}
	in := incident.Incident{ID: "T-1", State: incident.Declared, Severity: incident.Major, Page: true, Services: []string{"issues"}, Areas: []string{"tracker"},
		Labels: map[string]string{"region": "eu"}, StartedAt: at(5)}
	over := in
	over.State = incident.Resolved
	line := NewTimeline(db)
	epoch, err := line.Lead(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	tick := detect.Tick{Number: 1, Epoch: epoch, From: at(0), To: at(200)}
	if _, err := line.Claim(t.Context(), tick); err != nil {
		t.Fatal(err)
	}
	events := []incident.Event{
		{Incident: "T-1", Sequence: 1, At: at(10), Type: incident.EventDeclared, After: in, Tick: 1},
		{Incident: "T-1", Sequence: 2, At: at(110), Type: incident.EventResolved, After: over, Tick: 1},
	}
	if err := line.Commit(t.Context(), tick, detect.Outputs{Events: events}); err != nil {
		t.Fatal(err)
	}
	var got []string
	err = db.query(t.Context(), "ask", "SELECT silence, toUnixTimestamp64Milli(`from`), toUnixTimestamp64Milli(assumeNotNull(`to`)), created_by FROM incident_silences WHERE incident = 'T-1' ORDER BY silence", func(r driver.Rows) error {
		var id, by string
		var from, to int64
		err := r.Scan(&id, &from, &to, &by)
		got = append(got, fmt.Sprintf("%s %d-%d %s", id, from/1000-start.Unix(), to/1000-start.Unix(), by))
		return err
	})
	want := "[ended 10-30 ada of nothing 10-110 grace same 10-110 ada]"
	if err != nil || fmt.Sprint(got) != want {
		t.Errorf("silenced %v, want %s, %v", got, want, err)
	}
	// The planner's own word on the same.
	for i := range all {
		s, err := all[i].ForPlanner()
		if err != nil {
			t.Fatal(err)
		}
		holds := false
		for _, g := range got {
			holds = holds || len(g) > len(s.ID) && g[:len(s.ID)] == s.ID
		}
		if h := s.Holds(respond.Labels(in), at(20)); h != holds {
			t.Errorf("%s: the responder says %t, the view %t", s.ID, h, holds)
		}
	}
}
