package scenario

import (
	"maps"
	"slices"

	"github.com/tocsin-project/tocsin/internal/signal"
)

func (c *catalogueFile) has(name string) bool {
	is := func(s catalogueService) bool { return s.Name == name }
	return slices.ContainsFunc(c.Services, is) || slices.ContainsFunc(c.Resources, is)
}

// dependents are all services that need the named service or resource over any number of steps, the named service
// itself included. An empty name has none.
func (c *catalogueFile) dependents(name string) map[string]bool {
	found := map[string]bool{}
	if name == "" {
		return found
	}
	usedBy := map[string][]string{}
	for _, r := range c.Resources {
		usedBy[r.Name] = append(usedBy[r.Name], r.UsedBy...)
	}
	for _, list := range [][]catalogueService{c.Services, c.Resources} {
		for _, s := range list {
			for _, d := range s.DependsOn {
				usedBy[d] = append(usedBy[d], s.Name)
			}
		}
	}
	for todo := []string{name}; len(todo) > 0; {
		n := todo[0]
		todo = todo[1:]
		if found[n] {
			continue
		}
		found[n] = true
		todo = append(todo, usedBy[n]...)
	}
	return found
}

// matches tells whether a path is chosen; dependents are those of the selector's DependsOn.
func (on *selector) matches(p signal.Path, dependents map[string]bool) bool {
	return on.Resource == "" &&
		(on.DependsOn == "" || dependents[p.Service]) &&
		(len(on.Services) == 0 || slices.Contains(on.Services, p.Service)) &&
		(on.Operation == "" || on.Operation == p.Operation) &&
		(on.Access == nil || *on.Access == p.Access)
}

// paths calls f for every path of the world, in a fixed order.
func (w *worldFile) paths(f func(signal.Path, *operationFile)) {
	for _, name := range slices.Sorted(maps.Keys(w.Services)) {
		ops := w.Services[name].Operations
		for i := range ops {
			f(signal.Path{Service: name, Operation: ops[i].name(), Access: ops[i].Access}, &ops[i])
		}
	}
}

func (w *worldFile) operation(service, operation string, access signal.Access) (found *operationFile) {
	w.paths(func(p signal.Path, o *operationFile) {
		if p == (signal.Path{Service: service, Operation: operation, Access: access}) {
			found = o
		}
	})
	return found
}

// attributes are the combinations of the attribute values of a service, with the share of each.
func (w *worldFile) attributes(service string) ([]signal.Attributes, shares) {
	values := w.Attributes
	if own := w.Services[service].Attributes; own != nil {
		values = own
	}
	combos, weights := [][]signal.Attr{nil}, []float64{1}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		var nextCombos [][]signal.Attr
		var nextWeights []float64
		for i, c := range combos {
			for _, v := range slices.Sorted(maps.Keys(values[name])) {
				nextCombos = append(nextCombos, append(slices.Clone(c), signal.Attr{Name: name, Value: v}))
				nextWeights = append(nextWeights, weights[i]*values[name][v])
			}
		}
		combos, weights = nextCombos, nextWeights
	}
	sets := make([]signal.Attributes, len(combos))
	for i, c := range combos {
		sets[i] = signal.AttributesOf(c...)
	}
	return sets, newShares(weights)
}

// Call is how a path of the world is called.
type Call struct {
	RPC    bool   // over gRPC, else HTTP
	Method string // of HTTP
}

// Call tells how a path is called; a path that the world does not have is guessed by its name.
func (s *Scenario) Call(p signal.Path) Call {
	op := s.world.operation(p.Service, p.Operation, p.Access)
	if op == nil {
		op = &operationFile{Route: p.Operation}
	}
	switch {
	case op.RPC != "":
		return Call{RPC: true}
	case op.Method != "":
		return Call{Method: op.Method}
	case p.Access == signal.Read:
		return Call{Method: "GET"}
	}
	return Call{Method: "POST"}
}
