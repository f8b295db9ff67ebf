// Package rule is the model of rule files: their syntax, their lints and their templates. It owns the parameters
// of each kind of rule; how a kind is evaluated is package detect's business. It keeps the keys of Prometheus' rule
// files and replaces `expr` by a `kind` with parameters.
package rule

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// NoData says what a rule makes of missing data.
type NoData string

const (
	Keep  NoData = "keep"
	Alert NoData = "alert"
	OK    NoData = "ok"
	Zero  NoData = "zero"
)

// UnmarshalText accepts the four words.
func (n *NoData) UnmarshalText(b []byte) error {
	switch v := NoData(b); v {
	case Keep, Alert, OK, Zero:
		*n = v
		return nil
	}
	return fmt.Errorf("no_data is %q, want keep, alert, ok or zero", b)
}

// File is one rule file.
type File struct {
	Groups []Group `yaml:"groups" strict:"required"`
}

// Group is evaluated together. Interval is a multiple of the detector's tick.
type Group struct {
	Name        string              `yaml:"name" strict:"required"`
	Interval    strictyaml.Duration `yaml:"interval"`
	Limit       int                 `yaml:"limit"`
	QueryOffset strictyaml.Duration `yaml:"query_offset"`
	Labels      map[string]string   `yaml:"labels"`
	Rules       []Rule              `yaml:"rules" strict:"required"`
	Pos         strictyaml.Pos      `yaml:"-"`
}

// Common is what rules of all kinds have.
type Common struct {
	Alert         string                                `yaml:"alert" strict:"required"`
	Kind          string                                `yaml:"kind" strict:"required"`
	For           strictyaml.Duration                   `yaml:"for"`
	KeepFiringFor strictyaml.Duration                   `yaml:"keep_firing_for"`
	NoData        NoData                                `yaml:"no_data"`
	Shadow        bool                                  `yaml:"shadow"` // findings are recorded, but open nothing and page nobody
	Labels        map[string]strictyaml.Located[string] `yaml:"labels"`
	Annotations   map[string]strictyaml.Located[string] `yaml:"annotations"`
	Pos           strictyaml.Pos                        `yaml:"-"`
}

// Rule is one statement of what is abnormal.
type Rule struct {
	Common
	// Params is one of the parameter structs of kinds.go, by Kind; a pointer.
	Params Params
	// Group is the name of the group it stands in.
	Group string
}

// Params are the parameters of one kind. Check finds what types alone cannot refuse.
type Params interface {
	Check(pos strictyaml.Pos) strictyaml.Errors
}

// UnmarshalStrict reads the common keys and the kind's own from one mapping.
func (r *Rule) UnmarshalStrict(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return strictyaml.PosOf(n).Errorf("a rule is a mapping with the keys alert and kind")
	}
	kind, at := "", n
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "kind" {
			kind, at = n.Content[i+1].Value, n.Content[i+1]
		}
	}
	if kind == "" {
		return strictyaml.PosOf(n).Errorf("the rule has no kind; want one of %s", strings.Join(KindNames(), ", "))
	}
	k, ok := kindByName(kind)
	if !ok {
		return strictyaml.PosOf(at).Errorf("kind %q is none of %s", kind, strings.Join(KindNames(), ", "))
	}
	return k.decode(n, r)
}

// decodeAs reads a rule whose kind has the parameters P.
func decodeAs[P any, PP interface {
	*P
	Params
}](n *yaml.Node, r *Rule) error {
	var both struct {
		Common `yaml:",inline"`
		With   P `yaml:",inline"`
	}
	if err := strictyaml.DecodeNode(n, &both); err != nil {
		return err
	}
	r.Common, r.Params = both.Common, PP(&both.With)
	if r.NoData == "" {
		r.NoData = Keep
	}
	return r.Params.Check(r.Pos).Err()
}

// Set is all rules of an installation, in a fixed order.
type Set struct {
	Groups   []Group
	Revision string
	// Files are the texts that it was read from, by name: whoever has them can make the same set again.
	Files map[string]string
}

// Rules lists all rules in order of file, group and place.
func (s *Set) Rules() (out []Rule) {
	for _, g := range s.Groups {
		out = append(out, g.Rules...)
	}
	return out
}

// Parse reads one file; name is for messages.
func Parse(name string, data []byte) (*File, error) {
	var f File
	if err := strictyaml.Decode(name, data, &f); err != nil {
		return nil, err
	}
	return &f, nil
}

// LoadFS reads every *.yaml below root but tests (*_test.yaml) and the routes, and checks them as one set. All mistakes
// of all files come back together.
func LoadFS(fsys fs.FS, root string) (*Set, error) {
	files := map[string]string{}
	err := fs.WalkDir(fsys, root, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && isRuleFile(p) {
			var data []byte
			data, err = fs.ReadFile(fsys, p)
			files[p] = string(data)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading rules: %w", err)
	}
	return FromFiles(files)
}

// FromFiles makes a set of texts by their names.
func FromFiles(files map[string]string) (*Set, error) {
	set := Set{Files: files}
	var errs strictyaml.Errors
	sum := sha256.New()
	for _, p := range SortedKeys(files) {
		data := []byte(files[p])
		fmt.Fprintf(sum, "%s\x00%d\x00", p, len(data))
		sum.Write(data)
		f, err := Parse(p, data)
		if err != nil {
			errs.Add(strictyaml.Pos{File: p}, err)
			continue
		}
		set.Groups = append(set.Groups, f.Groups...)
	}
	set.Revision = hex.EncodeToString(sum.Sum(nil)[:8])
	errs = append(errs, set.check()...)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return &set, nil
}

func isRuleFile(p string) bool {
	base := p[strings.LastIndexByte(p, '/')+1:]
	return strings.HasSuffix(base, ".yaml") && !strings.HasSuffix(base, "_test.yaml") && base != "routes.yaml"
}

// check holds across files: names are unique, because findings, incidents and silences are known by them.
func (s *Set) check() (errs strictyaml.Errors) {
	groups, alerts := map[string]bool{}, map[string]strictyaml.Pos{}
	for gi := range s.Groups {
		g := &s.Groups[gi]
		if groups[g.Pos.File+"\x00"+g.Name] {
			errs = append(errs, g.Pos.Errorf("group %q stands twice in this file", g.Name))
		}
		groups[g.Pos.File+"\x00"+g.Name] = true
		for ri := range g.Rules {
			r := &g.Rules[ri]
			r.Group = g.Name
			if first, ok := alerts[r.Alert]; ok {
				errs = append(errs, r.Pos.Errorf("alert %q is already defined at %s", r.Alert, first))
			}
			alerts[r.Alert] = r.Pos
			errs = append(errs, r.lint(g)...)
		}
	}
	return errs
}

// SortedKeys gives map keys in order; maps of labels are shown and rendered in it.
func SortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// JudgesAs tells whether two rules have the same parameters, wherever in a file they stand.
func (r *Rule) JudgesAs(o *Rule) bool {
	a, errA := json.Marshal(r.Params)
	b, errB := json.Marshal(o.Params)
	return errA == nil && errB == nil && r.Kind == o.Kind && string(a) == string(b)
}
