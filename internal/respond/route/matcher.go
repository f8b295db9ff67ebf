package route

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// Op is how a matcher compares.
type Op string

const (
	Equal     Op = "="
	NotEqual  Op = "!="
	Regexp    Op = "=~"
	NotRegexp Op = "!~"
)

// Matcher tests one label. A label that is absent counts as empty, as in Alertmanager: service!="a" matches an
// incident without a service.
type Matcher struct {
	Name  string
	Op    Op
	Value string
	re    *regexp.Regexp
}

// NewMatcher checks name and expression. Regular expressions are anchored at both ends.
func NewMatcher(name string, op Op, value string) (Matcher, error) {
	m := Matcher{Name: name, Op: op, Value: value}
	if name == "" {
		return m, fmt.Errorf("the label name is missing before %s", op)
	}
	if op == Regexp || op == NotRegexp {
		re, err := regexp.Compile("^(?:" + value + ")$")
		if err != nil {
			return m, fmt.Errorf("the expression of label %s cannot be read: %w", name, err)
		}
		m.re = re
	}
	return m, nil
}

// Matches tells whether the labels satisfy m.
func (m Matcher) Matches(labels map[string]string) bool {
	v := labels[m.Name]
	switch m.Op {
	case Equal:
		return v == m.Value
	case NotEqual:
		return v != m.Value
	case Regexp:
		return m.re.MatchString(v)
	case NotRegexp:
		return !m.re.MatchString(v)
	}
	return false
}

// String prints m as it is written in a file.
func (m Matcher) String() string { return m.Name + string(m.Op) + strconv.Quote(m.Value) }

// Matchers is a list of matchers, all of which must match.
type Matchers []Matcher

var _ strictyaml.Unmarshaler = (*Matchers)(nil)

// Match tells whether all matchers match; an empty list matches everything.
func (ms Matchers) Match(labels map[string]string) bool {
	for _, m := range ms {
		if !m.Matches(labels) {
			return false
		}
	}
	return true
}

// UnmarshalStrict reads a list of texts, each one or several matchers.
func (ms *Matchers) UnmarshalStrict(n *yaml.Node) error {
	var texts []strictyaml.Located[string]
	if err := strictyaml.DecodeNode(n, &texts); err != nil {
		return err
	}
	var errs strictyaml.Errors
	for _, t := range texts {
		parsed, err := ParseMatchers(t.Value)
		errs.Add(t.Pos, err)
		*ms = append(*ms, parsed...)
	}
	return errs.Err()
}

// ParseMatchers reads one or several matchers: severity="critical", {a="b", c=~"d|e"}. Values may be bare words
// or in double quotes, names that are no plain words too: "service.name"="x".
func ParseMatchers(text string) (Matchers, error) {
	p := &matcherParser{rest: strings.TrimSpace(text)}
	if strings.HasPrefix(p.rest, "{") {
		if !strings.HasSuffix(p.rest, "}") {
			return nil, fmt.Errorf("%q: the closing brace is missing", text)
		}
		p.rest = strings.TrimSpace(p.rest[1 : len(p.rest)-1])
	}
	var out Matchers
	for {
		m, err := p.matcher()
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		out = append(out, m)
		p.space()
		if p.rest == "" {
			return out, nil
		}
		if p.rest[0] != ',' {
			return nil, fmt.Errorf("%q: a comma is expected before %q", text, p.rest)
		}
		p.rest = p.rest[1:]
		if p.space(); p.rest == "" { // a trailing comma is allowed, as in PromQL
			return out, nil
		}
	}
}

type matcherParser struct{ rest string }

func (p *matcherParser) space() { p.rest = strings.TrimLeftFunc(p.rest, unicode.IsSpace) }

func (p *matcherParser) matcher() (Matcher, error) {
	name, err := p.word(`=!~,{}" `)
	if err != nil {
		return Matcher{}, err
	}
	p.space()
	var op Op
	for _, o := range []Op{Regexp, NotRegexp, NotEqual, Equal} {
		if strings.HasPrefix(p.rest, string(o)) {
			op = o
			break
		}
	}
	if op == "" {
		return Matcher{}, fmt.Errorf("one of = != =~ !~ is expected after %q", name)
	}
	p.rest = p.rest[len(op):]
	value, err := p.word(`,{}"`)
	if err != nil {
		return Matcher{}, err
	}
	return NewMatcher(name, op, value)
}

// word is a quoted text, or what comes before one of the stop characters.
func (p *matcherParser) word(stop string) (string, error) {
	p.space()
	if strings.HasPrefix(p.rest, `"`) {
		quoted, err := strconv.QuotedPrefix(p.rest)
		if err != nil {
			return "", fmt.Errorf("the closing quote of %s is missing", p.rest)
		}
		p.rest = p.rest[len(quoted):]
		return strconv.Unquote(quoted)
	}
	end := strings.IndexAny(p.rest, stop)
	if end < 0 {
		end = len(p.rest)
	}
	word := strings.TrimSpace(p.rest[:end])
	p.rest = p.rest[end:]
	return word, nil
}
