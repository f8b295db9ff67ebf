package detect

import (
	"fmt"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	// rankEvery is how often suspects and scope are worked out anew while nothing joins.
	rankEvery = time.Minute
	// reportEvery is how often the log gets an entry on the impact alone, at most.
	reportEvery = 5 * time.Minute
	// defaultRecovered holds for incidents that no high_impact rule knows.
	defaultRecovered = 5 * time.Minute
	// maxSeen bounds the ids of commands that are remembered.
	maxSeen = 10_000
)

// declare moves each incident through its life.
func (d *Detector) declare(t int64) {
	now := timeOf(t)
	for _, x := range d.inc {
		if !x.Inc.State.Open() && len(x.joined) == 0 && x.into == "" {
			x.ended = nil
			continue
		}
		d.advance(x, t, nil)
	}
	d.inc = slices.DeleteFunc(d.inc, func(x *tracked) bool {
		// What a person dismissed holds on to its findings for as long as they fire.
		return !x.Inc.State.Open() && now.Sub(x.Closed) > afterlife && !(x.ByPerson && x.active() > 0)
	})
}

func (x *tracked) active() (n int) {
	for i := range x.Members {
		if x.Members[i].Active {
			n++
		}
	}
	return n
}

// advance works out what is to be said to one incident and lets the state machine answer.
func (d *Detector) advance(x *tracked, t int64, commands []incident.Command) {
	now := timeOf(t)
	d.refresh(x)
	d.count(x, t)
	d.quiet(x, now)
	p := d.weigh(x, now)
	x.Inc.Severity = max(x.Inc.Severity, incident.Minor)
	if x.news() || now.Sub(x.RankedAt) >= rankEvery && x.active() > 0 {
		d.localise(x, t)
		x.Suspects = d.suspects(x, t)
		x.RankedAt = now
	}
	d.warn(x, now)
	in := incident.Input{
		View: d.view(x, now), Joined: x.joined, Quietly: !x.news(), Ended: x.gone(), Warned: x.warned, Absorbed: x.absorbed,
		MergedInto: x.into, Declare: p.declare, Severity: p.severity, Why: p.why, Mute: d.muted(x, now),
		Recovered: p.recovered, Report: d.worthReporting(x, now), Commands: commands,
	}
	if x.into != "" {
		in.Why = x.why
	}
	if !x.Served.IsZero() {
		in.Served = now.Sub(x.Served)
	}
	if !x.Quiet.IsZero() {
		in.Quiet = now.Sub(x.Quiet)
	}
	was := x.Inc.State
	var events []incident.Event
	x.Inc, events = incident.Step(x.Inc, in, now)
	for i := range events {
		events[i].Tick, events[i].Clock = d.tick.Number, d.tick.Clock
	}
	if len(events) > 0 {
		x.Reported, x.ReportedAt = x.Inc.Impact, now
	}
	d.out.Events = append(d.out.Events, events...)
	d.highImpact(x, p, was, now)
	if was.Open() && !x.Inc.State.Open() {
		x.Closed = now
	}
	if x.Inc.State.Open() {
		x.ByPerson = false
	}
	x.joined, x.ended, x.warned, x.absorbed, x.into = nil, nil, nil, nil, ""
}

// refresh copies the newest figures of active findings into the incident.
func (d *Detector) refresh(x *tracked) {
	for i := range x.Members {
		m := &x.Members[i]
		if !m.Active {
			continue
		}
		if f := d.finding(m.Finding.Key); f != nil {
			m.Finding.Value, m.Finding.Requests, m.Finding.Failures, m.Finding.Partial = f.F.Value, f.F.Requests, f.F.Failures, f.F.Partial
			m.Finding.Explain, m.Finding.Evidence, m.Leads = f.F.Explain, f.F.Evidence, f.Leads
			m.Peak, m.Full = max(m.Peak, f.F.Value), m.Full || f.Full
		}
	}
}

// quiet keeps since when there is no more trouble. Tickets lag behind recovery, so they hold up only the end.
func (d *Detector) quiet(x *tracked, now time.Time) {
	trouble, any := false, false
	alone := x.onlyUnusual()
	for i := range x.Members {
		m := &x.Members[i]
		if m.Active && (alone || m.Finding.Kind != "gauge") {
			any = true
			trouble = trouble || m.Finding.Kind != "support"
		}
	}
	if onlySupport(x.Members) {
		trouble = any
	}
	since := func(t *time.Time, busy bool) {
		switch {
		case busy:
			*t = time.Time{}
		case t.IsZero():
			*t = now
		}
	}
	since(&x.Served, trouble)
	since(&x.Quiet, any)
}

func onlySupport(ms []member) bool {
	return !slices.ContainsFunc(ms, func(m member) bool { return m.Finding.Kind != "support" })
}

