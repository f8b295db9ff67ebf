package front

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/tocsin-project/tocsin/cmd/chlocal/internal/engine"
)

// quotedIdent stands in masked text for each byte of a quoted identifier.
const quotedIdent = 1

// mask returns the statement with the content of string literals and comments blanked and quoted identifiers made
// unreadable, at the same offsets, so that patterns see only SQL. It follows ClickHouse's lexer; where that knows more
// forms (heredocs, typographic quotes) allowed refuses them to readers.
func mask(text []byte) []byte {
	out := bytes.Clone(text)
	blank := func(from, to int, with byte) {
		for i := from; i < to; i++ {
			out[i] = with
		}
	}
	for i := 0; i < len(text); {
		end := i + 1
		switch c := text[i]; {
		case c == '\'' || c == '"' || c == '`':
			for end < len(text) && text[end] != c {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end+1, len(text))
			with := byte(' ')
			if c != '\'' {
				with = quotedIdent
			}
			blank(i, end, with)
		case bytes.HasPrefix(text[i:], []byte("--")), bytes.HasPrefix(text[i:], []byte("# ")), bytes.HasPrefix(text[i:], []byte("#!")):
			for end < len(text) && text[end] != '\n' {
				end++
			}
			blank(i, end, ' ')
		case bytes.HasPrefix(text[i:], []byte("/*")):
			end = len(text)
			if n := bytes.Index(text[i+2:], []byte("*/")); n >= 0 {
				end = i + 2 + n + 2
			}
			blank(i, end, ' ')
		}
		i = end
	}
	return out
}

type span struct{ start, end int }

var (
	insertPattern = regexp.MustCompile(`(?is)^\s*INSERT\s+INTO\s`)
	// Values is a format like others: its rows go through a file too, since the engine cuts inline data at an empty line.
	dataPattern     = regexp.MustCompile(`(?is)\b(?:FORMAT\s+([A-Za-z][A-Za-z0-9_]*)\b[ \t]*;?\r?\n?|(VALUES)\b)`)
	selectPattern   = regexp.MustCompile(`(?is)\b(?:SELECT|WITH)\b`)
	inputPattern    = regexp.MustCompile(`(?i)\binput\s*\(`)
	filePattern     = regexp.MustCompile(`(?i)\bfile\s*\(|\x01\s*\(`)
	filesPattern    = regexp.MustCompile(`(?is)\bINTO\s+OUTFILE\b|\bFROM\s+INFILE\b`)
	statePattern    = regexp.MustCompile(`(?is)\b(?:SET|USE|TEMPORARY)\b`)
	secondPattern   = regexp.MustCompile(`;\s*[^\s;]`)
	firstWord       = regexp.MustCompile(`^[\s(]*([A-Za-z]+)`)
	readStatements  = map[string]bool{"SELECT": true, "WITH": true, "SHOW": true, "DESC": true, "DESCRIBE": true, "EXPLAIN": true, "EXISTS": true}
	streamStatement = map[string]bool{"SELECT": true, "WITH": true}
)

// insertData finds where the data of an INSERT begins and in which format it is. INSERT … SELECT has none, unless it
// reads input().
func insertData(masked []byte) (at span, format string, ok bool) {
	if !insertPattern.Match(masked) {
		return span{}, "", false
	}
	m := topLevel(dataPattern, masked)
	if m == nil {
		return span{}, "", false
	}
	if selectPattern.Match(masked[:m[0]]) && !inputPattern.Match(masked[:m[0]]) {
		return span{}, "", false
	}
	if m[4] >= 0 {
		return span{m[0], m[1]}, "Values", true
	}
	return span{m[0], m[1]}, string(masked[m[2]:m[3]]), true
}

// topLevel finds the first match outside of parentheses: columns may be called values or format.
func topLevel(pattern *regexp.Regexp, masked []byte) []int {
	from := 0
	for depth := 0; ; {
		m := pattern.FindSubmatchIndex(masked[from:])
		if m == nil {
			return nil
		}
		depth += bytes.Count(masked[from:from+m[0]], []byte("(")) - bytes.Count(masked[from:from+m[0]], []byte(")"))
		if depth == 0 {
			for i := range m {
				if m[i] >= 0 {
					m[i] += from
				}
			}
			return m
		}
		from += m[1] // a match holds no parenthesis
	}
}

func (r *request) verb() string {
	if m := firstWord.FindSubmatch(r.masked); m != nil {
		return strings.ToUpper(string(m[1]))
	}
	return ""
}

// streams says whether the output may be sent while it is made.
func (r *request) streams() bool {
	return streamStatement[r.verb()] && len(r.tables) == 0 && r.query.Get("wait_end_of_query") != "1"
}

// pooled says whether the connection is as before when the statement is done.
func (r *request) pooled() bool {
	if len(r.tables) > 0 {
		return false
	}
	for _, s := range r.settings {
		if s.name == "insert_deduplication_token" { // new for every insert: the pool would fill with connections nobody asks for
			return false
		}
	}
	return r.data != nil || readStatements[r.verb()] && !statePattern.Match(r.masked)
}

// allowed refuses what the engine would do and should not: several statements at once, files of this machine, and for
// readers all that readonly and roles leave open (SYSTEM, KILL, SET ROLE, the scalar function file).
func (r *request) allowed() error {
	if secondPattern.Match(r.masked) {
		return engine.NewError(62, "SYNTAX_ERROR", "Multi-statements are not allowed")
	}
	if filesPattern.Match(r.masked) {
		return engine.NewError(engine.CodeAccessDenied, "ACCESS_DENIED", "INTO OUTFILE and FROM INFILE are not allowed over HTTP")
	}
	if !r.reader {
		return nil
	}
	if r.data != nil || !readStatements[r.verb()] {
		return engine.NewError(engine.CodeReadonly, "READONLY", "Cannot execute query in readonly mode: only SELECT, SHOW, DESCRIBE, EXPLAIN and EXISTS")
	}
	if filePattern.Match(r.masked) {
		return engine.NewError(engine.CodeAccessDenied, "ACCESS_DENIED", "readers may not call file() or a function by a quoted name")
	}
	for _, c := range r.masked {
		if c == '$' || c > 0x7e { // heredocs and typographic quotes, which mask does not follow
			return engine.NewError(engine.CodeAccessDenied, "ACCESS_DENIED", "readers may use only plain characters outside of quotes")
		}
	}
	return nil
}
