package incident

import (
	"strings"
	"testing"
	"time"
)

var t0 = time.Date(2026, 9, 13, 8, 0, 0, 0, time.UTC)

// script plays inputs a minute apart, and says of each event its type and the state after it.
type script struct {
	t   *testing.T
	i   Incident
	now time.Time
	log []string
}

func begin(t *testing.T) *script {
	return &script{t: t, i: Incident{ID: "T-1", StartedAt: t0}, now: t0}
}

func (s *script) step(in Input) *script {
	if in.Recovered == 0 {
		in.Recovered = 5 * time.Minute
	}
	in.View.Title = "x"
	before := s.i.Sequence
	var events []Event
	s.i, events = Step(s.i, in, s.now)
	for n, e := range events {
		if e.Sequence != before+uint64(n)+1 || e.Incident != s.i.ID || !e.At.Equal(s.now) {
			s.t.Errorf("event %d is %+v", n, e)
		}
		if e.After.Sequence != e.Sequence || e.Reason == "" || e.After.Labels["state"] != e.After.State.String() {
			s.t.Errorf("after event %d: sequence %d, reason %q, labels %v", n, e.After.Sequence, e.Reason, e.After.Labels)
		}
		mark := string(e.Type) + "→" + e.After.State.String()
		if e.After.Page {
			mark += "!"
		}
		s.log = append(s.log, mark)
	}
	s.now = s.now.Add(time.Minute)
	return s
}

func (s *script) want(log string) {
	s.t.Helper()
	if got := strings.Join(s.log, " "); got != log {
		s.t.Errorf("log\n got %s\nwant %s", got, log)
	}
	s.log = nil
}

var (
	fires   = Input{Joined: []Attached{{Finding: Finding{Rule: "R", Explain: "bad"}}}}
	declare = Input{Declare: true, Severity: Major, Why: "2 points"}
	worse   = Input{Declare: true, Severity: Critical, Why: "3 points"}
	calm    = Input{Severity: Minor}
	over    = Input{Served: 5 * time.Minute, Quiet: 5 * time.Minute}
	long    = Input{Served: 15 * time.Minute, Quiet: 15 * time.Minute}
)

func say(t CommandType, in Input) Input {
	in.Commands = []Command{{ID: "c", Type: t, By: "ines", Incident: "T-1", Into: "T-2"}}
	return in
}

func TestAWholeLife(t *testing.T) {
	s := begin(t).step(fires).step(declare).step(worse).step(declare).step(say(CommandAcknowledge, declare)).step(over).step(long)
	s.want("suspected→suspected declared→declared! severity_changed→declared! acknowledged→acknowledged! mitigated→mitigated! resolved→resolved")
	if s.i.Severity != Critical || s.i.AcknowledgedBy != "ines" || s.i.DeclaredAt != t0.Add(time.Minute) || s.i.ResolvedAt != t0.Add(6*time.Minute) {
		t.Errorf("ends as %+v", s.i)
	}
}

func TestWhatWentAwayComesBackUnderTheSameID(t *testing.T) {
	s := begin(t).step(fires).step(over)
	s.want("suspected→suspected dismissed→dismissed")
	s.step(fires).step(declare).step(over).step(fires).step(over).step(long).step(fires)
	s.want("reopened→suspected finding_attached→suspected declared→declared! mitigated→mitigated! reopened→declared! finding_attached→declared! " +
		"mitigated→mitigated! resolved→resolved reopened→declared! finding_attached→declared!")
	if !s.i.ResolvedAt.IsZero() || !s.i.MitigatedAt.IsZero() {
		t.Errorf("reopened with the times of its end: %+v", s.i)
	}
}

func TestTicketsHoldUpTheEndOnly(t *testing.T) {
	s := begin(t).step(fires).step(declare).step(Input{Served: 6 * time.Minute}).step(Input{Served: time.Hour})
	s.want("suspected→suspected declared→declared! mitigated→mitigated!")
	s.step(Input{Served: time.Hour, Quiet: 5 * time.Minute}).want("resolved→resolved")
}

func TestMutedIsDeclaredButNobodyIsPagedUntilItEnds(t *testing.T) {
	muted := declare
	muted.Mute = "maintenance"
	s := begin(t).step(fires).step(muted).step(muted).step(declare).step(muted)
	s.want("suspected→suspected declared→declared muted→declared unmuted→declared! muted→declared")
}

func TestCommandsThatDoNotApplyChangeNothing(t *testing.T) {
	s := begin(t).step(fires).step(declare).step(say(CommandAcknowledge, calm)).step(say(CommandAcknowledge, calm)).step(say(CommandReopen, calm))
	s.want("suspected→suspected declared→declared! acknowledged→acknowledged!")
	s.step(say(CommandResolve, calm)).step(say(CommandResolve, calm)).step(say(CommandMitigate, calm)).step(say(CommandDismiss, calm))
	s.want("resolved→resolved")
	s.step(say(CommandReopen, calm)).step(say(CommandMitigate, calm)).step(say(CommandMerge, calm))
	s.want("reopened→declared! mitigated→mitigated! merged→merged")
	if s.i.MergedInto != "T-2" {
		t.Errorf("merged into %q", s.i.MergedInto)
	}
	s.step(say(CommandResolve, calm)).step(fires).want("finding_attached→merged")
}

func TestSeverityNeverFallsWhileItIsOpen(t *testing.T) {
	s := begin(t).step(fires).step(worse).step(declare).step(calm)
	s.want("suspected→suspected declared→declared!")
	if s.i.Severity != Critical {
		t.Errorf("severity %s", s.i.Severity)
	}
}

func TestEventsKeepWhatWasTrueThen(t *testing.T) {
	i, first := Step(Incident{ID: "T-1"}, fires, t0)
	i, _ = Step(i, declare, t0.Add(time.Minute))
	_, _ = Step(i, worse, t0.Add(2*time.Minute))
	if a := first[0].After; a.State != Suspected || a.Labels["severity"] != "minor" || a.Labels["state"] != "suspected" {
		t.Errorf("the first event has changed: %+v", a)
	}
}

// Taking a mere warning wakes nobody, but must not keep the outage that it becomes from waking somebody.
func TestWhatWasTakenAsAWarningPagesWhenItBecomesWorse(t *testing.T) {
	s := begin(t).step(fires)
	s.want("suspected→suspected")
	s.step(say(CommandAcknowledge, calm))
	s.want("acknowledged→acknowledged")
	s.step(calm).step(declare)
	s.want("severity_changed→acknowledged!")
	s.step(worse)
	s.want("severity_changed→acknowledged!")
	muted := worse
	muted.Mute = "maintenance"
	s = begin(t).step(fires).step(say(CommandAcknowledge, calm))
	s.log = nil
	s.step(muted)
	if s.i.Page {
		t.Error("pages although it is muted")
	}
}
