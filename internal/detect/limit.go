package detect

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// limitNamed is how many of those past a limit the explanation names.
const limitNamed = 5

// pastLimit is the attribute of the finding that stands for all keys past a group's limit.
var pastLimit = signal.AttributesOf(signal.Attr{Name: "past", Value: "limit"})

func isPastLimit(k *incident.FindingKey) bool {
	return k.Attributes == pastLimit && k.Service == "" && k.Resource == "" && k.Area == ""
}

// onPath tells findings on requests of one path or slice.
func onPath(f *incident.Finding) bool { return telemetry(f.Kind) && f.Key.Service != "" }

// within keeps a rule to its group's limit. When more keys become abnormal than there is room for, none of them is a finding of its
// own: together they are one that counts them and names the worst. Dropping them would be silence just when most is wrong, and
// picking some would hide how many there are. What is known already stays.
func (r *compiled) within(d *Detector, vs []verdict, t int64) []verdict {
	if r.limit <= 0 {
		return vs
	}
	key := incident.FindingKey{Rule: r.Alert, Attributes: pastLimit}
	// An evaluator that goes through its findings meets this one, of which it knows nothing.
	vs = slices.DeleteFunc(vs, func(v verdict) bool { return v.key == key })
	room := r.limit - len(r.active)
	if r.active[key] != nil {
		room++
	}
	fresh := func(v verdict) bool { return v.abnormal && r.active[v.key] == nil }
	var past []verdict
	for _, v := range vs {
		if fresh(v) {
			past = append(past, v)
		}
	}
	if len(past) <= room {
		if r.active[key] != nil && d.flows(r) {
			vs = append(vs, verdict{key: key, explain: func() string { return "no more than the limit are abnormal" }, stream: streamOf(vs)})
		}
		return vs
	}
	vs = slices.DeleteFunc(vs, fresh)
	slices.SortStableFunc(past, func(a, b verdict) int { return cmp.Compare(b.value, a.value) })
	all := verdict{key: key, abnormal: true, value: float64(len(past)), stream: past[0].stream}
	subjects := map[string]bool{}
	for _, v := range past {
		all.requests, all.failures = all.requests+v.requests, all.failures+v.failures
		subjects[cmp.Or(v.key.Service, v.key.Resource, v.key.Area)] = true
	}
	all.subjects = len(subjects)
	all.accounts = func() (s signal.Sketch) {
		for _, v := range past {
			if v.accounts != nil {
				s.Merge(v.accounts())
			}
		}
		return s
	}
	all.explain = func() string {
		var names []string
		for _, v := range past[:min(limitNamed, len(past))] {
			names = append(names, v.key.Subject())
		}
		text := fmt.Sprintf("%d more are abnormal by %s than its limit of %d allows, of %d services or resources; the worst: %s", len(past), r.Alert, r.limit, len(subjects), names[0])
		for _, n := range names[1:] {
			text += ", " + n
		}
		return text
	}
	return append(vs, all)
}

func streamOf(vs []verdict) signal.Stream {
	if len(vs) > 0 {
		return vs[0].stream
	}
	return ""
}

// flows tells that the rule has any data at all: without, what was past its limit is unknown.
func (d *Detector) flows(r *compiled) bool {
	switch r.Params.(type) {
	case *rule.Saturation, *rule.Gauge, *rule.Backlog:
		return slices.ContainsFunc(d.gauges, func(g *gauge) bool { return !g.missing(d.at) })
	case *rule.Support, *rule.External:
		return true
	case *rule.SQL:
		return !r.recall.(*answers).unanswered(d.at)
	}
	return slices.ContainsFunc(d.paths.order, func(s *series) bool { return !s.missing(d.at) })
}