// warn turns saturation findings that joined in this step into warnings.
func (d *Detector) warn(x *tracked, now time.Time) {
	for _, a := range x.joined {
		if a.Finding.Kind != "saturation" || a.Finding.Key.Resource == "" {
			continue
		}
		f := d.finding(a.Finding.Key)
		if f == nil {
			continue
		}
		w := incident.Warning{
			At: now, Resource: a.Finding.Key.Resource, Metric: a.Finding.Key.Metric,
			Value: f.Level[0] * f.Level[1], Limit: f.Level[1], ExhaustedAt: f.Exhausted,
			Rule: a.Finding.Rule, Incident: x.Inc.ID, Suspects: x.Suspects,
		}
		x.warned = append(x.warned, w)
		d.out.Warnings = append(d.out.Warnings, w)
	}
}

// muted says which maintenance makes an incident expected: one whose target is all that is in trouble.
func (d *Detector) muted(x *tracked, now time.Time) string {
	for _, c := range d.changes {
		if c.Kind != signal.Maintenance || c.Target == "" || !c.Ended.IsZero() || c.Started.After(now) {
			continue
		}
		all, some := true, false
		for i := range x.Members {
			k := &x.Members[i].Finding.Key
			if k.Service == "" && k.Resource == "" {
				continue // tickets follow
			}
			some = true
			all = all && (k.Service == c.Target || k.Resource == c.Target)
		}
		if all && some {
			title := c.Title
			if title == "" {
				title = c.ID
			}
			return fmt.Sprintf("maintenance of %s (%s) since %s UTC", c.Target, title, clock(c.Started))
		}
	}
	return ""
}

// worthReporting asks for an entry when the impact has grown by half since the last.
func (d *Detector) worthReporting(x *tracked, now time.Time) bool {
	if x.Inc.State == incident.Suspected || now.Sub(x.ReportedAt) < reportEvery {
		return false
	}
	a, b := x.Reported, x.impact()
	return float64(b.Failures) > 1.5*float64(a.Failures)+100 || float64(b.AccountsAtLeast) > 1.5*float64(a.AccountsAtLeast)+10
}

// command carries out what people said, once for each id, in order.
func (d *Detector) command(cs []incident.Command) {
	for _, c := range cs {
		if c.ID != "" && slices.Contains(d.seen, c.ID) {
			continue
		}
		if c.ID != "" {
			if len(d.seen) >= maxSeen {
				d.seen = slices.Delete(d.seen, 0, maxSeen/10)
			}
			d.seen = append(d.seen, c.ID)
		}
		x := d.incident(c.Incident)
		if x == nil || d.at == 0 {
			continue // over for long, or never heard of
		}
		into := d.incident(c.Into)
		if c.Type == incident.CommandMerge && (into == nil || into == x || !into.Inc.State.Open()) {
			continue
		}
		open := x.Inc.State.Open()
		if c.Type == incident.CommandReopen {
			// Whoever reopens knows of trouble that we do not see: quiet has to last anew before it counts as over.
			x.Served, x.Quiet = time.Time{}, time.Time{}
		}
		d.advance(x, d.at, []incident.Command{c})
		switch {
		case !open: // it could only be reopened
		case x.Inc.State == incident.Dismissed && c.Type == incident.CommandDismiss:
			x.ByPerson = true
		case x.Inc.State == incident.Merged && into != nil:
			into.absorb(d, x, timeOf(d.at), "merged by "+c.By)
			x.into, x.why = "", ""
			d.advance(into, d.at, nil)
		}
	}
}

// highImpact logs the state of the rule that declares, as a finding of the incident.
func (d *Detector) highImpact(x *tracked, p points, was incident.State, now time.Time) {
	active := func(s incident.State) bool { return s == incident.Declared || s == incident.Acknowledged }
	if active(was) == active(x.Inc.State) {
		return
	}
	if p.rule != nil && x.Declared == "" {
		x.Declared = p.rule.Alert
	}
	var r *compiled
	for _, c := range d.rules {
		if c.Alert == x.Declared && c.Kind == "high_impact" {
			r = c
		}
	}
	if _, own := r.fuser(); r == nil || own {
		return // one with a budget has findings of its own
	}
	f := &finding{rule: r}
	f.F = incident.Finding{
		Key:  incident.FindingKey{Rule: r.Alert, Attributes: signal.AttributesOf(signal.Attr{Name: "incident", Value: x.Inc.ID})},
		Rule: r.Alert, Kind: r.Kind, State: incident.Firing, ActiveAt: x.Inc.StartedAt, FiredAt: x.Inc.DeclaredAt, Value: p.sum,
	}
	if len(x.Inc.Areas) > 0 {
		f.F.Key.Area = x.Inc.Areas[0]
	}
	from := incident.Pending
	if !active(x.Inc.State) {
		from, f.F.State, f.F.EndedAt = incident.Firing, incident.Inactive, now
	}
	d.describe(r, f, verdict{explain: func() string { return x.Inc.Reason }})
	d.out.Transitions = append(d.out.Transitions, incident.Transition{At: now, From: from, Finding: f.F})
}

// labelsOf are a rule's labels with its group's.
func (r *compiled) labelsOf() map[string]string {
	out := map[string]string{}
	for k, v := range r.labels {
		out[k] = v
	}
	for _, k := range rule.SortedKeys(r.Labels) {
		out[k] = r.Labels[k].Value
	}
	return out
}
