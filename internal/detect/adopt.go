package detect

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// reconcile makes findings and incidents what the log says they are, and tells how many were otherwise. first holds for
// each finding the first change that the replay came to. Windows and what was learned stay.
func (d *Detector) reconcile(first map[incident.FindingKey]incident.Transition, r *Resume, recalled bool) (corrected int) {
	logged := map[incident.FindingKey]*incident.Transition{}
	for i := range r.Findings {
		logged[keyOfFinding(&r.Findings[i].Finding)] = &r.Findings[i]
	}
	for _, k := range slices.SortedFunc(maps.Keys(first), incident.FindingKey.Compare) {
		if t := first[k]; logged[k] == nil && t.Finding.Kind != highImpact {
			t.Finding.State = t.From // only the replay saw it change
			corrected += d.setFinding(k, &t)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(logged), incident.FindingKey.Compare) {
		corrected += d.setFinding(k, logged[k])
	}
	return corrected + d.setIncidents(r.Incidents, logged, recalled)
}

const highImpact = "high_impact"

// setFinding gives a finding the state of a logged transition.
func (d *Detector) setFinding(k incident.FindingKey, t *incident.Transition) int {
	r := d.ruleOf(k.Rule)
	if r == nil || r.Kind != t.Finding.Kind || r.Kind == highImpact {
		return 0
	}
	f := r.active[k]
	switch {
	case t.Finding.State == incident.Inactive:
		if f == nil || f.F.State == incident.Inactive {
			return 0
		}
		delete(r.active, k)
		return 1
	case f != nil && f.F.State == t.Finding.State && f.F.ActiveAt.Equal(t.Finding.ActiveAt):
		return 0
	case f == nil:
		f = &finding{key: k, rule: r}
		r.active[k] = f
	}
	f.F, f.Last, f.History = t.Finding, t.At, 1
	f.F.Key = k
	if t.Finding.State == incident.Pending {
		f.F.FiredAt = time.Time{}
	}
	return 1
}

func (d *Detector) ruleOf(name string) *compiled {
	i := slices.IndexFunc(d.rules, func(r *compiled) bool { return r.Alert == name })
	if i < 0 {
		return nil
	}
	return d.rules[i]
}

// setIncidents takes over what the log has and the replay has not, and drops what only the replay has: nobody was told
// of it. Findings that lose their incident are placed again by the next step.
func (d *Detector) setIncidents(events []incident.Event, logged map[incident.FindingKey]*incident.Transition, recalled bool) (corrected int) {
	now, listed := timeOf(d.at), map[string]bool{}
	for i := range events {
		e := &events[i]
		listed[e.Incident] = true
		if x := d.incident(e.Incident); x != nil && x.Inc.Sequence == e.Sequence && x.Inc.State == e.After.State {
			continue
		} else if x == nil && !e.After.State.Open() && !recalled && now.Sub(e.At) > afterlife {
			continue
		}
		d.drop(e.Incident)
		x := d.adopt(e, logged, recalled)
		if x.Inc.State.Open() || now.Sub(x.Closed) <= afterlife || x.ByPerson && x.active() > 0 {
			d.inc = append(d.inc, x)
			corrected++
		}
	}
	for _, x := range slices.Clone(d.inc) {
		if !listed[x.Inc.ID] && (x.Inc.State.Open() || now.Sub(x.Closed) <= afterlife) {
			d.drop(x.Inc.ID)
			corrected++
		}
	}
	if corrected > 0 {
		slices.SortStableFunc(d.inc, func(a, b *tracked) int {
			return cmp.Or(a.Inc.FirstFindingAt.Compare(b.Inc.FirstFindingAt), strings.Compare(a.Inc.ID, b.Inc.ID))
		})
		d.unplaced = true
	}
	return corrected
}

func (d *Detector) drop(id string) {
	d.inc = slices.DeleteFunc(d.inc, func(x *tracked) bool { return x.Inc.ID == id })
	for _, r := range d.rules {
		for _, f := range r.active {
			if f.Incident == id {
				f.Incident = ""
			}
		}
	}
}

// adopt makes of an incident's newest event what the detector remembers of it.
func (d *Detector) adopt(e *incident.Event, logged map[incident.FindingKey]*incident.Transition, recalled bool) *tracked {
	a := &e.After
	x := &tracked{
		Inc: *a, Accounts: slices.Clone(a.Accounts), Suspects: a.Suspects, Scope: a.Scope,
		Reported: a.Impact, ReportedAt: e.At, RankedAt: e.At, ByPerson: a.State == incident.Dismissed && e.By != "",
	}
	x.Inc.Sequence = max(a.Sequence, e.Sequence)
	if !a.State.Open() {
		x.Closed = cmpTime(a.ResolvedAt, e.At)
	}
	if r := d.ruleOf(a.Labels["alertname"]); r != nil && r.Kind == highImpact {
		x.Declared = r.Alert
	}
	for _, f := range a.Findings {
		m := member{Attached: f, Peak: f.Finding.Value}
		k := keyOfFinding(&f.Finding)
		m.Finding.Key = k // which JSON leaves the rule out of
		d.claimFinding(x, &m, logged, recalled)
		x.Wide = x.Wide || f.Why == whyWidespread
		x.Members = append(x.Members, m)
	}
	x.Served, x.Quiet = x.endedAt(func(m *member) bool { return m.Finding.Kind != "support" || onlySupport(x.Members) }), x.endedAt(func(*member) bool { return true })
	for _, p := range a.Paths {
		x.Paths = append(x.Paths, x.adoptPath(p, e.At))
	}
	slices.SortFunc(x.Paths, func(a, b pathTrack) int { return a.Key.Compare(b.Key) })
	for i := range x.Members {
		area := d.nodeOf(&x.Members[i].Finding).area
		if area == "" || slices.ContainsFunc(x.Desk, func(t deskTrack) bool { return t.Area == area }) {
			continue
		}
		t := deskTrack{Area: area, From: e.At}
		if len(x.Desk) == 0 {
			t.Count = a.Tickets
		}
		x.Desk = append(x.Desk, t)
	}
	return x
}

// endedAt is when the last of some members ended; zero while one of them is active.
func (x *tracked) endedAt(of func(*member) bool) (last time.Time) {
	for i := range x.Members {
		m := &x.Members[i]
		switch {
		case !of(m):
		case m.Active:
			return time.Time{}
		case m.Finding.EndedAt.After(last):
			last = m.Finding.EndedAt
		}
	}
	return last
}

// claimFinding connects a member with the finding behind it. Where neither the log of the last week nor the replay knows
// of the finding, but it fired when the incident's last event was written, it fires on until something is seen of it.
func (d *Detector) claimFinding(x *tracked, m *member, logged map[incident.FindingKey]*incident.Transition, recalled bool) {
	k := m.Finding.Key
	f := d.finding(k)
	if r := d.ruleOf(k.Rule); f == nil && logged[k] == nil && recalled && r != nil && r.Kind == m.Finding.Kind && (m.Finding.State == incident.Firing || m.Finding.State == incident.Unknown) {
		f = &finding{key: k, rule: r, F: m.Finding, Last: m.At, History: 1}
		r.active[k] = f
	}
	if f != nil && (f.F.State == incident.Firing || f.F.State == incident.Unknown) {
		m.Finding, m.Active = trimmed(f), true
		if x.Inc.State != incident.Merged {
			f.Incident = x.Inc.ID
		}
		return
	}
	if t := logged[k]; t != nil && t.Finding.State == incident.Inactive {
		m.Finding = t.Finding
		m.Finding.Key, m.Finding.Accounts = k, nil
	} else if m.Finding.State != incident.Inactive {
		m.Finding.State, m.Finding.EndedAt = incident.Inactive, timeOf(d.at)
	}
}

// adoptPath goes on counting where the event left off.
func (x *tracked) adoptPath(p incident.PathImpact, counted time.Time) pathTrack {
	t := pathTrack{From: x.Inc.StartedAt, Counted: bucketOf(counted), Requests: p.Requests, Failures: p.Failures, PeakShare: p.PeakShare, PeakAt: p.PeakAt, Base: p.BaseShare}
	t.Key.Path, t.Key.Attributes = p.Path, p.Attributes
	slow, failing := "", false
	for i := range x.Members {
		f := &x.Members[i].Finding
		if !telemetry(f.Kind) || keyOf(&f.Key) != t.Key {
			continue
		}
		if f.Kind == "latency" {
			slow = f.Rule
		} else {
			failing = true
		}
	}
	if !failing {
		t.Slow = slow
	}
	return t
}

// missed lets findings be placed that fire and belong to no incident: a restart came between, they joined without a word
// in the log, or their rule was in shadow until now.
func (d *Detector) missed(int64) {
	if !d.unplaced {
		return
	}
	d.unplaced = false
	for _, r := range d.rules {
		if r.Shadow {
			continue
		}
		for _, k := range sortedFindings(r.active) {
			if f := r.active[k]; f.F.State == incident.Firing && f.Incident == "" && !slices.Contains(d.fired, f) {
				d.fired = append(d.fired, f)
			}
		}
	}
}
