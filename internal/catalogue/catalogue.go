// Package catalogue is the model of what exists: areas, services and resources, who owns them, what depends on
// what, and the words customers use. It reads catalogue.yaml and answers questions on it; it knows nothing of
// what happens at run time. Detection, the console and the providers use it.
package catalogue

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"slices"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// Area is a part of the product as customers know it.
type Area struct {
	Name  string         `yaml:"name" strict:"required"`
	Owner string         `yaml:"owner"`
	Words []string       `yaml:"words"`
	Extra map[string]any `yaml:",inline"`
	Pos   strictyaml.Pos `yaml:"-"`
}

// Service answers requests. Tier 1 is the most important, 0 is not said.
type Service struct {
	Name      string                       `yaml:"name" strict:"required"`
	Area      string                       `yaml:"area"`
	Owner     string                       `yaml:"owner"`
	Tier      int                          `yaml:"tier"`
	DependsOn []strictyaml.Located[string] `yaml:"depends_on"`
	Words     []string                     `yaml:"words"`
	Extra     map[string]any               `yaml:",inline"`
	Pos       strictyaml.Pos               `yaml:"-"`
}

// Resource is something with limits that services use.
type Resource struct {
	Name      string                       `yaml:"name" strict:"required"`
	Kind      string                       `yaml:"kind"`
	Owner     string                       `yaml:"owner"`
	DependsOn []strictyaml.Located[string] `yaml:"depends_on"`
	UsedBy    []strictyaml.Located[string] `yaml:"used_by"`
	Extra     map[string]any               `yaml:",inline"`
	Pos       strictyaml.Pos               `yaml:"-"`
}

// file is strict where entries are not: what is of use to others is kept beside a service, but a misspelt list would leave its
// services out without a word.
type file struct {
	Areas     []Area     `yaml:"areas"`
	Services  []Service  `yaml:"services"`
	Resources []Resource `yaml:"resources"`
}

// Catalogue is immutable after it is made. The zero of *Catalogue is not usable; Empty is.
type Catalogue struct {
	Areas     []Area
	Services  []Service
	Resources []Resource
	// Revision is the hash of the file's content.
	Revision string

	text      string
	areas     map[string]*Area
	services  map[string]*Service
	resources map[string]*Resource
	down      map[string][]string // node → what it depends on
	up        map[string][]string // node → what depends on it
	words     []areaWords
}

// Empty is the catalogue of an installation that has none yet.
func Empty() *Catalogue { c, _ := Parse("", nil); return c }

// Text is what it was read from.
func (c *Catalogue) Text() string { return c.text }

// Load reads a catalogue file.
func Load(path string) (*Catalogue, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, b)
}

// Parse reads a catalogue from data; name is for messages. All mistakes are reported together.
func Parse(name string, data []byte) (*Catalogue, error) {
	var f file
	if len(data) > 0 {
		if err := strictyaml.Decode(name, data, &f); err != nil {
			return nil, err
		}
	}
	sum := sha256.Sum256(data)
	c := &Catalogue{
		Areas: f.Areas, Services: f.Services, Resources: f.Resources, Revision: hex.EncodeToString(sum[:8]),
		text: string(data), areas: map[string]*Area{}, services: map[string]*Service{}, resources: map[string]*Resource{},
		down: map[string][]string{}, up: map[string][]string{},
	}
	errs := c.index()
	c.link(&errs)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	c.indexWords()
	return c, nil
}

func (c *Catalogue) index() (errs strictyaml.Errors) {
	for i := range c.Areas {
		a := &c.Areas[i]
		if c.areas[a.Name] != nil {
			errs = append(errs, a.Pos.Errorf("area %q is listed twice", a.Name))
		}
		c.areas[a.Name] = a
	}
	for i := range c.Services {
		s := &c.Services[i]
		if c.services[s.Name] != nil {
			errs = append(errs, s.Pos.Errorf("service %q is listed twice", s.Name))
		}
		c.services[s.Name] = s
	}
	for i := range c.Resources {
		r := &c.Resources[i]
		if c.resources[r.Name] != nil || c.services[r.Name] != nil {
			errs = append(errs, r.Pos.Errorf("resource %q is listed twice, or is also a service", r.Name))
		}
		c.resources[r.Name] = r
	}
	return errs
}

// link draws the edges. A name that nothing in the file carries is a mistake: a misspelt dependency would silently
// keep apart what belongs together.
func (c *Catalogue) link(errs *strictyaml.Errors) {
	edge := func(from string, to strictyaml.Located[string], reverse bool) {
		if c.services[to.Value] == nil && c.resources[to.Value] == nil {
			*errs = append(*errs, to.Pos.Errorf("%q is neither a service nor a resource of this catalogue", to.Value))
			return
		}
		a, b := from, to.Value
		if reverse {
			a, b = b, a
		}
		if a == b {
			*errs = append(*errs, to.Pos.Errorf("%q depends on itself", a))
			return
		}
		if !slices.Contains(c.down[a], b) {
			c.down[a] = append(c.down[a], b)
			c.up[b] = append(c.up[b], a)
		}
	}
	for _, s := range c.Services {
		if s.Area != "" && len(c.Areas) > 0 && c.areas[s.Area] == nil {
			*errs = append(*errs, s.Pos.Errorf("service %q names the area %q, which is not listed", s.Name, s.Area))
		}
		for _, d := range s.DependsOn {
			edge(s.Name, d, false)
		}
	}
	for _, r := range c.Resources {
		for _, d := range r.DependsOn {
			edge(r.Name, d, false)
		}
		for _, u := range r.UsedBy {
			edge(r.Name, u, true)
		}
	}
	for _, m := range []map[string][]string{c.down, c.up} {
		for _, l := range m {
			slices.Sort(l)
		}
	}
}
