package catalogue

import "slices"

// Service returns a service, or nil.
func (c *Catalogue) Service(name string) *Service { return c.services[name] }

// Resource returns a resource, or nil.
func (c *Catalogue) Resource(name string) *Resource { return c.resources[name] }

// Area returns an area, or nil.
func (c *Catalogue) Area(name string) *Area { return c.areas[name] }

// AreaOf is the area of a service; a service without one is an area of its own.
func (c *Catalogue) AreaOf(service string) string {
	if s := c.services[service]; s != nil && s.Area != "" {
		return s.Area
	}
	return service
}

// OwnerOf is who owns a service, resource or area; a service without an owner has its area's.
func (c *Catalogue) OwnerOf(name string) string {
	if s := c.services[name]; s != nil {
		if s.Owner == "" && c.areas[s.Area] != nil {
			return c.areas[s.Area].Owner
		}
		return s.Owner
	}
	if r := c.resources[name]; r != nil {
		return r.Owner
	}
	if a := c.areas[name]; a != nil {
		return a.Owner
	}
	return ""
}

// TierOf is the tier of a service; 0 is not said.
func (c *Catalogue) TierOf(service string) int {
	if s := c.services[service]; s != nil {
		return s.Tier
	}
	return 0
}

// HasEdges tells whether anything is known of what depends on what.
func (c *Catalogue) HasEdges() bool { return len(c.down) > 0 }

// DependsOn lists what a node uses directly, sorted.
func (c *Catalogue) DependsOn(node string) []string { return c.down[node] }

// UsedBy lists what uses a node directly, sorted.
func (c *Catalogue) UsedBy(node string) []string { return c.up[node] }

// Upstream gives everything a node depends on within hops, with its distance.
func (c *Catalogue) Upstream(node string, hops int) map[string]int { return reach(c.down, node, hops) }

// Dependents gives everything that depends on a node within hops, with its distance.
func (c *Catalogue) Dependents(node string, hops int) map[string]int { return reach(c.up, node, hops) }

// DependentServices counts in services only, sorted.
func (c *Catalogue) DependentServices(node string, hops int) []string {
	var out []string
	for n := range c.Dependents(node, hops) {
		if c.services[n] != nil {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

func reach(edges map[string][]string, from string, hops int) map[string]int {
	seen := map[string]int{}
	next := []string{from}
	for d := 1; d <= hops && len(next) > 0; d++ {
		var more []string
		for _, n := range next {
			for _, m := range edges[n] {
				if _, ok := seen[m]; !ok && m != from {
					seen[m] = d
					more = append(more, m)
				}
			}
		}
		next = more
	}
	return seen
}
