package engine

import (
	"regexp"
	"strconv"
	"strings"
)

// Param is a query parameter: {Name:Type} in the statement takes Value in ClickHouse's escaped text form.
type Param struct{ Name, Value string }

// Summary counts what a statement read and wrote.
type Summary struct {
	ResultRows, ReadRows, ReadBytes, WrittenRows, WrittenBytes uint64
}

// Error is an exception of the engine: its code, its symbolic name and the whole text as ClickHouse words it.
type Error struct {
	Code int
	Name string // UNKNOWN_TABLE, as in the text; may be empty
	Text string // "Code: 60. DB::Exception: … (UNKNOWN_TABLE)"
}

func (e *Error) Error() string { return e.Text }

var _ error = (*Error)(nil)

// Codes that chlocal itself answers with or acts on, as in ClickHouse's list.
const (
	CodeNotImplemented   = 48
	CodeBadArguments     = 36
	CodeUnknownSetting   = 115
	CodeReadonly         = 164
	CodeAborted          = 236
	CodeAccessDenied     = 497
	CodeTooLarge         = 396
	CodeCannotDecompress = 271
	CodeUnknown          = 1002
)

// NewError makes an exception that the front raises by itself, worded like the engine's.
func NewError(code int, name, message string) *Error {
	return &Error{Code: code, Name: name, Text: "Code: " + strconv.Itoa(code) + ". DB::Exception: " + message + ". (" + name + ")"}
}

var (
	codePattern = regexp.MustCompile(`Code:\s*(\d+)\.`)
	namePattern = regexp.MustCompile(`\(([A-Z][A-Z0-9_]+)\)`)
)

func parseError(text string) *Error {
	text = strings.TrimSpace(text)
	e := &Error{Code: CodeUnknown, Text: text}
	m := codePattern.FindStringSubmatchIndex(text)
	if m == nil {
		return NewError(CodeUnknown, "UNKNOWN_EXCEPTION", text)
	}
	e.Code, _ = strconv.Atoi(text[m[2]:m[3]])
	e.Text = text[m[0]:] // clients find the code at the start of the text
	if n := namePattern.FindAllStringSubmatch(text, -1); n != nil {
		e.Name = n[len(n)-1][1]
	}
	return e
}

// QuoteString makes a SQL string literal, QuoteIdent a quoted identifier.
func QuoteString(v string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(v) + "'"
}

// QuoteIdent makes a quoted SQL identifier.
func QuoteIdent(v string) string {
	return "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(v) + "`"
}
