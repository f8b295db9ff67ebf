package incident

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// ResolveAfter is how many times the recovery time customers must have been served before what is mitigated is resolved.
const ResolveAfter = 3

// View is what is known of an incident now; it replaces what the incident said before. Its slices are not changed afterwards.
type View struct {
	Title     string
	Areas     []string
	Services  []string
	Resources []string
	Impact    Impact
	Paths     []PathImpact
	Scope     []ScopeSlice
	Suspects  []Suspect
	Findings  []Attached
	Tickets   int
	Accounts  signal.Sketch
	Labels    map[string]string
	Flapping  bool
}

// Input is what one step of the detector has to say to one incident.
type Input struct {
	View     View
	Joined   []Attached // began to fire in this step
	Quietly  bool       // what joined is more of the same: no entry
	Ended    []Finding  // stopped firing in this step, and left nothing of their subject
	Warned   []Warning
	Absorbed []string // ids of incidents merged into this one
	// MergedInto ends the incident: it lives on there.
	MergedInto string
	// Declare says that the weight of the evidence is enough, and Severity how bad it is; Why is one sentence on both.
	Declare  bool
	Severity Severity
	Why      string
	// Mute says why nobody may be paged although it would be due; "" for no reason.
	Mute string
	// Served is for how long customers have been served again, Quiet for how long no finding at all has been firing or unknown.
	// Both are zero while there is trouble. Recovered is the rule's patience.
	Served, Quiet, Recovered time.Duration
	// Report asks for an entry on the impact.
	Report   bool
	Commands []Command
}

// stepper collects the events of one step.
type stepper struct {
	i      Incident
	now    time.Time
	events []Event
}

func (s *stepper) log(t EventType, by, reason string, args ...any) {
	if len(args) > 0 {
		reason = fmt.Sprintf(reason, args...)
	}
	s.i.Sequence++
	switch t {
	case EventSuspected, EventDeclared, EventAcknowledged, EventSeverity, EventMitigated, EventReopened, EventResolved, EventMerged, EventDismissed:
		s.i.Reason = reason // of the state; what joins and leaves meanwhile explains nothing of it
	default:
	}
	s.relabel()
	s.events = append(s.events, Event{Incident: s.i.ID, Sequence: s.i.Sequence, At: s.now, Type: t, By: by, Reason: reason, After: s.i})
}

// relabel keeps the labels that follow the state; each event has a map of its own.
func (s *stepper) relabel() {
	labels := make(map[string]string, len(s.i.Labels)+2)
	for k, v := range s.i.Labels {
		labels[k] = v
	}
	labels["severity"], labels["state"] = s.i.Severity.String(), s.i.State.String()
	s.i.Labels = labels
}

// Step moves an incident on. It is pure: the same incident, input and time give the same result.
func Step(i Incident, in Input, now time.Time) (Incident, []Event) {
	s := &stepper{i: i, now: now}
	before := i.Suspects
	s.show(in.View)
	if in.MergedInto != "" {
		s.i.State, s.i.MergedInto, s.i.Page, s.i.ResolvedAt = Merged, in.MergedInto, false, now
		s.log(EventMerged, "", "merged into %s: %s", in.MergedInto, in.Why)
		return s.i, s.events
	}
	opened := s.i.Sequence == 0
	if opened {
		s.log(EventSuspected, "", firstReason(in))
	}
	s.reopen(in, opened)
	s.findings(in, opened)
	if opened || suspectsDiffer(before, s.i.Suspects) {
		s.suspects(opened)
	}
	if !s.i.State.Open() {
		s.commands(in.Commands)
		return s.i, s.events
	}
	s.declare(in)
	s.mute(in.Mute)
	s.recover(in)
	if in.Report && len(s.events) == 0 {
		s.log(EventImpact, "", impactReason(s.i))
	}
	s.commands(in.Commands)
	return s.i, s.events
}

func (s *stepper) show(v View) {
	i := &s.i
	i.Title, i.Areas, i.Services, i.Resources = v.Title, v.Areas, v.Services, v.Resources
	i.Impact, i.Paths, i.Scope, i.Suspects, i.Findings = v.Impact, v.Paths, v.Scope, v.Suspects, v.Findings
	i.Tickets, i.Accounts, i.Labels, i.Flapping = max(v.Tickets, i.Tickets), v.Accounts, v.Labels, v.Flapping
}

func firstReason(in Input) string {
	if len(in.Joined) == 0 {
		return "suspected"
	}
	f := in.Joined[0].Finding
	reason := f.Explain
	if len(in.Joined) > 1 {
		reason += fmt.Sprintf(" (and %d more)", len(in.Joined)-1)
	}
	return reason
}

