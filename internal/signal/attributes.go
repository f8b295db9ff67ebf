package signal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
)

const (
	nameEnd  = "\x1f"
	valueEnd = "\x1e"
)

// Attributes is a set of name=value pairs in one comparable value: sorted by name, so that equal sets are
// equal strings and can key a map. The zero value is the empty set, the whole path.
type Attributes string

// Attr is one pair of a set.
type Attr struct{ Name, Value string }

// NewAttributes builds a set from a map; pairs with an empty name or value are left out, since an absent
// attribute and an empty one mean the same to a reader.
func NewAttributes(m map[string]string) Attributes {
	if len(m) == 0 {
		return ""
	}
	pairs := make([]Attr, 0, len(m))
	for n, v := range m {
		pairs = append(pairs, Attr{n, v})
	}
	return AttributesOf(pairs...)
}

// AttributesOf builds a set from pairs; of a repeated name the last one counts.
func AttributesOf(pairs ...Attr) Attributes {
	if len(pairs) == 0 {
		return ""
	}
	s := slices.Clone(pairs)
	slices.SortStableFunc(s, func(a, b Attr) int { return cmp.Compare(a.Name, b.Name) })
	var b strings.Builder
	for i, p := range s {
		if p.Name == "" || p.Value == "" || i+1 < len(s) && s[i+1].Name == p.Name {
			continue
		}
		b.WriteString(clean(p.Name))
		b.WriteString(nameEnd)
		b.WriteString(clean(p.Value))
		b.WriteString(valueEnd)
	}
	return Attributes(b.String())
}

// clean takes the two separators out of foreign text.
func clean(s string) string {
	if strings.ContainsAny(s, nameEnd+valueEnd) {
		return strings.NewReplacer(nameEnd, " ", valueEnd, " ").Replace(s)
	}
	return s
}

// All yields the pairs in order of name.
func (a Attributes) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		rest := string(a)
		for rest != "" {
			name, r, _ := strings.Cut(rest, nameEnd)
			value, r, _ := strings.Cut(r, valueEnd)
			if !yield(name, value) {
				return
			}
			rest = r
		}
	}
}

// Get returns the value of one attribute, or "".
func (a Attributes) Get(name string) string {
	for n, v := range a.All() {
		if n == name {
			return v
		}
	}
	return ""
}

// Len counts the pairs.
func (a Attributes) Len() int { return strings.Count(string(a), valueEnd) }

// Map copies the set into a map; the empty set is an empty, non-nil map.
func (a Attributes) Map() map[string]string {
	m := make(map[string]string, a.Len())
	for n, v := range a.All() {
		m[n] = v
	}
	return m
}

// Contains tells whether every pair of b is in a: a cell lies in a slice if its attributes contain the slice's.
func (a Attributes) Contains(b Attributes) bool {
	if b == "" {
		return true
	}
	for n, v := range b.All() {
		if a.Get(n) != v {
			return false
		}
	}
	return true
}

// String is for people: name=value,name=value.
func (a Attributes) String() string {
	var b strings.Builder
	for n, v := range a.All() {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(n + "=" + v)
	}
	return b.String()
}

func (a Attributes) MarshalJSON() ([]byte, error) { return json.Marshal(a.Map()) }

func (a *Attributes) UnmarshalJSON(b []byte) error {
	var m map[string]string
	if err := json.Unmarshal(b, &m); err != nil {
		return fmt.Errorf("attributes: %w", err)
	}
	*a = NewAttributes(m)
	return nil
}
