package strictyaml

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
)

var (
	posType       = reflect.TypeFor[Pos]()
	positionsType = reflect.TypeFor[Positions]()
)

type field struct {
	name     string
	index    []int
	required bool
}

// layout is what the tags of a struct say, inlined structs included.
type layout struct {
	fields    map[string]field
	names     []string // in the order of the struct
	rest      []int    // the inline map that keeps further keys, nil without
	pos       [][]int
	positions [][]int
	inlined   [][]int
}

var layouts sync.Map // reflect.Type → *layout; bounded by the types of the program

// layoutOf panics where the tags contradict themselves: that is a mistake in the program, not in a file.
func layoutOf(t reflect.Type) *layout {
	if l, ok := layouts.Load(t); ok {
		return l.(*layout)
	}
	l := &layout{fields: map[string]field{}}
	l.collect(t, nil)
	layouts.Store(t, l)
	return l
}

func (l *layout) collect(t reflect.Type, prefix []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(append([]int(nil), prefix...), i)
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		inline := options == "inline"
		switch {
		case name == "-":
			l.place(f, index)
		case inline && f.Type.Kind() == reflect.Struct && (f.IsExported() || f.Anonymous):
			l.inlined = append(l.inlined, index)
			l.collect(f.Type, index)
		case !f.IsExported():
		case inline && f.Type.Kind() == reflect.Map && f.Type.Key().Kind() == reflect.String && l.rest == nil:
			l.rest = index
		case inline:
			panic(fmt.Sprintf("strictyaml: %s.%s cannot be inlined", t, f.Name))
		default:
			if name == "" {
				name = strings.ToLower(f.Name)
			}
			if _, dup := l.fields[name]; dup {
				panic(fmt.Sprintf("strictyaml: %s has two fields named %q", t, name))
			}
			l.fields[name] = field{name: name, index: index, required: f.Tag.Get("strict") == "required"}
			l.names = append(l.names, name)
		}
	}
}

func (l *layout) place(f reflect.StructField, index []int) {
	if !f.IsExported() && !f.Anonymous {
		return
	}
	switch f.Type {
	case posType:
		l.pos = append(l.pos, index)
	case positionsType:
		l.positions = append(l.positions, index)
	}
}