// reopen brings back what had ended or was over, when something of it fires again.
func (s *stepper) reopen(in Input, opened bool) {
	if opened || len(in.Joined) == 0 {
		return
	}
	switch s.i.State {
	case Mitigated:
		s.i.State = Declared
		if !s.i.AcknowledgedAt.IsZero() {
			s.i.State = Acknowledged // the same people are still on it
		}
	case Resolved:
		s.i.State = Declared
	case Dismissed:
		s.i.State = Suspected
	default:
		return
	}
	s.i.MitigatedAt, s.i.ResolvedAt = time.Time{}, time.Time{}
	s.i.Page = s.i.State != Suspected && s.i.Muted == ""
	s.log(EventReopened, "", "it is back: %s", in.Joined[0].Finding.Explain)
}

func (s *stepper) findings(in Input, opened bool) {
	for _, w := range in.Warned {
		w.Incident = s.i.ID
		s.i.Warnings = append(slices.Clip(s.i.Warnings), w)
		s.log(EventWarned, "", warnReason(w))
	}
	if len(in.Absorbed) > 0 {
		s.log(EventFinding, "", "took in %s: %s", strings.Join(in.Absorbed, ", "), in.View.Title)
	} else if len(in.Joined) > 0 && !in.Quietly && !opened && len(in.Warned) == 0 {
		s.log(EventFinding, "", joinedReason(in.Joined))
	}
	if len(in.Ended) > 0 {
		s.log(EventFindingEnded, "", endedReason(in.Ended))
	}
}

func (s *stepper) suspects(opened bool) {
	if opened && len(s.i.Suspects) == 0 || len(s.i.Suspects) > 0 && s.i.Suspects[0].Kind == SuspectUnknown && opened {
		return
	}
	if len(s.i.Suspects) > 0 {
		top := s.i.Suspects[0]
		s.log(EventSuspects, "", "first suspect: %s (%.0f%%)", suspectName(top), top.Score*100)
	}
}

func suspectName(x Suspect) string {
	switch {
	case x.Kind == SuspectUnknown:
		return "no cause known"
	case x.Title != "" && x.Title != x.ID:
		return x.Title + " (" + x.ID + ")"
	}
	return x.ID
}

// suspectsDiffer tells whether people should hear of a new list: another first, or one much surer or less sure.
func suspectsDiffer(a, b []Suspect) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(b) > 0
	}
	d := a[0].Score - b[0].Score
	return a[0].Kind != b[0].Kind || a[0].ID != b[0].ID || d > 0.25 || d < -0.25
}

func (s *stepper) declare(in Input) {
	switch {
	case s.i.State == Suspected && in.Declare:
		s.i.State, s.i.DeclaredAt, s.i.Severity = Declared, s.now, in.Severity
		s.i.Page = in.Mute == ""
		s.i.Muted = in.Mute
		s.log(EventDeclared, "", in.Why)
		if in.Mute != "" {
			s.log(EventMuted, "", in.Mute)
		}
	case s.i.State != Suspected && in.Severity > s.i.Severity:
		was := s.i.Severity
		s.i.Severity = in.Severity
		if in.Declare && in.Mute == "" && (s.i.State == Declared || s.i.State == Acknowledged) {
			s.i.Page = true // somebody took it while it was only suspected: what it became is news to all others
		}
		s.log(EventSeverity, "", "%s, was %s: %s", in.Severity, was, in.Why)
	}
}

func (s *stepper) mute(why string) {
	if s.i.State == Suspected || why == s.i.Muted {
		return
	}
	was := s.i.Muted
	s.i.Muted, s.i.Page = why, why == ""
	switch {
	case why == "":
		s.log(EventUnmuted, "", "over: %s", was)
	case was == "":
		s.log(EventMuted, "", why)
	}
}

func (s *stepper) recover(in Input) {
	switch {
	case s.i.State == Suspected && in.Quiet >= in.Recovered && in.Quiet > 0:
		s.i.State, s.i.ResolvedAt = Dismissed, s.now
		s.log(EventDismissed, "", "went away by itself: nothing has been abnormal for %s", short(in.Quiet))
	case (s.i.State == Declared || s.i.State == Acknowledged) && in.Served >= in.Recovered && in.Served > 0:
		s.i.State, s.i.MitigatedAt = Mitigated, s.now
		s.log(EventMitigated, "", "requests have succeeded again for %s", short(in.Served))
	case s.i.State == Mitigated && in.Served >= ResolveAfter*in.Recovered && in.Quiet >= in.Recovered && in.Quiet > 0:
		s.i.State, s.i.ResolvedAt, s.i.Page = Resolved, s.now, false
		s.log(EventResolved, "", "requests have succeeded for %s and nothing at all has been abnormal for %s", short(in.Served), short(in.Quiet))
	}
}

