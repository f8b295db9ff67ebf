package decode

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// Longest texts of an event, in bytes; what is longer is cut. Names become columns of every row.
const (
	maxName  = 256 // service, resource, account, attribute values, …
	maxOper  = 512
	maxTitle = 1 << 10
	maxURL   = 2 << 10
)

// maxCount bounds the requests that one event may stand for: sums of 64 bits must not overflow.
const maxCount = 1 << 40

// cut shortens at a rune, and makes a copy so that a short name does not keep a large record alive.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return strings.Clone(s[:limit])
}

// interner gives back the same set of attributes for the same pairs without allocating. It forgets everything when it
// is full: a topic with ever new values must not grow the process.
type interner struct {
	buf  []byte
	sets map[string]signal.Attributes
}

const maxInterned = 1 << 15

func (in *interner) of(pairs []signal.Attr) signal.Attributes {
	if len(pairs) == 0 {
		return ""
	}
	in.buf = in.buf[:0]
	for _, p := range pairs {
		in.buf = append(append(in.buf, p.Name...), 0x1f)
		in.buf = append(append(in.buf, p.Value...), 0x1e)
	}
	if a, ok := in.sets[string(in.buf)]; ok {
		return a
	}
	if in.sets == nil || len(in.sets) >= maxInterned {
		in.sets = map[string]signal.Attributes{}
	}
	a := signal.AttributesOf(pairs...)
	in.sets[string(in.buf)] = a
	return a
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
