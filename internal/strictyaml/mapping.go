package strictyaml

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"

	"go.yaml.in/yaml/v3"
)

type pair struct{ key, value *yaml.Node }

// pairs are the keys of a mapping with merges (<<) resolved: the mapping's own keys win, then earlier merges.
// Duplicates within one mapping are refused.
func (d *decoder) pairs(n *yaml.Node) []pair {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	var out []pair
	lines := map[string]int{}
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolve(n.Content[i]), n.Content[i+1]
		if key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge" {
			merges = append(merges, value)
			continue
		}
		if key.Kind != yaml.ScalarNode || isNull(key) || !knownTag(key) {
			d.fail(n.Content[i], "a key must be a word")
			continue
		}
		if line, dup := lines[key.Value]; dup {
			d.failHint(n.Content[i], fmt.Sprintf("first on line %d", line), "key %s is given twice", quote(key.Value))
			continue
		}
		lines[key.Value] = n.Content[i].Line
		out = append(out, pair{n.Content[i], value})
	}
	for _, m := range merges {
		out = d.merge(m, out, lines)
	}
	return out
}

func (d *decoder) merge(at *yaml.Node, out []pair, have map[string]int) []pair {
	m := resolve(at)
	sources := []*yaml.Node{m}
	if m.Kind == yaml.SequenceNode {
		sources = m.Content
	}
	for _, source := range sources {
		source = resolve(source)
		if source.Kind != yaml.MappingNode {
			d.fail(at, "a merge (<<) needs a mapping or a list of mappings")
			continue
		}
		for _, p := range d.pairs(source) {
			name := resolve(p.key).Value
			if _, dup := have[name]; !dup {
				have[name] = p.key.Line
				out = append(out, p)
			}
		}
	}
	return out
}

func (d *decoder) structure(n *yaml.Node, v reflect.Value, what string) {
	if !isNull(n) && !d.is(n, yaml.MappingNode, what) {
		return
	}
	l := layoutOf(v.Type())
	for _, index := range l.inlined {
		setDefaults(v.FieldByIndex(index))
	}
	setDefaults(v)
	places := Positions{"": PosOf(n)}
	var rest []pair
	for _, p := range d.pairs(n) {
		name := resolve(p.key).Value
		f, known := l.fields[name]
		switch {
		case known:
			places[name] = PosOf(p.value)
			if f.required && isEmpty(resolve(p.value)) {
				d.fail(p.value, "%q is required and must not be empty", name)
				continue
			}
			d.value(p.value, v.FieldByIndex(f.index), strconv.Quote(name))
		case l.rest != nil:
			places[name] = PosOf(p.value)
			rest = append(rest, p)
		default:
			d.failHint(p.key, hintFor(name, l.names), "unknown field %s", quote(name))
		}
	}
	for _, name := range l.names {
		if _, given := places[name]; !given && l.fields[name].required {
			d.fail(n, "%q is required", name)
		}
	}
	if rest != nil {
		d.entries(rest, v.FieldByIndex(l.rest))
	}
	for _, index := range l.pos {
		v.FieldByIndex(index).Set(reflect.ValueOf(places[""]))
	}
	for _, index := range l.positions {
		v.FieldByIndex(index).Set(reflect.ValueOf(places))
	}
}

func setDefaults(v reflect.Value) {
	if v.CanAddr() && v.Addr().CanInterface() {
		if s, ok := v.Addr().Interface().(Defaulter); ok {
			s.SetDefaults()
		}
	}
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, what string) {
	if d.is(n, yaml.MappingNode, what) {
		d.entries(d.pairs(n), v)
	}
}

// entries replaces the map: what a file says about a map is all of it.
func (d *decoder) entries(pairs []pair, v reflect.Value) {
	fresh := reflect.MakeMapWithSize(v.Type(), len(pairs))
	for _, p := range pairs {
		name := resolve(p.key).Value
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		what := "key " + quote(name)
		before := len(d.errs)
		if u, ok := key.Addr().Interface().(encoding.TextUnmarshaler); ok {
			d.text(resolve(p.key), key, u, what)
		} else {
			d.scalar(resolve(p.key), key, what)
		}
		d.value(p.value, value, quote(name))
		if len(d.errs) == before {
			fresh.SetMapIndex(key, value)
		}
	}
	v.Set(fresh)
}

// generic decodes without a target type: map[string]any, []any, string, int64, float64, bool or nil.
func (d *decoder) generic(n *yaml.Node, what string) any {
	n = resolve(n)
	if !knownTag(n) {
		d.fail(n, "%s has a tag of its own (!…), which is not allowed here", what)
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for _, p := range d.pairs(n) {
			name := resolve(p.key).Value
			out[name] = d.generic(p.value, quote(name))
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, len(n.Content))
		for i, item := range n.Content {
			out[i] = d.generic(item, fmt.Sprintf("item %d of %s", i+1, what))
		}
		return out
	default:
		return genericScalar(n)
	}
}

// isEmpty is the emptiness that a required field must not have.
func isEmpty(n *yaml.Node) bool {
	if n.Kind == yaml.ScalarNode {
		return isNull(n) || n.Value == ""
	}
	return len(n.Content) == 0
}
