package strictyaml

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxErrors bounds a report: whoever feeds a binary or a wrong file needs the first mistakes, not all of them.
const maxErrors = 100

// maxKept bounds the memory that a hostile file can cost: an anchor with a mistake may be used a million times.
const maxKept = 10 * maxErrors

// Error is one mistake in a file. Line and Col count from 1; they are 0 where no place is known.
type Error struct {
	File string
	Line int
	Col  int
	Msg  string
	Hint string // what to do about it; printed in parentheses
}

// Error prints "file:line:col: message (hint)", which editors and terminals turn into a link.
func (e *Error) Error() string {
	var b strings.Builder
	if pos := e.Pos().String(); pos != "" {
		b.WriteString(pos)
		b.WriteString(": ")
	}
	b.WriteString(e.Msg)
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return b.String()
}

// Pos is the place of the mistake.
func (e *Error) Pos() Pos { return Pos{File: e.File, Line: e.Line, Col: e.Col} }

// WithHint sets the hint and returns the error, for use in a return statement.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// Errors are all mistakes found, in the order of file and line. Use Err to return them: an empty Errors in a variable
// of type error would not be nil.
type Errors []*Error

// Error has one line for each mistake.
func (es Errors) Error() string {
	lines := make([]string, 0, len(es))
	for i, e := range es {
		if i == maxErrors {
			lines = append(lines, fmt.Sprintf("%s: … and %d more", e.File, len(es)-i))
			break
		}
		lines = append(lines, e.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.Is and errors.As look at each mistake.
func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

// Err is nil where nothing was found, else the mistakes in order of place.
func (es Errors) Err() error {
	if len(es) == 0 {
		return nil
	}
	slices.SortStableFunc(es, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	// An anchor that is used twice is decoded twice; its mistake is still one.
	return slices.CompactFunc(es, func(a, b *Error) bool { return *a == *b })
}

// Add appends what err holds: the mistakes in it one by one, or itself as a mistake at pos. Places that err leaves
// open are filled from pos; a nil err adds nothing.
func (es *Errors) Add(pos Pos, err error) {
	for _, e := range flatten(err) {
		if len(*es) >= maxKept {
			return
		}
		filled := *e // a copy: the same error value may be returned for several places
		if filled.File == "" {
			filled.File = pos.File
		}
		if filled.Line == 0 {
			filled.Line, filled.Col = pos.Line, pos.Col
		}
		*es = append(*es, &filled)
	}
}

func flatten(err error) Errors {
	if err == nil {
		return nil
	}
	if list, ok := err.(Errors); ok { //nolint:errorlint // wrapped ones are reached through Unwrap below
		return list
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out Errors
		for _, e := range joined.Unwrap() {
			out = append(out, flatten(e)...)
		}
		return out
	}
	var list Errors
	if errors.As(err, &list) {
		return list
	}
	var one *Error
	if errors.As(err, &one) {
		return Errors{one}
	}
	return Errors{{Msg: err.Error()}}
}

// Join makes one list of what several files gave, nil where all are nil.
func Join(errs ...error) error {
	var all Errors
	for _, err := range errs {
		all.Add(Pos{}, err)
	}
	return all.Err()
}
