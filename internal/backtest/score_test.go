package backtest

import (
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
)

func clock(hhmm string) time.Time {
	t, err := time.Parse("15:04", hhmm)
	if err != nil {
		panic(err)
	}
	return t.AddDate(2026, 8, 12)
}

func declared(at, from, to string, pages int, suspects ...string) Incident {
	d, f, e := clock(at), clock(from), clock(to)
	in := Incident{DeclaredAt: &d, StartedAt: &f, ResolvedAt: &e, Pages: make([]Page, pages)}
	for _, s := range suspects {
		in.Suspects = append(in.Suspects, Suspect{Kind: incident.SuspectChange, ID: s})
	}
	return in
}

func TestScore(t *testing.T) {
	l := &Labels{
		Incidents: []Label{
			{Start: clock("08:43"), End: clock("10:44"), Cause: LabelCause{Change: "job-1"}},
			{Start: clock("14:00"), End: clock("14:30"), Cause: LabelCause{Change: "deploy-2"}},
			{Start: clock("20:00"), End: clock("20:30")},
		},
		Quiet: []Span{{clock("00:00"), clock("08:00")}, {clock("15:00"), clock("19:00")}},
	}
	s := score(l, []Incident{
		declared("08:44", "08:43", "10:50", 1, "job-1", "x"),
		declared("09:00", "08:59", "09:10", 1), // a fragment of the first
		declared("14:10", "14:01", "14:20", 1, "x", "deploy-2"),
		declared("16:00", "15:59", "16:10", 2), // false
		declared("13:00", "12:00", "13:10", 1), // neither
		{StartedAt: &l.Incidents[2].Start},     // suspected only
	}, clock("23:00"))
	if s.Labels != 3 || s.Detected != 2 || s.Declared != 5 || s.FalseIncidents != 1 || s.FalsePages != 2 || s.Fragments != 1 {
		t.Errorf("counts: %+v", s)
	}
	if s.Causes != 2 || s.CauseFirst != 1 || s.CauseFirst3 != 2 {
		t.Errorf("causes: %+v", s)
	}
	if *s.DelaySeconds != 600 || *s.Precision != 0.8 || *s.FalsePagesWeek != 28 {
		t.Errorf("delay %v, precision %v, false pages a week %v", *s.DelaySeconds, *s.Precision, *s.FalsePagesWeek)
	}
}
