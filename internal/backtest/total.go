package backtest

import (
	"cmp"
	"slices"
)

// Sum fills in what the recordings come to together.
func (r *Result) Sum() {
	r.Total, r.Rules = total(r.Recordings), totalOfRules(r.Recordings)
}

func total(recs []Recording) *Score {
	var out *Score
	for i := range recs {
		s := recs[i].Score
		if s == nil {
			continue
		}
		if out == nil {
			out = &Score{}
		}
		for _, n := range []struct {
			to   *int
			from int
		}{
			{&out.Labels, s.Labels}, {&out.Detected, s.Detected}, {&out.Declared, s.Declared}, {&out.FalseIncidents, s.FalseIncidents},
			{&out.FalsePages, s.FalsePages}, {&out.Fragments, s.Fragments}, {&out.Merged, s.Merged}, {&out.Causes, s.Causes},
			{&out.CauseFirst, s.CauseFirst}, {&out.CauseFirst3, s.CauseFirst3}, {&out.Scopes, s.Scopes}, {&out.ScopeFirst, s.ScopeFirst},
			{&out.ScopeFirst3, s.ScopeFirst3}, {&out.Services, s.Services}, {&out.ServiceHits, s.ServiceHits},
		} {
			*n.to += n.from
		}
		out.QuietHours += s.QuietHours
		out.delays = append(out.delays, s.delays...)
	}
	if out != nil {
		out.finish()
	}
	return out
}

func totalOfRules(recs []Recording) []RuleScore {
	by := map[string]*RuleScore{}
	labelled, labels, quiet := false, 0, 0.0
	for i := range recs {
		if s := recs[i].Score; s != nil {
			labelled, labels, quiet = true, labels+s.Labels, quiet+s.QuietHours
		}
		for k := range recs[i].Rules {
			o := &recs[i].Rules[k]
			r := by[o.Rule]
			if r == nil {
				r = &RuleScore{Rule: o.Rule, Kind: o.Kind, Shadow: o.Shadow}
				by[o.Rule] = r
			}
			r.add(o)
		}
	}
	out := make([]RuleScore, 0, len(by))
	for _, r := range by {
		r.labels, r.quietHours = labels, quiet
		r.finish(labelled)
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b RuleScore) int { return cmp.Compare(a.Rule, b.Rule) })
	return out
}
