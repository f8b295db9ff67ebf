package route

import (
	"time"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// Match is one route that an incident takes.
type Match struct {
	Receiver string
	// GroupWait delays the first message, GroupInterval the edits after it; neither delays a page.
	GroupWait, GroupInterval time.Duration
	// Quiet names the interval that keeps this route silent now, empty where it may speak.
	Quiet string
}

// Match walks the tree as Alertmanager does: the first matching child takes the incident unless it says continue, a
// node whose children all decline takes it itself. The root takes what is left, so the result is never empty.
func (c *Config) Match(labels map[string]string, now time.Time) []Match {
	return c.walk(c.Route, Match{}, labels, now)
}

func (c *Config) walk(r *Route, inherited Match, labels map[string]string, now time.Time) []Match {
	if !r.Matchers.Match(labels) {
		return nil
	}
	m := inherited
	m.Quiet = "" // intervals are not inherited: each route says when it speaks
	if r.Receiver.Value != "" {
		m.Receiver = r.Receiver.Value
	}
	if r.GroupWait != nil {
		m.GroupWait = r.GroupWait.Std()
	}
	if r.GroupInterval != nil {
		m.GroupInterval = r.GroupInterval.Std()
	}
	var out []Match
	for _, child := range r.Routes {
		found := c.walk(child, m, labels, now)
		out = append(out, found...)
		if len(found) > 0 && !child.Continue {
			break
		}
	}
	if len(out) > 0 {
		return out
	}
	m.Quiet = c.quiet(r, now)
	return []Match{m}
}

// quiet tells why a route is silent: a mute interval holds, or active ones are given and none holds.
func (c *Config) quiet(r *Route, now time.Time) string {
	if name := c.within(r.Mute, now); name != "" {
		return name
	}
	if len(r.Active) > 0 && c.within(r.Active, now) == "" {
		return "outside " + r.Active[0].Value
	}
	return ""
}

func (c *Config) within(names []strictyaml.Located[string], now time.Time) string {
	for _, n := range names {
		for _, ti := range c.intervals[n.Value] {
			if ti.Contains(now) {
				return n.Value
			}
		}
	}
	return ""
}
