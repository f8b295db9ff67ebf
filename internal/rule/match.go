package rule

import (
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// Share is a fraction, written as 5% or 0.05.
type Share float64

// UnmarshalText reads both spellings.
func (s *Share) UnmarshalText(b []byte) error {
	text, percent := strings.CutSuffix(strings.TrimSpace(string(b)), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("%q is no share, want for example 5%% or 0.05", b)
	}
	if percent {
		v /= 100
	}
	if v < 0 || v > 1 {
		return fmt.Errorf("share %q is not between 0 and 100%%", b)
	}
	*s = Share(v)
	return nil
}

// MarshalText writes percent.
func (s Share) MarshalText() ([]byte, error) {
	return []byte(strconv.FormatFloat(float64(s)*100, 'g', -1, 64) + "%"), nil
}

// PathMatch selects paths by globs; an empty field matches all.
type PathMatch struct {
	Service    string            `yaml:"service"`
	Operation  string            `yaml:"operation"`
	Access     string            `yaml:"access"`
	Area       string            `yaml:"area"`
	Attributes map[string]string `yaml:"attributes"`
}

// Matches tells whether a path of an area is selected.
func (m *PathMatch) Matches(p signal.Path, area string) bool {
	return glob(m.Service, p.Service) && glob(m.Operation, p.Operation) &&
		(m.Access == "" || m.Access == p.Access.String()) && glob(m.Area, area)
}

// GaugeMatch selects gauges by globs.
type GaugeMatch struct {
	Resource string `yaml:"resource"`
	Metric   string `yaml:"metric"`
	Kind     string `yaml:"kind"` // of the resource in the catalogue
}

// Matches tells whether a gauge of a resource of a kind is selected.
func (m *GaugeMatch) Matches(resource, metric, kind string) bool {
	return glob(m.Resource, resource) && glob(m.Metric, metric) && glob(m.Kind, kind)
}

// MatchesAny tells whether a name is selected by a list of globs; an empty list selects all.
func MatchesAny(globs []string, name string) bool {
	for _, g := range globs {
		if glob(g, name) {
			return true
		}
	}
	return len(globs) == 0
}

// glob matches as in a shell, but that * crosses slashes: resources are named with them.
func glob(pattern, name string) bool {
	if pattern == "" || pattern == "*" || pattern == name {
		return true
	}
	if !strings.ContainsAny(pattern, "*?[\\") {
		return false
	}
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", "\x01"), strings.ReplaceAll(name, "/", "\x01"))
	return ok && err == nil
}

func checkGlobs(pos strictyaml.Pos, globs ...string) (errs strictyaml.Errors) {
	for _, g := range globs {
		if _, err := path.Match(g, ""); err != nil {
			errs = append(errs, pos.Errorf("%q is no glob: a bracket is not closed", g))
		}
	}
	return errs
}

// MatchesAttributes tells whether a slice has every attribute that is asked for, with a value that is selected.
func (m *PathMatch) MatchesAttributes(a signal.Attributes) bool {
	for name, pattern := range m.Attributes {
		if v := a.Get(name); v == "" || !glob(pattern, v) {
			return false
		}
	}
	return true
}
