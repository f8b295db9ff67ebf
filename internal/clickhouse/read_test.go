package clickhouse

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/detect/timelinetest"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

func TestReader(t *testing.T) {
	db := migrated(t)
	f := newFeeder(db)
	iad := signal.AttributesOf(signal.Attr{Name: "site", Value: "iad"})
	merge := signal.Path{Service: "pulls", Operation: "merge", Access: signal.Write}
	cell := func(seconds int, k signal.Key, outcomes ...uint64) signal.Cell {
		c := signal.Cell{Bucket: at(seconds), Key: k, Retries: 1}
		copy(c.Outcomes[:], outcomes)
		return c
	}
	f.feed(t, timelinetest.Rows{Cells: []signal.Cell{
		cell(0, signal.Key{Path: merge}, 6, 1, 2, 3), cell(10, signal.Key{Path: merge, Attributes: iad}, 2, 1), cell(60, signal.Key{Path: merge}, 0, 0, 1),
		cell(0, signal.Key{Path: signal.Path{Service: "pulls", Operation: "merge", Access: signal.Read}}, 1000),
	}})
	b := requests(0, 2, 0)
	f.insert(t, b)

	finding := incident.Finding{Key: incident.FindingKey{Rule: "merge-fails", Service: "pulls", Operation: "merge", Access: "write", Attributes: iad}, Rule: "merge-fails",
		Kind: "failure_rate", State: incident.Firing, ActiveAt: at(1), FiredAt: at(9), Value: 0.25, Requests: 12, Failures: 2,
		Accounts: signal.Sketch{1, 2, 3}, Labels: map[string]string{"severity": "page"}, Annotations: map[string]string{"summary": "it's bad"},
		Explain: "2 of 8", Partial: true}
	fired := incident.Transition{At: at(9), From: incident.Pending, Finding: finding}
	other := incident.Transition{At: at(9), Finding: incident.Finding{Key: incident.FindingKey{Rule: "full", Resource: "mysql"}, Rule: "full", Kind: "saturation", State: incident.Pending}}
	warning := incident.Warning{At: at(8), Resource: "mysql", Metric: "connections", Value: 300, Limit: 400, ExhaustedAt: at(500), Rule: "full", Guard: "jobs",
		Incident: "i1", Suspects: []incident.Suspect{{Kind: incident.SuspectChange, ID: "job", Score: 0.5, Reasons: []string{"began before"}}}}
	declared := happened("i1", 1, 9, incident.Declared)
	declared.After.Findings = []incident.Attached{{Finding: finding, At: at(9), Why: "first"}}
	declared.Tick, declared.Clock = 1, at(13)

	line := NewTimeline(db)
	p, err := line.Progress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	in, err := line.Claim(t.Context(), detect.Tick{Number: 1, To: at(10), Clock: at(13), Marks: p.Marks})
	if err != nil {
		t.Fatal(err)
	}
	err = line.Commit(t.Context(), in.Tick, detect.Outputs{Transitions: []incident.Transition{other, fired}, Warnings: []incident.Warning{warning},
		Events: []incident.Event{declared, happened("i2", 1, 9, incident.Dismissed)}})
	if err != nil {
		t.Fatal(err)
	}
	r := NewReader(db)
	ctx := t.Context()

	t.Run("failure rates", func(t *testing.T) {
		got, err := r.FailureRates(ctx, merge, at(0), at(120))
		check(t, err, []Rate{{at(0), 15, 8, 2, 2, 3, 2}, {at(60), 1, 0, 0, 1, 0, 1}}, got)
		if share, ok := got[0].Share(); !ok || share != 0.2 {
			t.Errorf("share %v, %v; want 0.2", share, ok)
		}
		if _, ok := got[1].Share(); ok {
			t.Error("a minute without successes and failures has a failure rate")
		}
		got, err = r.FailureRates(ctx, merge, at(60), at(120))
		check(t, err, []Rate{{at(60), 1, 0, 0, 1, 0, 1}}, got)
	})
	t.Run("findings", func(t *testing.T) {
		got, err := r.Findings(ctx, FindingFilter{})
		check(t, err, []incident.Transition{fired, other}, got)
		got, err = r.Findings(ctx, FindingFilter{Service: "pulls", Limit: 1})
		check(t, err, []incident.Transition{fired}, got)
		got, err = r.Findings(ctx, FindingFilter{From: at(10)})
		check(t, err, []incident.Transition(nil), got)
	})
	t.Run("warnings", func(t *testing.T) {
		got, err := r.Warnings(ctx, time.Time{}, time.Time{}, 0)
		check(t, err, []incident.Warning{warning}, got)
	})
	t.Run("dead letters", func(t *testing.T) {
		got, err := r.DeadLetters(ctx, 1)
		check(t, err, []DeadLetter{{Stream: signal.Requests, Topic: "telemetry", Incarnation: 1, Partition: 3, Offset: 1, Time: at(0), Reason: "syntax",
			Detail: "no JSON", Payload: []byte("{\x00"), Size: 2}}, got)
	})
	t.Run("incidents", func(t *testing.T) {
		for _, c := range []struct {
			filter IncidentFilter
			want   []string
		}{
			{IncidentFilter{}, []string{"i1", "i2"}},
			{IncidentFilter{Limit: 1}, []string{"i1"}},
			{IncidentFilter{States: []incident.State{incident.Dismissed}}, []string{"i2"}},
			{IncidentFilter{Service: "b", States: []incident.State{incident.Declared}}, []string{"i1"}},
			{IncidentFilter{Service: "c"}, nil},
			{IncidentFilter{To: at(1)}, nil},
			{IncidentFilter{From: at(10)}, nil},
		} {
			found, err := r.Incidents(ctx, c.filter)
			var ids []string
			for _, i := range found {
				ids = append(ids, i.ID)
			}
			check(t, err, c.want, ids)
		}
	})
	t.Run("why", func(t *testing.T) {
		got, err := r.Why(ctx, "i1")
		if err != nil {
			t.Fatal(err)
		}
		check(t, nil, []incident.Event{declared}, withRules(got.Events))
		check(t, nil, []incident.Transition{fired}, got.Transitions)
		if _, err := r.Why(ctx, "none"); !errors.Is(err, ErrNotFound) {
			t.Errorf("an unknown incident gives %v", err)
		}
	})
	t.Run("analysts' views", func(t *testing.T) {
		for sql, want := range map[string]string{
			"SELECT toString((state, severity, suspect, failures, services)) FROM incidents WHERE incident = 'i1'":     "('declared','critical','job',7,['a','b'])",
			"SELECT toString((type, state, by)) FROM incident_timeline WHERE incident = 'i1'":                          "('declared','declared','x')",
			"SELECT toString((sum(records), sum(events), sum(rejected))) FROM ingest_progress":                         "(6,4,2)",
			"SELECT toString((requests, failures, share)) FROM failure_rates WHERE attributes['site'] = 'iad'":         "(3,1,0.3333333333333333)",
			"SELECT toString((state, accounts_at_least, attributes['site'])) FROM findings WHERE rule = 'merge-fails'": "('firing',3,'iad')",
		} {
			if got := one[string](t, db, sql); got != want {
				t.Errorf("%s: %s, want %s", sql, got, want)
			}
		}
	})
}

// withRules puts back what the JSON of a finding's key leaves out.
func withRules(events []incident.Event) []incident.Event {
	for _, e := range events {
		for i := range e.After.Findings {
			e.After.Findings[i].Finding.Key.Rule = e.After.Findings[i].Finding.Rule
		}
	}
	return events
}

func check(t *testing.T, err error, want, got any) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, equateEmpty); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
