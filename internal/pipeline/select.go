package pipeline

import (
	"maps"
	"slices"
	"strings"

	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// minKeep is the least part that a sample keeps: what one request may stand for is bounded.
const minKeep = 1e-6

// Match tells whether the request, as it would be counted, is dropped.
func (r *DropRule) Match(q *signal.Request) bool {
	if !r.Service.Match(q.Path.Service) || !r.Operation.Match(q.Path.Operation) || !r.Status.Match(q.Status) || !r.Error.Match(q.Error) ||
		r.Access != nil && *r.Access != q.Path.Access || r.Outcome != nil && *r.Outcome != q.Outcome {
		return false
	}
	for name, glob := range r.Attributes {
		if v := q.Attributes.Get(name); v == "" || !glob.Match(v) {
			return false
		}
	}
	return true
}

func (r *DropRule) matchesAll() bool {
	return r.Service.IsZero() && r.Operation.IsZero() && r.Access == nil && r.Status.IsZero() && r.Error.IsZero() && r.Outcome == nil && len(r.Attributes) == 0
}

// conditions are those that both kinds of rules have.
func (r *SampleRule) conditions() DropRule {
	return DropRule{Service: r.Service, Operation: r.Operation, Access: r.Access, Status: r.Status, Error: r.Error, Outcome: r.Outcome, Attributes: r.Attributes, Places: r.Places}
}

// Match tells whether the rule is about the request.
func (r *SampleRule) Match(q *signal.Request) bool {
	c := r.conditions()
	return c.Match(q)
}

func (p *Pipeline) lintSelection() (errs strictyaml.Errors) {
	for i := range p.Requests.Drop {
		r := &p.Requests.Drop[i]
		if r.matchesAll() {
			errs = append(errs, r.Places.Of("").Errorf("the rule drops every request").WithHint("give service, operation, access, status, error, outcome or attributes"))
		}
		errs = append(errs, p.lintNames(r)...)
	}
	for i := range p.Requests.Sample {
		r := &p.Requests.Sample[i]
		if !(r.Keep >= minKeep && r.Keep < 1) {
			errs = append(errs, r.Places.Of("keep").Errorf("keep must be above 0 and below 1, not %v", r.Keep).WithHint("0.1 keeps one request in ten, which then counts ten times"))
		}
		c := r.conditions()
		errs = append(errs, p.lintNames(&c)...)
	}
	return errs
}

// lintNames refuses attributes that are not counted: the rule would never match.
func (p *Pipeline) lintNames(r *DropRule) (errs strictyaml.Errors) {
	known := p.Requests.Attributes
	if len(known) == 0 {
		return nil // native events bring their own
	}
	for _, name := range slices.Sorted(maps.Keys(r.Attributes)) {
		if _, ok := known[name]; !ok {
			errs = append(errs, r.Places.Of("attributes").Errorf("attribute %q is not counted", name).WithHint("known: %s", strings.Join(slices.Sorted(maps.Keys(known)), ", ")))
		}
	}
	return errs
}
