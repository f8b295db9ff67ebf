package rule

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// Known is what an installation has that rules may name. A nil list says that nothing is known of it: then nothing is held against it.
type Known struct {
	Services   []string
	Areas      []string
	Resources  []string
	Kinds      []string // of resources
	Attributes []string // that pipelines keep; nil where one keeps all
}

// Warnings finds rules that load and will still disappoint: that match nothing, ask for attributes that no cell has, say the same as
// another, or wake somebody without saying what to do. They are no errors, since catalogues are incomplete.
func (s *Set) Warnings(k Known) (out []string) {
	warn := func(pos strictyaml.Pos, format string, args ...any) {
		out = append(out, pos.Errorf("warning: "+format, args...).Error())
	}
	rules := s.Rules()
	for i := range rules {
		r := &rules[i]
		if r.Annotations["runbook_url"].Value == "" {
			warn(r.Pos, "%s has no runbook_url: whoever is woken by it has nothing to begin with", r.Alert)
		}
		for _, m := range r.unmatched(&k) {
			warn(r.Pos, "%s: %s", r.Alert, m)
		}
		for _, m := range s.unfed(r) {
			warn(r.Pos, "%s: %s", r.Alert, m)
		}
		for j := range rules[:i] {
			if why := rules[j].overlaps(r); why != "" {
				warn(r.Pos, "%s %s %s (%s)", r.Alert, why, rules[j].Alert, rules[j].Pos)
			}
		}
	}
	return out
}

// selection is what a rule selects by, whatever its kind.
func (r *Rule) selection() (path *PathMatch, gauge *GaugeMatch, areas, attributes []string) {
	switch p := r.Params.(type) {
	case *FailureRate:
		return &p.Match, nil, nil, append(SortedKeys(p.Match.Attributes), p.Slices...)
	case *Latency:
		return &p.Match, nil, nil, SortedKeys(p.Match.Attributes)
	case *Absence:
		return &p.Match, nil, nil, nil
	case *Retries:
		return &p.Match, nil, nil, nil
	case *Saturation:
		return nil, &p.Match, nil, nil
	case *Gauge:
		return nil, &p.Match, nil, nil
	case *Backlog:
		return nil, &p.Match, nil, nil
	case *Support:
		return nil, nil, p.Areas, nil
	case *HighImpact:
		return nil, nil, p.Areas, nil
	}
	return nil, nil, nil, nil
}

func (r *Rule) unmatched(k *Known) (out []string) {
	none := func(what, pattern string, names []string) {
		if pattern != "" && names != nil && !slices.ContainsFunc(names, func(n string) bool { return glob(pattern, n) }) {
			out = append(out, fmt.Sprintf("no %s of the catalogue matches %q, so it may never fire", what, pattern))
		}
	}
	path, gauge, areas, attributes := r.selection()
	if path != nil {
		none("service", path.Service, k.Services)
		none("area", path.Area, k.Areas)
	}
	if gauge != nil {
		none("resource", gauge.Resource, k.Resources)
		none("resource's kind", gauge.Kind, k.Kinds)
	}
	for _, a := range areas {
		none("area", a, k.Areas)
	}
	// A list of slices is often longer than what one installation has; an attribute that is asked for must be there.
	needed := 0
	if path != nil {
		needed = len(path.Attributes)
	}
	missing := 0
	for i, a := range attributes {
		if k.Attributes == nil || slices.Contains(k.Attributes, a) {
			continue
		}
		missing++
		if i < needed {
			out = append(out, fmt.Sprintf("no pipeline keeps the attribute %q, so it can never fire", a))
		}
	}
	if n := len(attributes) - needed; n > 0 && missing == len(attributes) {
		out = append(out, fmt.Sprintf("no pipeline keeps any of its slices (%v), so no slice is judged", attributes[needed:]))
	}
	return out
}

// overlaps says how two rules tell the same story twice.
func (r *Rule) overlaps(o *Rule) string {
	if r.Kind != o.Kind || r.Shadow != o.Shadow || r.Kind == "high_impact" || r.Labels["severity"].Value != o.Labels["severity"].Value {
		return ""
	}
	if r.JudgesAs(o) {
		return "judges the same as"
	}
	a, ok := r.Params.(*FailureRate)
	b, ok2 := o.Params.(*FailureRate)
	if !ok || !ok2 || a.Above == 0 || b.Above == 0 {
		return ""
	}
	x, y := *a, *b
	x.Above, y.Above = 0, 0
	if reflect.DeepEqual(x, y) {
		return "differs in its threshold alone, at the same severity, from"
	}
	return ""
}
