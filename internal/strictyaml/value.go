package strictyaml

import (
	"encoding"
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v3"
)

var nodeType = reflect.TypeFor[yaml.Node]()

// decoder collects mistakes instead of stopping at the first: whoever mends a file wants to see them all.
type decoder struct{ errs Errors }

func (d *decoder) fail(n *yaml.Node, format string, args ...any) { d.failHint(n, "", format, args...) }

func (d *decoder) failHint(n *yaml.Node, hint, format string, args ...any) {
	e := PosOf(n).Errorf(format, args...)
	e.Hint = hint
	d.errs.Add(Pos{}, e)
}

// value decodes n into v, which is addressable; what names it in messages.
func (d *decoder) value(n *yaml.Node, v reflect.Value, what string) {
	n = resolve(n)
	if !knownTag(n) {
		d.fail(n, "%s has a tag of its own (!…), which is not allowed here", what)
		return
	}
	if v.Type() == nodeType {
		v.Set(reflect.ValueOf(*n))
		return
	}
	if l, ok := v.Addr().Interface().(located); ok {
		inner, pos := l.locatedTarget()
		*pos = PosOf(n)
		d.value(n, reflect.ValueOf(inner).Elem(), what)
		return
	}
	if isNull(n) && !d.null(n, v, what) {
		return
	}
	if v.Kind() == reflect.Pointer {
		fresh := reflect.New(v.Type().Elem())
		if !v.IsNil() {
			fresh.Elem().Set(v.Elem()) // defaults behind a pointer hold as well
		}
		d.value(n, fresh.Elem(), what)
		v.Set(fresh)
		return
	}
	switch u := v.Addr().Interface().(type) {
	case Unmarshaler:
		if err := u.UnmarshalStrict(n); err != nil {
			d.errs.Add(PosOf(n), named(what, err))
		}
		return
	case encoding.TextUnmarshaler:
		d.text(n, v, u, what)
		return
	}
	d.plain(n, v, what)
}

// null reports whether decoding goes on. Lists, maps and pointers are unset by a null, and a section whose keys are
// all commented out is an empty section; anywhere else a null is a value that somebody forgot.
func (d *decoder) null(n *yaml.Node, v reflect.Value, what string) bool {
	_, custom := v.Addr().Interface().(Unmarshaler)
	_, text := v.Addr().Interface().(encoding.TextUnmarshaler)
	switch k := v.Kind(); {
	case k == reflect.Pointer, k == reflect.Slice, k == reflect.Map, k == reflect.Interface:
		v.SetZero()
		return false
	case k == reflect.Struct && !custom && !text:
		return true
	}
	d.failHint(n, "give one or leave the key out", "%s has no value", what)
	return false
}

func (d *decoder) plain(n *yaml.Node, v reflect.Value, what string) {
	switch v.Kind() {
	case reflect.Struct:
		d.structure(n, v, what)
	case reflect.Map:
		d.mapping(n, v, what)
	case reflect.Slice:
		if d.is(n, yaml.SequenceNode, what) {
			fresh := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
			d.items(n, fresh, what)
			v.Set(fresh)
		}
	case reflect.Array:
		if !d.is(n, yaml.SequenceNode, what) {
			return
		}
		if len(n.Content) != v.Len() {
			d.fail(n, "%s must have %d items, not %d", what, v.Len(), len(n.Content))
			return
		}
		d.items(n, v, what)
	case reflect.Interface:
		if v.NumMethod() > 0 {
			panic(fmt.Sprintf("strictyaml: cannot decode into %s", v.Type()))
		}
		if got := d.generic(n, what); got != nil {
			v.Set(reflect.ValueOf(got))
		}
	default:
		if d.is(n, yaml.ScalarNode, what) {
			d.scalar(n, v, what)
		}
	}
}

func (d *decoder) items(n *yaml.Node, list reflect.Value, what string) {
	for i, item := range n.Content {
		name := fmt.Sprintf("item %d of %s", i+1, what)
		if isNull(resolve(item)) && list.Type().Elem().Kind() != reflect.Interface {
			d.failHint(item, "give one or remove the item", "%s has no value", name)
			continue
		}
		d.value(item, list.Index(i), name)
	}
}

// is checks the kind of a node. It never repeats the value: it may be a secret in the wrong place.
func (d *decoder) is(n *yaml.Node, want yaml.Kind, what string) bool {
	if n.Kind == want {
		return true
	}
	hint := ""
	if want == yaml.SequenceNode && n.Kind == yaml.ScalarNode {
		hint = "write [a, b] or lines that begin with -"
	}
	d.failHint(n, hint, "%s must be %s, not %s", what, kindName(want), kindName(n.Kind))
	return false
}

func kindName(k yaml.Kind) string {
	switch k {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	default:
		return "a single value"
	}
}

func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func knownTag(n *yaml.Node) bool {
	switch n.ShortTag() {
	case "!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", "!!map", "!!seq", "!!merge":
		return true
	}
	return false
}
