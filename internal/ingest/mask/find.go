package mask

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Expressions are slow where they search: a payload of 64 KiB took tens of milliseconds. Each of the kinds has words or
// characters that it cannot do without, which are found a thousand times faster, and an expression is only asked whether
// it matches at a place.

// finder finds one kind of secret.
type finder struct {
	// words are where the kind may begin, in lower case, or as they are where exact.
	words []string
	exact bool
	// before are words that may stand before the word and belong to it.
	before string
	// inside tells that the word may stand within a longer one.
	inside bool
	// scheme tells that the word stands behind the scheme of a URL.
	scheme bool
	// match gives the end of what is found at s[0:], and what replaces it; 0 for nothing.
	match func(s string) (end int, by string)
}

// replace masks all that the finder finds. lower is s in lower case, as far as it is ASCII.
func (f *finder) replace(s, lower string) string {
	text := lower
	if f.exact {
		text = s
	}
	places := find(text, f.words)
	if len(places) == 0 {
		return s
	}
	var out strings.Builder
	last := 0
	for _, i := range places {
		if f.before != "" && strings.HasSuffix(lower[:i], f.before) && boundary(s, i-len(f.before)) {
			i -= len(f.before)
		} else if !f.inside && !boundary(s, i) {
			continue
		}
		if i < last || f.scheme && !behindScheme(s, last, i) {
			continue
		}
		if n, by := f.match(s[i:]); n > 0 {
			out.WriteString(s[last:i])
			out.WriteString(by)
			last = i + n
		}
	}
	if last == 0 {
		return s
	}
	out.WriteString(s[last:])
	return out.String()
}

// behindScheme tells whether a letter and what may follow one in a scheme end at i.
func behindScheme(s string, from, i int) bool {
	for ; i > from; i-- {
		switch c := s[i-1]; {
		case letter(c):
			return true
		case !decimal(c) && c != '+' && c != '.' && c != '-':
			return false
		}
	}
	return false
}

// find gives the places of all words, in order.
func find(s string, words []string) (places []int) {
	for _, w := range words {
		for at := 0; ; at++ {
			i := strings.Index(s[at:], w)
			if i < 0 {
				break
			}
			at += i
			places = append(places, at)
		}
	}
	if len(words) > 1 {
		slices.Sort(places)
		places = slices.Compact(places)
	}
	return places
}

// boundary is \b before a word's letter.
func boundary(s string, i int) bool { return i == 0 || !wordByte(s[i-1]) }

func wordByte(c byte) bool { return letter(c) || decimal(c) || c == '_' }

// lowered is s with ASCII letters in lower case: of the same length, and quick also where s is no text.
func lowered(s string) string {
	i := 0
	for i < len(s) && (s[i] < 'A' || s[i] > 'Z') {
		i++
	}
	if i == len(s) {
		return s
	}
	b := []byte(s)
	for ; i < len(b); i++ {
		if c := b[i]; c >= 'A' && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return string(b)
}

// runeClass is a set of runes: those of ASCII in a table, others by tables of Unicode.
type runeClass struct {
	ascii  [utf8.RuneSelf]bool
	others []*unicode.RangeTable
}

func newRuneClass(ascii string, others ...*unicode.RangeTable) *runeClass {
	c := &runeClass{others: others}
	for r := range rune(utf8.RuneSelf) {
		c.ascii[r] = strings.ContainsRune(ascii, r) || unicode.In(r, others...)
	}
	return c
}

func (c *runeClass) holds(r rune, size int) bool {
	if r < utf8.RuneSelf {
		return c.ascii[r]
	}
	return (r != utf8.RuneError || size > 1) && unicode.In(r, c.others...)
}

// runBefore is where the run of the class that ends at i begins, not before from.
func (c *runeClass) runBefore(s string, from, i int) int {
	for i > from {
		r, size := utf8.DecodeLastRuneInString(s[from:i])
		if !c.holds(r, size) {
			break
		}
		i -= size
	}
	return i
}
