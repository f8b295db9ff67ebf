package detect

import (
	"maps"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
)

// latencyBound is a "slower than" that some rule names; each series counts what is above it.
type latencyBound struct{ time.Duration }

// compiled is a rule with what the evaluator needs worked out, and the findings it has.
type compiled struct {
	rule.Rule
	order    int
	interval int64 // in buckets
	offset   int64 // in buckets: it is judged as of so long ago
	limit    int
	group    *rule.Group
	labels   map[string]string // of the group
	eval     evaluator
	bound    int        // index of the latency bound, −1 for none
	names    [][]string // sets of attribute names to judge single values of
	sets     []int      // the same as places in Detector.slices
	bank     *bank      // of a rule that judges by evidence
	recall   recall     // of a kind that remembers more than windows hold

	active map[incident.FindingKey]*finding
	found  []*series // that it may find abnormal at this step; see sift
}

// evaluator judges one kind of rule. It yields a verdict for each key that is abnormal, and for each key with a finding
// that it can judge; a key with a finding and no verdict has no data.
type evaluator func(d *Detector, r *compiled, t int64, yield func(verdict))

// evaluators has one entry for each of rule.Kinds. A high_impact rule with points weighs groups of the others' findings,
// so it is evaluated when incidents are declared and yields nothing here.
var evaluators = map[string]evaluator{
	"failure_rate": evalFailureRate,
	"latency":      evalLatency,
	"support":      evalSupport,
	"saturation":   evalSaturation,
	"gauge":        evalGauge,
	"external":     evalExternal,
	"sql":          evalSQL,
	"backlog":      evalBacklog,
	"retries":      evalRetries,
	"absence":      evalAbsence,
	"high_impact":  evalHighImpact,
}

func (d *Detector) compile() {
	bounds := map[time.Duration]bool{}
	sets := map[string][]string{}
	for i := range d.cfg.Rules.Groups {
		g := &d.cfg.Rules.Groups[i]
		for _, r := range g.Rules {
			c := &compiled{
				Rule: r, order: len(d.rules), interval: max(1, buckets(g.Interval.Std())), limit: g.Limit, group: g, labels: g.Labels,
				eval: evaluators[r.Kind], bound: -1, active: map[incident.FindingKey]*finding{},
			}
			if r.Kind != "sql" { // whose question has it
				c.offset = buckets(g.QueryOffset.Std())
			}
			switch p := r.Params.(type) {
			case *rule.FailureRate:
				c.names = attributeSets(p.Match.Attributes, p.Slices)
			case *rule.Latency:
				c.names = attributeSets(p.Match.Attributes, nil)
				bounds[p.SlowerThan.Std()] = true
			}
			for _, s := range c.names {
				sets[joined(s)] = s
			}
			if r.Shadow {
				c.labels = maps.Clone(c.labels)
				if c.labels == nil {
					c.labels = map[string]string{}
				}
				c.labels["shadow"] = "true"
			}
			if make := recalls[r.Kind]; make != nil {
				c.recall = make(c)
			}
			d.rules = append(d.rules, c)
		}
	}
	for _, b := range slices.Sorted(maps.Keys(bounds)) {
		d.bounds = append(d.bounds, latencyBound{b})
	}
	for _, k := range sortedKeys(sets) {
		d.slices = append(d.slices, sets[k])
	}
	for _, c := range d.rules {
		for _, s := range c.names {
			c.sets = append(c.sets, slices.IndexFunc(d.slices, func(o []string) bool { return slices.Equal(o, s) }))
		}
		if p, ok := c.Params.(*rule.Latency); ok {
			c.bound = slices.Index(d.bounds, latencyBound{p.SlowerThan.Std()})
		}
		if b := newBank(c); b != nil {
			d.banks = append(d.banks, b)
		}
		if m, ok := c.recall.(*tries); ok {
			m.place = len(d.counters)
			d.counters = append(d.counters, m)
		}
	}
	d.survey()
}

// attributeSets are the sets of names under which slices have to be counted: those of `match`, or those with one more.
func attributeSets(match map[string]string, more []string) (out [][]string) {
	base := rule.SortedKeys(match)
	if len(base) > 0 {
		out = append(out, base)
	}
	for _, n := range more {
		if s := append(slices.Clone(base), n); !slices.Contains(base, n) {
			slices.Sort(s)
			out = append(out, s)
		}
	}
	return out
}

func joined(names []string) string {
	s := ""
	for _, n := range names {
		s += n + "\x00"
	}
	return s
}

// telemetry tells kinds that judge requests.
func telemetry(kind string) bool { return kind == "failure_rate" || kind == "latency" }
