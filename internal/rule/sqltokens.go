package rule

import (
	"regexp"
	"strings"
)

// The words of a query, as far as a lint has to know them: no grammar of SQL, but where strings, names and comments begin and end, so
// that what stands in them is taken for nothing else.

type tokenKind uint8

const (
	none tokenKind = iota
	word           // a keyword or a name, quoted or not
	literal
	symbol
	parameter // {name:Type}
)

type token struct {
	kind   tokenKind
	text   string
	name   string // of a word or parameter, without quotes
	typ    string // of a parameter
	quoted bool
	offset int
	depth  int // brackets around it
}

func (t *token) is(s string) bool { return t.kind == symbol && t.text == s }

func (t *token) word(w string) bool {
	return t.kind == word && !t.quoted && strings.EqualFold(t.text, w)
}

// mistake is a place in the text and what is wrong there.
type mistake struct {
	offset int
	what   string
}

var (
	aWord      = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*`)
	aNumber    = regexp.MustCompile(`^[0-9][0-9A-Za-z_.]*`)
	aParameter = regexp.MustCompile(`^\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*:\s*([A-Za-z][A-Za-z0-9_]*(?:\([^{}]*\))?)\s*\}`)
	aHeredoc   = regexp.MustCompile(`^\$[A-Za-z0-9_]*\$`)
)

var closes = map[string]string{"(": ")", "[": "]", "{": "}"}

// scanSQL takes a text apart.
func scanSQL(text string) (out []token, wrong *mistake) {
	type open struct {
		bracket string
		offset  int
	}
	var stack []open
	for i := 0; i < len(text); {
		rest := text[i:]
		t := token{offset: i, depth: len(stack)}
		n := 1
		switch c := rest[0]; {
		case strings.IndexByte(" \t\r\n", c) >= 0:
			i++
			continue
		case strings.HasPrefix(rest, "--"), strings.HasPrefix(rest, "#!"), strings.HasPrefix(rest, "# "):
			if n = strings.IndexByte(rest, '\n'); n < 0 {
				n = len(rest)
			}
			i += n
			continue
		case strings.HasPrefix(rest, "/*"):
			if n = commentLen(rest); n == 0 {
				return nil, &mistake{i, "a comment begins here and does not end"}
			}
			i += n
			continue
		case c == '\'' || c == '"' || c == '`':
			if n = quotedLen(rest); n == 0 {
				return nil, &mistake{i, "a quote begins here and does not end"}
			}
			t.kind, t.text = literal, rest[:n]
			if c != '\'' {
				t.kind, t.quoted, t.name = word, true, rest[1:n-1]
				if strings.ContainsAny(t.name, "\\`\"") {
					return nil, &mistake{i, "a quoted name with quotes or backslashes in it is not understood here"}
				}
			}
		case c == '$' && aHeredoc.MatchString(rest):
			mark := aHeredoc.FindString(rest)
			end := strings.Index(rest[len(mark):], mark)
			if end < 0 {
				return nil, &mistake{i, "a text between " + mark + " begins here and does not end"}
			}
			n = end + 2*len(mark)
			t.kind, t.text = literal, rest[:n]
		case c == '{' && aParameter.MatchString(rest):
			m := aParameter.FindStringSubmatch(rest)
			n = len(m[0])
			t.kind, t.text, t.name, t.typ = parameter, m[0], m[1], m[2]
		case aWord.MatchString(rest):
			t.kind, t.text = word, aWord.FindString(rest)
			n, t.name = len(t.text), t.text
		case aNumber.MatchString(rest):
			t.kind, t.text = literal, aNumber.FindString(rest)
			n = len(t.text)
		case c >= 0x80:
			return nil, &mistake{i, "a character that is not ASCII stands outside of quotes"}
		default:
			t.kind, t.text = symbol, rest[:1]
			switch c {
			case '(', '[', '{':
				stack = append(stack, open{t.text, i})
			case ')', ']', '}':
				last := len(stack) - 1
				if last < 0 || closes[stack[last].bracket] != t.text {
					return nil, &mistake{i, "this " + t.text + " closes no bracket"}
				}
				stack = stack[:last]
				t.depth--
			}
		}
		out = append(out, t)
		i += n
	}
	if n := len(stack); n > 0 {
		return nil, &mistake{stack[n-1].offset, "a bracket is opened here and not closed"}
	}
	return out, nil
}

// commentLen is the length of a comment, in which there may be others, as the engine reads them; 0 where it does not end.
func commentLen(s string) int {
	depth := 0
	for i := 0; i+1 < len(s); i++ {
		switch s[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			i++
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// quotedLen is the length of a quoted text with its quotes, in which a backslash and a doubled quote stand for themselves; 0 where
// it does not end.
func quotedLen(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			if i+1 < len(s) && s[i+1] == s[0] {
				i++
				continue
			}
			return i + 1
		}
	}
	return 0
}