// short prints a duration as people write it: 5m, not 5m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// commands carries out what people said. What does not apply to the state is no error: the button was old.
func (s *stepper) commands(cs []Command) {
	for _, c := range cs {
		note := c.Note
		if note != "" {
			note = ": " + note
		}
		switch {
		case c.Type == CommandAcknowledge && (s.i.State == Declared || s.i.State == Suspected):
			s.i.State, s.i.AcknowledgedAt, s.i.AcknowledgedBy = Acknowledged, s.now, c.By
			if s.i.DeclaredAt.IsZero() {
				s.i.DeclaredAt = s.now
			}
			s.log(EventAcknowledged, c.By, "acknowledged by %s%s", c.By, note)
		case c.Type == CommandMitigate && (s.i.State == Declared || s.i.State == Acknowledged):
			s.i.State, s.i.MitigatedAt = Mitigated, s.now
			s.log(EventMitigated, c.By, "mitigated, says %s%s", c.By, note)
		case c.Type == CommandResolve && s.i.State.Open():
			s.i.State, s.i.ResolvedAt, s.i.Page = Resolved, s.now, false
			if s.i.MitigatedAt.IsZero() {
				s.i.MitigatedAt = s.now
			}
			s.log(EventResolved, c.By, "resolved, says %s%s", c.By, note)
		case c.Type == CommandDismiss && s.i.State.Open():
			s.i.State, s.i.ResolvedAt, s.i.Page = Dismissed, s.now, false
			s.log(EventDismissed, c.By, "no incident, says %s%s", c.By, note)
		case c.Type == CommandMerge && s.i.State.Open() && c.Into != "" && c.Into != s.i.ID:
			s.i.State, s.i.MergedInto, s.i.ResolvedAt, s.i.Page = Merged, c.Into, s.now, false
			s.log(EventMerged, c.By, "merged into %s by %s%s", c.Into, c.By, note)
		case c.Type == CommandReopen && (s.i.State == Resolved || s.i.State == Dismissed || s.i.State == Mitigated):
			s.i.State, s.i.Page = Declared, s.i.Muted == ""
			s.i.MitigatedAt, s.i.ResolvedAt = time.Time{}, time.Time{}
			if s.i.DeclaredAt.IsZero() {
				s.i.DeclaredAt = s.now
			}
			s.log(EventReopened, c.By, "reopened by %s%s", c.By, note)
		}
	}
}

func warnReason(w Warning) string {
	what := w.Metric
	if what == "" {
		what = "its limit"
	}
	level := 0.0
	if w.Limit > 0 {
		level = w.Value / w.Limit * 100
	}
	if w.ExhaustedAt.IsZero() {
		return fmt.Sprintf("%s: %s at %.0f%% of its limit", w.Resource, what, level)
	}
	return fmt.Sprintf("%s: %s at %.0f%% of its limit, runs out at about %s UTC", w.Resource, what, level, w.ExhaustedAt.UTC().Format("15:04"))
}

func joinedReason(a []Attached) string {
	if len(a) == 1 {
		return a[0].Finding.Explain + " (" + a[0].Why + ")"
	}
	return fmt.Sprintf("%d findings joined: %s", len(a), nameFindings(attachedFindings(a)))
}

func endedReason(f []Finding) string { return "no longer abnormal: " + nameFindings(f) }

func attachedFindings(a []Attached) (out []Finding) {
	for _, x := range a {
		out = append(out, x.Finding)
	}
	return out
}

// nameFindings names the first few subjects and counts the rest, so that the log stays readable when everything fails.
func nameFindings(fs []Finding) string {
	var names []string
	for i := range fs {
		n := fs[i].Subject()
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	if len(names) > 4 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:4], ", "), len(names)-4)
	}
	return strings.Join(names, ", ")
}

// Subject is what a finding is about, in a few words.
func (f *Finding) Subject() string {
	if f.Kind == "high_impact" && f.Key.Area != "" {
		return "area " + f.Key.Area
	}
	return f.Key.Subject()
}

// Subject is what a finding with this key is about; one of an area alone is about its tickets.
func (k FindingKey) Subject() string {
	switch {
	case k.Service != "":
		s := k.Service
		if k.Operation != "" {
			s += " / " + k.Operation
		}
		if k.Access != "" {
			s += " / " + k.Access
		}
		if k.Attributes != "" {
			s += " (" + k.Attributes.String() + ")"
		}
		return s
	case k.Resource != "":
		return strings.TrimSpace(k.Resource + " " + k.Metric)
	}
	return "tickets about " + k.Area
}

func impactReason(i Incident) string {
	switch {
	case i.Impact.Failures > 0:
		return fmt.Sprintf("%d services, %d failed requests so far, at worst %.0f%% of a path, at least %d accounts", len(i.Services), i.Impact.Failures, i.Impact.PeakShare*100, i.Impact.AccountsAtLeast)
	case i.Tickets > 0:
		return fmt.Sprintf("%d tickets so far", i.Tickets)
	}
	return i.Title
}
