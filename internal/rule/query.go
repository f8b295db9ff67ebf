package rule

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// Query is the text of a sql rule's query, with its place. What can be said of it without a database is said when the file is
// read: that it is one SELECT, that it asks for a span of event time and for nothing that changes by itself.
type Query struct {
	text  string
	node  strictyaml.Pos
	style yaml.Style
}

// Text is the query without what ends it.
func (q *Query) Text() string { return q.text }

// MarshalText gives the text.
func (q Query) MarshalText() ([]byte, error) { return []byte(q.text), nil }

// UnmarshalStrict keeps the text with its place.
func (q *Query) UnmarshalStrict(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		return strictyaml.PosOf(n).Errorf("a query is text; begin it with | and indent it below")
	}
	*q = Query{text: n.Value, node: strictyaml.PosOf(n), style: n.Style}
	return nil
}

// At is the place in the file of a place in the text, counted from 0. A block is taken to be indented by two spaces more than the
// keys of its rule, as everybody writes it; in folded text, where lines are no longer those of the file, it is the query's own place.
func (q *Query) At(rule strictyaml.Pos, offset int) strictyaml.Pos {
	before := q.text[:min(offset, len(q.text))]
	line, col := strings.Count(before, "\n"), len(before)-strings.LastIndexByte(before, '\n')
	at := q.node
	switch {
	case q.style&yaml.LiteralStyle != 0:
		at.Line, at.Col = at.Line+1+line, rule.Col+1+col
	case line == 0 && q.style&yaml.FoldedStyle == 0:
		if q.style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
			col++
		}
		at.Col += col - 1
	}
	return at
}

// AtLine is the place of a line and a column of the text, counted from 1, as a database gives them.
func (q *Query) AtLine(rule strictyaml.Pos, line, col int) strictyaml.Pos {
	offset := 0
	for range line - 1 {
		i := strings.IndexByte(q.text[offset:], '\n')
		if i < 0 {
			break
		}
		offset += i + 1
	}
	return q.At(rule, offset+max(col-1, 0))
}

// What gives another answer each time it is asked, and what reads from elsewhere.
var (
	clocks = []string{
		"now", "now64", "nowInBlock", "nowInBlock64", "today", "yesterday", "curdate", "current_date", "current_timestamp", "UTCTimestamp", "UTC_timestamp", "localtimestamp",
		"rand", "rand32", "rand64", "randCanonical", "randConstant", "randUniform", "randNormal", "generateUUIDv4", "generateUUIDv7", "generateULID", "generateSnowflakeID", "sleep", "sleepEachRow",
	}
	// bare are clocks that the engine also takes without brackets, where no column is called so.
	bare      = []string{"now", "current_timestamp", "current_date", "localtimestamp"}
	elsewhere = []string{
		"file", "fileCluster", "url", "urlCluster", "s3", "s3Cluster", "gcs", "hdfs", "hdfsCluster", "azureBlobStorage", "azureBlobStorageCluster", "remote", "remoteSecure", "cluster", "clusterAllReplicas",
		"mysql", "postgresql", "mongodb", "redis", "sqlite", "odbc", "jdbc", "executable", "input", "arrowFlight", "ytsaurus", "oss", "cosn", "hive",
	}
	// Families of such, by how their names begin: one for each kind of storage, and each for a cluster as well.
	lakes = []string{"iceberg", "deltaLake", "hudi", "paimon"}
)

// check says what is wrong with the query as a text.
func (q *Query) check(rule strictyaml.Pos) (errs strictyaml.Errors) {
	fail := func(offset int, format string, args ...any) {
		errs = append(errs, q.At(rule, offset).Errorf("query: "+format, args...))
	}
	tokens, err := scanSQL(q.text)
	if err != nil {
		fail(err.offset, "%s", err.what)
		return errs
	}
	if n := len(tokens); n > 0 && tokens[n-1].is(";") {
		q.text = strings.TrimRight(q.text[:tokens[n-1].offset], " \t\n") // what is behind it are comments
		tokens = tokens[:n-1]
	}
	if len(tokens) == 0 {
		fail(0, "it is empty")
		return errs
	}
	if !tokens[0].word("SELECT") && !tokens[0].word("WITH") {
		fail(tokens[0].offset, "it begins with %s; only a SELECT, or a WITH … SELECT, is run", tokens[0].text)
		return errs
	}
	uses, named := map[string]bool{}, map[string]bool{}
	for i := 1; i < len(tokens); i++ {
		if tokens[i-1].word("AS") {
			named[tokens[i].name] = true
		}
	}
	valued := false
	for i := range tokens {
		t := &tokens[i]
		next := func(n int) *token {
			if i+n < len(tokens) {
				return &tokens[i+n]
			}
			return &token{}
		}
		switch {
		case t.is(";"):
			fail(next(1).offset, "a second statement begins here; only one is run")
			return errs
		case t.kind == parameter:
			if why := checkParameter(t); why != "" {
				fail(t.offset, "%s", why)
			}
			uses[t.name] = true
		case t.word("INSERT") && t.depth == 0, t.word("INTO") && next(1).word("OUTFILE"):
			fail(t.offset, "%s writes; a rule only reads", t.text)
		case t.word("FORMAT") && t.depth == 0 && next(1).kind == word && next(2).kind == none:
			fail(t.offset, "FORMAT is the program's business, leave it out")
		case t.word("SETTINGS") && next(1).kind == word && next(2).is("="):
			fail(t.offset, "SETTINGS are the program's business: the rule's timeout and max_rows bound a query")
		case next(1).is("(") && isOneOf(t, clocks):
			fail(t.offset, "%s() gives another answer each time; a rule is judged by event time, from {from:DateTime64(3)} to {to:DateTime64(3)}", t.name)
		case t.kind == word && !t.quoted && isOneOf(t, bare) && !named[t.name] && !next(1).is(".") && !(i > 0 && tokens[i-1].is(".")):
			fail(t.offset, "%s gives another answer each time; a column of that name is written in quotes", t.name)
		case next(1).is("(") && (isOneOf(t, elsewhere) || beginsLike(t, lakes)):
			fail(t.offset, "%s() reads from elsewhere; a rule reads tables of this database", t.name)
		}
		valued = valued || strings.EqualFold(t.name, "value") || t.is("*")
	}
	for _, name := range []string{"from", "to"} {
		if !uses[name] {
			fail(tokens[0].offset, "it does not use {%s:DateTime64(3)}, so it would see what is not complete, and something else when it is asked again", name)
		}
	}
	if !valued {
		fail(tokens[0].offset, "it gives no column a name of value; the number that a rule judges is called so")
	}
	return errs
}

func isOneOf(t *token, names []string) bool {
	return t.name != "" && slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, t.name) })
}

func beginsLike(t *token, names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return len(t.name) >= len(n) && strings.EqualFold(t.name[:len(n)], n) })
}

func checkParameter(t *token) string {
	if t.name != "from" && t.name != "to" {
		return fmt.Sprintf("%s is no parameter of a rule; there are {from:DateTime64(3)} and {to:DateTime64(3)}", t.text)
	}
	if !strings.HasPrefix(t.typ, "DateTime") {
		return fmt.Sprintf("%s is a moment of event time, so its type is DateTime64(3) or DateTime, not %s", t.name, t.typ)
	}
	return ""
}
