package route

import (
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// Kind is a kind of integration: the key of its list in a receiver, what it does, and how its part is read.
// The list of all kinds is in respond/receivers.
type Kind struct {
	Key    string // pagerduty_configs
	Name   string // pagerduty
	Pages  bool   // it wakes people
	Decode func(n *yaml.Node) (any, error)
}

// Integration is one way out of a receiver. Config is what the kind's Decode made of it.
type Integration struct {
	Kind   Kind
	Index  int
	Config any
	Pos    strictyaml.Pos
}

// Receiver is a named list of integrations.
type Receiver struct {
	Name strictyaml.Located[string] `yaml:"name" strict:"required"`
	// Fallback is paged as well when this receiver's pages have failed for FallbackAfter.
	Fallback      strictyaml.Located[string] `yaml:"fallback"`
	FallbackAfter strictyaml.Duration        `yaml:"fallback_after"`
	Rest          map[string]yaml.Node       `yaml:",inline"`
	Positions     strictyaml.Positions       `yaml:"-"`
	Integrations  []Integration              `yaml:"-"`
}

// SetDefaults waits five minutes for the first receiver before the second is paged.
func (r *Receiver) SetDefaults() { r.FallbackAfter = strictyaml.Duration(5 * time.Minute) }

// Pages tells whether the receiver can wake somebody.
func (r *Receiver) Pages() bool {
	return slices.ContainsFunc(r.Integrations, func(i Integration) bool { return i.Kind.Pages })
}

// Route is a node of the tree. What a node leaves out it takes from its parent.
type Route struct {
	Receiver      strictyaml.Located[string]   `yaml:"receiver"`
	Matchers      Matchers                     `yaml:"matchers"`
	Continue      bool                         `yaml:"continue"`
	GroupWait     *strictyaml.Duration         `yaml:"group_wait"`
	GroupInterval *strictyaml.Duration         `yaml:"group_interval"`
	Active        []strictyaml.Located[string] `yaml:"active_time_intervals"`
	Mute          []strictyaml.Located[string] `yaml:"mute_time_intervals"`
	Routes        []*Route                     `yaml:"routes"`
	// Alertmanager's keys for what the detector does before a route sees anything: named to be refused with a reason.
	GroupBy        *strictyaml.Located[yaml.Node] `yaml:"group_by"`
	RepeatInterval *strictyaml.Located[yaml.Node] `yaml:"repeat_interval"`
	Positions      strictyaml.Positions           `yaml:"-"`
}

// NamedInterval is an entry of time_intervals.
type NamedInterval struct {
	Name      strictyaml.Located[string] `yaml:"name" strict:"required"`
	Intervals []TimeInterval             `yaml:"time_intervals" strict:"required"`
}

// Global holds what integrations share. The program may set these after loading, as the demo does.
type Global struct {
	// ExternalURL is where the console is reached; links in pages begin with it.
	ExternalURL  string `yaml:"external_url"`
	PagerDutyURL string `yaml:"pagerduty_url"`
	SlackAPIURL  string `yaml:"slack_api_url"`
	// SecretsDir is where relative *_file names are looked up; empty means beside the routes file.
	SecretsDir string `yaml:"secrets_dir"`
}

// Config is a routes file.
type Config struct {
	Global    Global          `yaml:"global"`
	Route     *Route          `yaml:"route" strict:"required"`
	Receivers []*Receiver     `yaml:"receivers" strict:"required"`
	Intervals []NamedInterval `yaml:"time_intervals"`

	intervals map[string][]TimeInterval
	receivers map[string]*Receiver
}

// Load reads a routes file and reports all its mistakes with their places.
func Load(file string, data []byte, kinds []Kind) (*Config, error) {
	c := &Config{}
	if err := strictyaml.Decode(file, data, c); err != nil {
		return nil, err
	}
	var errs strictyaml.Errors
	c.decodeReceivers(kinds, &errs)
	c.checkIntervals(&errs)
	c.checkTree(&errs)
	c.checkFallbacks(&errs)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

// Receiver finds a receiver by name, or gives nil.
func (c *Config) Receiver(name string) *Receiver { return c.receivers[name] }

func (c *Config) decodeReceivers(kinds []Kind, errs *strictyaml.Errors) {
	c.receivers = map[string]*Receiver{}
	known := make([]string, len(kinds))
	for i, k := range kinds {
		known[i] = k.Key
	}
	for _, r := range c.Receivers {
		if _, dup := c.receivers[r.Name.Value]; dup {
			errs.Add(r.Name.Pos, fmt.Errorf("receiver %q is given twice", r.Name.Value))
		}
		c.receivers[r.Name.Value] = r
		for key := range r.Rest {
			if !slices.Contains(known, key) {
				e := r.Positions.Of(key).Errorf("unknown field %q in receiver %q", key, r.Name.Value)
				if s := strictyaml.Suggest(key, append([]string{"name", "fallback", "fallback_after"}, known...)); s != "" {
					_ = e.WithHint("did you mean %q?", s)
				}
				errs.Add(strictyaml.Pos{}, e)
			}
		}
		for _, k := range kinds { // in the fixed order of the list, not of the map
			node, ok := r.Rest[k.Key]
			if !ok {
				continue
			}
			var items []yaml.Node
			if err := strictyaml.DecodeNode(&node, &items); err != nil {
				errs.Add(r.Positions.Of(k.Key), err)
				continue
			}
			for i := range items {
				cfg, err := k.Decode(&items[i])
				pos := strictyaml.PosOf(&items[i])
				errs.Add(pos, err)
				r.Integrations = append(r.Integrations, Integration{Kind: k, Index: i, Config: cfg, Pos: pos})
			}
		}
	}
}

func (c *Config) checkIntervals(errs *strictyaml.Errors) {
	c.intervals = map[string][]TimeInterval{}
	for _, n := range c.Intervals {
		if _, dup := c.intervals[n.Name.Value]; dup {
			errs.Add(n.Name.Pos, fmt.Errorf("time interval %q is given twice", n.Name.Value))
		}
		c.intervals[n.Name.Value] = n.Intervals
	}
}

func (c *Config) checkTree(errs *strictyaml.Errors) {
	root := c.Route
	if root.Receiver.Value == "" {
		errs.Add(root.Positions.Of(""), fmt.Errorf("the root route needs a receiver: it takes what no other route matches"))
	}
	if len(root.Matchers) > 0 {
		errs.Add(root.Positions.Of("matchers"), fmt.Errorf("the root route must match everything, so it has no matchers"))
	}
	if len(root.Active)+len(root.Mute) > 0 {
		errs.Add(root.Positions.Of(""), fmt.Errorf("the root route has no time intervals; put them on a child"))
	}
	c.checkRoute(root, root.Receiver.Value, root.GroupWait, errs)
}

func (c *Config) checkRoute(r *Route, receiver string, wait *strictyaml.Duration, errs *strictyaml.Errors) {
	if r.Receiver.Value != "" {
		receiver = r.Receiver.Value
	}
	if r.GroupWait != nil {
		wait = r.GroupWait
	}
	rcv := c.receivers[receiver]
	if rcv == nil && receiver != "" && r.Receiver.Value != "" {
		names := make([]string, 0, len(c.Receivers))
		for _, k := range c.Receivers {
			names = append(names, k.Name.Value)
		}
		e := r.Receiver.Pos.Errorf("receiver %q is not defined", receiver)
		if s := strictyaml.Suggest(receiver, names); s != "" {
			_ = e.WithHint("did you mean %q?", s)
		}
		errs.Add(strictyaml.Pos{}, e)
	}
	if rcv != nil && rcv.Pages() && wait != nil && *wait > 0 {
		errs.Add(r.Positions.Of("group_wait"), fmt.Errorf("receiver %q pages, and pages do not wait: group_wait must be 0s here", receiver))
	}
	if r.GroupBy != nil {
		errs.Add(r.GroupBy.Pos, &strictyaml.Error{Msg: "group_by is not used here", Hint: "incidents are grouped by the detector; each is one notification"})
	}
	if r.RepeatInterval != nil {
		errs.Add(r.RepeatInterval.Pos, &strictyaml.Error{Msg: "repeat_interval is not used here", Hint: "an incident is paged once and again when its severity rises"})
	}
	for _, n := range append(slices.Clone(r.Active), r.Mute...) {
		if _, ok := c.intervals[n.Value]; !ok {
			errs.Add(n.Pos, fmt.Errorf("time interval %q is not defined", n.Value))
		}
	}
	for _, child := range r.Routes {
		c.checkRoute(child, receiver, wait, errs)
	}
}

func (c *Config) checkFallbacks(errs *strictyaml.Errors) {
	for _, r := range c.Receivers {
		if r.Fallback.Value == "" {
			continue
		}
		second := c.receivers[r.Fallback.Value]
		switch second {
		case nil:
			errs.Add(r.Fallback.Pos, fmt.Errorf("fallback receiver %q is not defined", r.Fallback.Value))
		case r:
			errs.Add(r.Fallback.Pos, fmt.Errorf("receiver %q cannot be its own fallback", r.Name.Value))
		}
	}
}

// Warnings are what is allowed and probably not meant: receivers and intervals that nothing uses. elsewhere names
// receivers that are used outside of this file, as for Tocsin's pages about itself.
func (c *Config) Warnings(elsewhere ...string) strictyaml.Errors {
	used := map[string]bool{}
	for _, name := range elsewhere {
		used["receiver "+name] = true
	}
	var walk func(*Route)
	walk = func(r *Route) {
		used["receiver "+r.Receiver.Value] = true
		for _, n := range append(slices.Clone(r.Active), r.Mute...) {
			used["time interval "+n.Value] = true
		}
		for _, child := range r.Routes {
			walk(child)
		}
	}
	walk(c.Route)
	var out strictyaml.Errors
	for _, r := range c.Receivers {
		used["receiver "+r.Fallback.Value] = true
		if len(r.Integrations) == 0 {
			out.Add(r.Name.Pos, fmt.Errorf("receiver %q leads nowhere: what is routed to it is told to nobody", r.Name.Value))
		}
	}
	for _, r := range c.Receivers {
		if !used["receiver "+r.Name.Value] {
			out.Add(r.Name.Pos, fmt.Errorf("receiver %q is used by no route", r.Name.Value))
		}
	}
	for _, n := range c.Intervals {
		if !used["time interval "+n.Name.Value] {
			out.Add(n.Name.Pos, fmt.Errorf("time interval %q is used by no route", n.Name.Value))
		}
	}
	return out
}
