package pipeline

import (
	"regexp"
	"strings"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// Glob matches a name: * stands for any text without a slash, ** for any text, everything else for itself. The zero
// value matches everything.
type Glob struct {
	text string
	re   *regexp.Regexp
}

// UnmarshalText compiles the pattern.
func (g *Glob) UnmarshalText(text []byte) error {
	c, err := NewGlob(string(text))
	if err != nil {
		return err
	}
	*g = c
	return nil
}

// NewGlob compiles a pattern.
func NewGlob(pattern string) (Glob, error) {
	if pattern == "" {
		return Glob{}, &strictyaml.Error{Msg: "an empty pattern", Hint: "leave the key out to match everything"}
	}
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for rest := pattern; rest != ""; {
		switch {
		case strings.HasPrefix(rest, "**"):
			b.WriteString(`.*`)
			rest = rest[2:]
		case rest[0] == '*':
			b.WriteString(`[^/]*`)
			rest = rest[1:]
		default:
			n := strings.IndexByte(rest, '*')
			if n < 0 {
				n = len(rest)
			}
			b.WriteString(regexp.QuoteMeta(rest[:n]))
			rest = rest[n:]
		}
	}
	re, err := regexp.Compile(b.String() + `\z`)
	if err != nil {
		return Glob{}, &strictyaml.Error{Msg: "the pattern cannot be used: " + err.Error()}
	}
	return Glob{text: pattern, re: re}, nil
}

// Match tells whether s fits.
func (g Glob) Match(s string) bool { return g.re == nil || g.re.MatchString(s) }

// IsZero tells whether no pattern was given.
func (g Glob) IsZero() bool { return g.re == nil }

func (g Glob) String() string { return g.text }

// MarshalText gives the pattern back.
func (g Glob) MarshalText() ([]byte, error) { return []byte(g.text), nil }
