package detect

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect/evidence"
	"github.com/tocsin-project/tocsin/internal/incident"
)

// Reload makes a detector with other rules, or another catalogue, that goes on where this one is; this one must not be
// used afterwards. It is a function of the state and the configuration, so that a replay comes to the same. A rule that
// judges the same as before keeps what it has found: what is pending goes on being so, what fires goes on firing, and
// other texts, labels and durations apply from now on. What a rule has found that is gone, or judges something else now, is
// over at the next step, and such a rule starts anew.
func (d *Detector) Reload(cfg Config) (*Detector, error) {
	snapshot, err := d.Snapshot()
	if err != nil {
		return nil, err
	}
	fresh := New(cfg)
	if err := fresh.Restore(snapshot); err != nil {
		return nil, err
	}
	before := map[string]*compiled{}
	for _, r := range d.rules {
		before[r.Alert] = r
	}
	for _, r := range fresh.rules {
		if old := before[r.Alert]; old != nil && !r.judgesAs(old) {
			clear(r.active)
		}
	}
	for _, old := range d.rules {
		r := fresh.ruleOf(old.Alert)
		why := "its rule was removed"
		if r != nil {
			why = "its rule judges otherwise now"
		}
		if r != nil && r.judgesAs(old) {
			continue
		}
		for _, k := range sortedFindings(old.active) {
			if f := old.active[k]; f.F.State != incident.Inactive {
				f.F.Explain = why
				fresh.over = append(fresh.over, f)
			}
		}
	}
	fresh.overlook()
	fresh.forgetProofs(before)
	return fresh, nil
}

// judgesAs tells whether two rules find the same in the same data.
func (r *compiled) judgesAs(o *compiled) bool {
	a, errA := json.Marshal(r.Params)
	b, errB := json.Marshal(o.Params)
	return errA == nil && errB == nil && string(a) == string(b) && r.Kind == o.Kind && r.NoData == o.NoData && r.interval == o.interval && r.offset == o.offset
}

// forgetProofs begins evidence anew where a rule counts other requests as bad than before. What was learned under another
// budget is kept.
func (d *Detector) forgetProofs(before map[string]*compiled) {
	for i, b := range d.banks {
		old := before[b.rule.Alert]
		if old == nil || old.bank == nil || old.bank.words.Bad == b.words.Bad {
			continue
		}
		for _, t := range []*table{&d.paths, &d.slice} {
			for _, s := range t.order {
				if i < len(s.proofs) && s.proofs[i] != nil && s.proofs[i].key != nil {
					s.proofs[i].key = evidence.New(&b.model, b.share(s.proofs[i].place), minuteOf(d.at-1), nil)
				}
			}
		}
	}
}

// overlook takes back what Restore concludes of members without a finding: their end is logged by the next step.
func (d *Detector) overlook() {
	for _, f := range d.over {
		x := d.incident(f.Incident)
		if x == nil {
			continue
		}
		if i := x.index(keyOfFinding(&f.F)); i >= 0 && (f.F.State == incident.Firing || f.F.State == incident.Unknown) {
			x.Members[i].Active, x.Members[i].Finding = true, trimmed(f)
		}
	}
}

// retire ends what was found by rules that are gone.
func (d *Detector) retire(now time.Time) {
	for _, f := range d.over {
		from := f.F.State
		f.F.State = incident.Inactive
		if from != incident.Pending {
			f.F.EndedAt = now
		}
		d.out.Transitions = append(d.out.Transitions, incident.Transition{At: now, From: from, Finding: f.F})
		f.key = keyOfFinding(&f.F)
		if x := d.incident(f.Incident); x != nil {
			x.update(f, now)
		}
	}
	d.over = nil
}

// remap translates counts that were made under other latency bounds. What is not known of a new bound is taken such that
// nothing looks worse than it was: recent requests were only as slow as the next longer bound says, usually as many were slow
// as the next shorter one says.
func remap(s *series, from, to []latencyBound) {
	if slices.Equal(from, to) {
		return
	}
	longer, shorter := make([]int, len(to)), make([]int, len(to))
	for i, b := range to {
		longer[i] = slices.IndexFunc(from, func(o latencyBound) bool { return o.Duration >= b.Duration })
		shorter[i] = -1
		for j, o := range from {
			if o.Duration <= b.Duration {
				shorter[i] = j
			}
		}
	}
	s.remap(len(from), longer)
	if len(s.usualSlow) == len(from) && len(to) > 0 {
		usual := make([]float64, len(to))
		for k, j := range shorter {
			usual[k] = s.usualTimed
			if j >= 0 {
				usual[k] = s.usualSlow[j]
			}
		}
		s.usualSlow = usual
	} else {
		s.usualSlow, s.usualTimed = nil, 0
	}
}

// remap lays a ring out for other latency bounds: longer has for each the place among the old ones of the one that it takes after.
func (r *ring) remap(from int, longer []int) {
	if r.cols == nil {
		return
	}
	old := *r
	source := func(c int) int {
		switch {
		case c < colTimed || c == colTimed && from > 0:
			return c
		case c > colTimed && longer[c-colSlow] >= 0:
			return colSlow + longer[c-colSlow]
		}
		return -1
	}
	width := func(c int) uint8 {
		if i := source(c); i >= 0 {
			return old.cols[i].width
		}
		return 0
	}
	r.lay(width, columnsFor(len(longer)))
	for c := range r.cols {
		if i := source(c); i >= 0 {
			copy(r.column(c), old.column(i))
		}
	}
	r.timed = len(longer) > 0 && (old.timed || from == 0) // without bounds before, no latency is known
}

// sameRevisions tells whether a tick was, or is to be, evaluated with this configuration.
func (c *Config) sameRevisions(t *Tick) bool {
	return c.Rules.Revision == t.Rules && c.Catalogue.Revision == t.Catalogue
}

func (c *Config) revisions() string {
	return fmt.Sprintf("rules %s, catalogue %s", c.Rules.Revision, c.Catalogue.Revision)
}
