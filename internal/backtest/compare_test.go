package backtest

import (
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
)

func paged(id, service, from, at, to string) Incident {
	f, p, e := clock(from), clock(at), clock(to)
	return Incident{ID: id, Title: id, Services: []string{service}, StartedAt: &f, DeclaredAt: &p, ResolvedAt: &e, Pages: []Page{{At: p}}}
}

// Who is paged otherwise, and when: the incidents of two sets of rules belong together by what they are about.
func TestCompare(t *testing.T) {
	labels := &Labels{Incidents: []Label{{Start: clock("08:00"), End: clock("09:00")}}}
	a := Recording{Name: "day", To: clock("23:00"), Labels: labels, Incidents: []Incident{
		paged("same", "issues", "08:00", "08:05", "09:00"),
		paged("sooner", "git", "10:00", "10:01", "10:30"),
		paged("new", "pages", "12:00", "12:02", "12:10"),
	}}
	b := Recording{Name: "day", To: clock("23:00"), Labels: labels, Incidents: []Incident{
		paged("same", "issues", "08:00", "08:05", "09:00"),
		paged("sooner", "git", "10:00", "10:09", "10:30"),
		paged("old", "search", "12:00", "12:01", "12:10"),
		{ID: "suspected", Services: []string{"pages"}},
	}}
	got := Compare([]Recording{a}, []Recording{b})
	want := []struct {
		kind  ChangeKind
		title string
	}{{Earlier, "sooner"}, {NoLonger, "old"}, {WouldPage, "new"}}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i, w := range want {
		if got[i].Kind != w.kind || got[i].Title != w.title || got[i].True == nil || *got[i].True {
			t.Errorf("%d: %+v, want %s of %s", i, got[i], w.kind, w.title)
		}
	}
}

func transition(at, rule, service string, from, to incident.FindingState) incident.Transition {
	return incident.Transition{At: clock(at), From: from, Finding: incident.Finding{Rule: rule, Kind: "failure_rate", State: to, Key: incident.FindingKey{Service: service}}}
}

func TestRulesAreScoredByThemselves(t *testing.T) {
	j := newJournal()
	j.transitions = []incident.Transition{
		transition("08:02", "Good", "a", incident.Pending, incident.Firing),
		transition("08:03", "Good", "b", incident.Pending, incident.Firing), // the same episode
		transition("08:20", "Good", "a", incident.Firing, incident.Unknown), // nobody knows: it goes on
		transition("08:30", "Good", "a", incident.Unknown, incident.Inactive),
		transition("08:40", "Good", "b", incident.Firing, incident.Inactive),
		transition("08:10", "Noisy", "a", incident.Pending, incident.Firing),
		transition("08:11", "Noisy", "a", incident.Firing, incident.Inactive),
		transition("15:00", "Noisy", "a", incident.Pending, incident.Firing),
		transition("15:01", "Noisy", "a", incident.Firing, incident.Inactive),
		transition("16:00", "Silent", "a", incident.Inactive, incident.Pending),
	}
	in := incident.Incident{ID: "T-1", StartedAt: clock("15:00"), DeclaredAt: clock("15:00"), ResolvedAt: clock("15:30")}
	in.Findings = []incident.Attached{{Finding: j.transitions[7].Finding}}
	j.order, j.last["T-1"], j.pages["T-1"] = []string{"T-1"}, known{in}, []Page{{}}
	l := &Labels{
		Incidents: []Label{{Start: clock("08:00"), End: clock("09:00")}, {Start: clock("20:00"), End: clock("21:00")}},
		Quiet:     []Span{{clock("10:00"), clock("17:00")}},
	}
	got := j.scoreRules(l, clock("23:00"))
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	good, noisy := got[0], got[1]
	if good.Rule != "Good" || good.Fired != 2 || good.Episodes != 1 || good.True != 1 || *good.Precision != 1 || *good.Recall != 0.5 || *good.Delay != 120 || good.Pages != 0 {
		t.Errorf("%+v", good)
	}
	if noisy.Episodes != 2 || noisy.True != 1 || noisy.False != 1 || *noisy.Precision != 0.5 || noisy.FalsePages != 1 || *noisy.FalsePagesWeek != 24 {
		t.Errorf("%+v", noisy)
	}
	r := Result{Recordings: []Recording{
		{Rules: got, Score: score(l, nil, clock("23:00"))}, {Rules: got[:1], Score: score(l, nil, clock("23:00"))},
	}}
	r.Sum()
	if r.Total.Labels != 4 || r.Total.QuietHours != 14 || *r.Rules[0].Recall != 0.5 || *r.Rules[1].FalsePagesWeek != 12 {
		t.Errorf("together: %+v %+v", r.Total, r.Rules)
	}
}

// What was declared hours before a label and goes on is about something else.
func TestOldTroubleAnswersNoLabel(t *testing.T) {
	l := &Labels{Incidents: []Label{{Start: clock("14:00"), End: clock("14:30")}}, Quiet: []Span{{clock("00:00"), clock("13:00")}}}
	s := score(l, []Incident{declared("03:00", "03:00", "22:00", 1)}, clock("23:00"))
	if s.Detected != 0 || s.FalsePages != 1 {
		t.Errorf("%+v", s)
	}
	if s = score(l, []Incident{declared("13:30", "13:20", "14:20", 1)}, clock("23:00")); s.Detected != 1 || *s.DelaySeconds != -1800 {
		t.Errorf("signs before harm: %+v", s)
	}
}

func TestTrafficStaysSmall(t *testing.T) {
	var x traffic
	for i := range 10_000 {
		x.add(clock("00:00").Add(time.Duration(i)*time.Minute), 10, 1)
	}
	rows := x.rows()
	var n uint64
	for _, r := range rows {
		n += r.Total
	}
	if len(rows) > maxTraffic || len(rows) < maxTraffic/4 || n != 100_000 {
		t.Errorf("%d rows, %d requests", len(rows), n)
	}
}
