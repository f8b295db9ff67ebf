package scenario

import (
	"slices"

	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// check finds names that nothing answers to and numbers that make no sense: a misspelt driver would otherwise be a
// scenario in which quietly nothing happens.
func (s *Scenario) check(file string) error {
	c := checker{s: s, file: file, drivers: map[string]bool{}}
	if s.file.End <= s.file.Start {
		c.fail(strictyaml.Pos{File: file}, "the scenario ends before it starts")
	}
	if c.world(); len(c.errs) > 0 {
		return c.errs.Err()
	}
	for _, d := range s.file.Drivers {
		c.drivers[d.Name] = true
		c.shift(d.Pos, d.Shift)
		for i := 1; i < len(d.Points); i++ {
			if d.Points[i].At <= d.Points[i-1].At {
				c.fail(d.Pos, "driver %q: the points must be in order of time", d.Name)
			}
		}
	}
	for _, e := range s.file.Effects {
		c.driver(e.Pos, e.Driver)
		c.selector(e.On)
	}
	for _, b := range s.file.Bursts {
		c.driver(b.Pos, b.Driver)
		if _, ok := s.tickets.Areas[b.Area]; !ok {
			c.fail(b.Pos, "no tickets are written for area %q", b.Area)
		}
	}
	c.changes()
	for _, a := range s.file.Actors {
		c.shift(a.Pos, a.Shift)
		if s.world.operation(a.Service, a.Operation, a.Access) == nil {
			c.fail(a.Pos, "actor %q: the world has no path %s", a.Name, signal.Path{Service: a.Service, Operation: a.Operation, Access: a.Access})
		}
	}
	for _, in := range s.file.Truth.Incidents {
		for _, d := range in.Drivers {
			c.driver(in.Pos, d)
		}
	}
	return c.errs.Err()
}

type checker struct {
	file    string
	s       *Scenario
	errs    strictyaml.Errors
	drivers map[string]bool
}

func (c *checker) fail(at strictyaml.Pos, format string, args ...any) {
	c.errs = append(c.errs, at.Errorf(format, args...))
}

func (c *checker) driver(at strictyaml.Pos, name string) {
	if !c.drivers[name] {
		c.fail(at, "there is no driver %q", name)
	}
}

func (c *checker) shift(at strictyaml.Pos, name string) {
	if _, ok := c.s.file.Shifts[name]; name != "" && !ok {
		c.fail(at, "there is no shift %q", name)
	}
}

func (c *checker) selector(on selector) {
	if on.Resource != "" {
		if !slices.ContainsFunc(c.s.world.Resources[on.Resource], func(g gaugeFile) bool { return g.Metric == on.Metric }) {
			c.fail(on.Pos, "the world has no gauge %q of resource %q", on.Metric, on.Resource)
		}
		return
	}
	matched := false
	dependents := c.s.catalogue.dependents(on.DependsOn)
	c.s.world.paths(func(p signal.Path, _ *operationFile) { matched = matched || on.matches(p, dependents) })
	if !matched {
		c.fail(on.Pos, "no path of the world is chosen by this")
	}
	for _, name := range on.Services {
		if c.s.world.Services[name] == nil {
			c.fail(on.Pos, "the world has no service %q", name)
		}
	}
}

func (c *checker) changes() {
	ids := map[string]bool{}
	for _, ch := range c.s.file.Changes {
		c.shift(ch.Pos, ch.Shift)
		if ids[ch.ID] {
			c.fail(ch.Pos, "change id %q is used twice", ch.ID)
		}
		ids[ch.ID] = true
		if !slices.Contains(signal.ChangeKinds, signal.ChangeKind(ch.Kind)) {
			c.fail(ch.Pos, "%q is no kind of change", ch.Kind)
		}
		if ch.Target != "" && !c.s.catalogue.has(ch.Target) {
			c.fail(ch.Pos, "the catalogue has no target %q", ch.Target)
		}
	}
	for _, name := range c.s.file.Routine.Services {
		if !c.s.catalogue.has(name) {
			c.fail(strictyaml.Pos{File: c.file}, "routine_changes: the catalogue has no service %q", name)
		}
	}
	if r := c.s.file.Routine; r.PerHour > 0 && len(r.Kinds) == 0 {
		c.fail(strictyaml.Pos{File: c.file}, "routine_changes: kinds are missing")
	}
}

func (c *checker) world() {
	w := &c.s.world
	for name, svc := range w.Services {
		if svc == nil {
			c.fail(strictyaml.Pos{File: c.s.file.World}, "service %q is empty", name)
			continue
		}
		if !c.s.catalogue.has(name) {
			c.fail(svc.Pos, "the catalogue has no service %q", name)
		}
		for _, op := range svc.Operations {
			if (op.Route == "") == (op.RPC == "") {
				c.fail(op.Pos, "an operation has either a route or an rpc")
			}
		}
	}
	for name, gauges := range w.Resources {
		for _, g := range gauges {
			if !c.s.catalogue.has(name) {
				c.fail(g.Pos, "the catalogue has no resource %q", name)
			}
			if g.Every <= 0 {
				c.fail(g.Pos, "every must be positive")
			}
		}
	}
	for _, svc := range c.s.catalogue.Services {
		for _, d := range svc.DependsOn {
			if !c.s.catalogue.has(d) {
				c.fail(svc.Pos, "%s depends on %q, which the catalogue does not have", svc.Name, d)
			}
		}
	}
}
