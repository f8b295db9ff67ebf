package strictyaml

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Pos is a place in a file. A field of this type with the tag yaml:"-" receives the place of its struct.
type Pos struct {
	File string
	Line int
	Col  int
}

// String is file:line:col as far as it is known.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	file := p.File
	if file == "" {
		file = "-"
	}
	return fmt.Sprintf("%s:%d:%d", file, p.Line, p.Col)
}

// IsZero reports whether nothing is known.
func (p Pos) IsZero() bool { return p == Pos{} }

// Errorf makes a mistake at this place, for lints that run after decoding.
func (p Pos) Errorf(format string, args ...any) *Error {
	return &Error{File: p.File, Line: p.Line, Col: p.Col, Msg: fmt.Sprintf(format, args...)}
}

// Excerpt is the line of data that p points at, with a caret under the column, or "" where there is none.
func (p Pos) Excerpt(data []byte) string {
	lines := strings.Split(string(data), "\n")
	if p.Line < 1 || p.Line > len(lines) {
		return ""
	}
	line := strings.TrimRight(lines[p.Line-1], "\r")
	pad := make([]rune, 0, p.Col)
	for _, r := range line {
		if len(pad) >= p.Col-1 {
			break
		}
		if r != '\t' { // tabs stay tabs, so that the caret stands under its character
			r = ' '
		}
		pad = append(pad, r)
	}
	return line + "\n" + string(pad) + "^"
}

// Positions are the places of a struct's values by their YAML names; "" is the struct itself. A field of this type
// with the tag yaml:"-" receives them.
type Positions map[string]Pos

// Of is the place of the value of key, or of the struct where the key was left out.
func (p Positions) Of(key string) Pos {
	if pos, ok := p[key]; ok {
		return pos
	}
	return p[""]
}

// Located is a value with its place, for values whose meaning is checked later: names that must exist elsewhere.
type Located[T any] struct {
	Value T
	Pos   Pos
}

// MarshalJSON prints the value alone: the place is for messages, not for output.
func (l Located[T]) MarshalJSON() ([]byte, error) { return json.Marshal(l.Value) }

// MarshalYAML prints the value alone.
func (l Located[T]) MarshalYAML() (any, error) { return l.Value, nil }

func (l *Located[T]) locatedTarget() (value any, pos *Pos) { return &l.Value, &l.Pos }

// located is how the decoder sees any Located[T].
type located interface{ locatedTarget() (any, *Pos) }

var _ located = (*Located[string])(nil)
