package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/tocsin-project/tocsin/internal/detect"
)

const (
	queryMemoryMax = 1 << 30
	queryBytesMax  = 4 << 20 // of a result; what a rule may keep of it is less
	queryThreads   = 2       // a rule must not take the engine away from ticks
)

// Querier runs the queries of sql rules over a database that stays the caller's. Nothing that a query says writes, raises a limit or
// outlives its question. It is safe for use by many goroutines.
type Querier struct{ db *DB }

var _ detect.Querier = (*Querier)(nil)

// NewQuerier makes one.
func NewQuerier(db *DB) *Querier { return &Querier{db} }

// Query runs a question's query. Its rows are as a rule wants them, or it is an error.
func (q *Querier) Query(ctx context.Context, question detect.Question) (out []detect.AnswerRow, err error) {
	err = q.run(ctx, question.Query, &question, func(rows driver.Rows) error {
		columns, err := columnsOf(rows.ColumnTypes())
		if err != nil {
			return err
		}
		for bytes := 0; rows.Next(); {
			if err := rows.Scan(columns.targets...); err != nil {
				return fmt.Errorf("read row: %w", err)
			}
			row, err := columns.row()
			if err != nil {
				return err
			}
			for _, v := range row.Labels {
				bytes += len(v)
			}
			if bytes > queryBytesMax {
				return &detect.QueryError{Reason: detect.QueryTooLarge, Err: fmt.Errorf("the query returns more than %d bytes", queryBytesMax)}
			}
			if out = append(out, row); len(out) > question.MaxRows {
				return &detect.QueryError{Reason: detect.QueryTooLarge, Err: fmt.Errorf("the query returns more than %d rows, which is the rule's max_rows", question.MaxRows)}
			}
		}
		return rows.Err()
	})
	return out, err
}

// Check asks the engine what it makes of a question's query, without running it.
func (q *Querier) Check(ctx context.Context, question detect.Question) error {
	question.MaxRows = 1000 // columns
	var names, types []string
	err := q.run(ctx, "DESCRIBE TABLE (\n"+question.Query+"\n)", &question, func(rows driver.Rows) error {
		texts := make([]string, len(rows.Columns()))
		targets := make([]any, len(texts))
		for i := range texts {
			targets[i] = &texts[i]
		}
		for rows.Next() {
			if err := rows.Scan(targets...); err != nil {
				return fmt.Errorf("read row: %w", err)
			}
			names, types = append(names, texts[0]), append(types, texts[1])
		}
		return rows.Err()
	})
	if err != nil {
		return err
	}
	valued := false
	for i, n := range names {
		if n == valueColumn {
			valued = true
			if !numeric.MatchString(types[i]) {
				return malformed("column value is of type %s, which is no number", types[i])
			}
		}
	}
	if !valued {
		return malformed("the query returns no column named value, but %s", strings.Join(names, ", "))
	}
	return nil
}

// run sends one statement with everything that bounds it.
func (q *Querier) run(ctx context.Context, text string, question *detect.Question, read func(driver.Rows) error) error {
	ctx, cancel := context.WithTimeout(ctx, question.Timeout)
	defer cancel()
	err := q.db.request(ctx, "ask for a rule", func(ctx context.Context) error {
		ctx = ch.Context(ctx, ch.WithParameters(ch.Parameters{"from": moment(question.From), "to": moment(question.To)}), ch.WithSettings(q.settings(question)))
		rows, err := q.db.conn.Query(ctx, text)
		if err != nil {
			return err
		}
		defer rows.Close()
		return read(rows)
	})
	return asked(err)
}

func (q *Querier) settings(question *detect.Question) ch.Settings {
	s := ch.Settings{
		"readonly": 1, "max_execution_time": int(math.Ceil(question.Timeout.Seconds())), "timeout_overflow_mode": "throw",
		"max_result_rows": question.MaxRows, "max_result_bytes": queryBytesMax, "result_overflow_mode": "throw",
		"max_memory_usage": queryMemoryMax, "max_threads": queryThreads,
	}
	if q.db.cfg.InsertQuorum != "" { // a replica that lags would answer for a span that it does not have as a whole
		s["select_sequential_consistency"] = 1
	}
	return s
}

// moment is a time that both DateTime and DateTime64 read alike, whatever the server's time zone.
func moment(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// asked says in a rule's words why there is no answer.
func asked(err error) error {
	var own *detect.QueryError
	var e *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return own
	case !errors.As(err, &e):
		return err
	}
	reason := detect.QueryFailed
	switch {
	case e.Reason == ReasonTimeout:
		reason = detect.QueryTimeout
	case e.Reason == ReasonTooLarge, e.Code == codeMemoryLimit:
		reason = detect.QueryTooLarge
	case e.Code != 0 && e.Reason != ReasonOverloaded && e.Reason != ReasonUnreachable:
		reason = detect.QueryRefused
	}
	return &detect.QueryError{Reason: reason, Err: errors.New(sentence(e))}
}

const codeMemoryLimit = 241

// sentence is what the engine says without where in its code it says so.
func sentence(e *Error) string {
	var ex *ch.Exception
	text := e.Err.Error()
	if errors.As(e.Err, &ex) {
		text = ex.Message
	}
	text, _, _ = strings.Cut(text, "\n")
	text, _, _ = strings.Cut(text, " Stack trace")
	text = versionNote.ReplaceAllString(text, "")
	return strings.TrimSpace(strings.TrimPrefix(text, "DB::Exception: "))
}

var versionNote = regexp.MustCompile(` ?\(version [^()]*(\([^()]*\))?[^()]*\)`)

// Place is the line and column of a query's text that the engine says its error is at; ok is false where it says none.
func (q *Querier) Place(err error) (line, col int, ok bool) {
	m := placed.FindStringSubmatch(err.Error())
	if m == nil {
		return 0, 0, false
	}
	line, errLine := strconv.Atoi(m[1])
	col, errCol := strconv.Atoi(m[2])
	return line - 1, col, errLine == nil && errCol == nil && line > 1
}

var placed = regexp.MustCompile(`\(line (\d+), col (\d+)\)`)

func malformed(format string, args ...any) error {
	return &detect.QueryError{Reason: detect.QueryMalformed, Err: fmt.Errorf(format, args...)}
}

const valueColumn = "value"

var numeric = regexp.MustCompile(`^(Nullable\()?(LowCardinality\()?(Nullable\()?(U?Int\d+|B?Float\d+|Decimal|Bool|Nothing)`)

// columns reads rows of a shape that is not known beforehand.
type columns struct {
	names   []string
	targets []any // pointers to what the driver scans into
}

func columnsOf(types []driver.ColumnType) (*columns, error) {
	c := &columns{}
	valued := false
	for _, t := range types {
		valued = valued || t.Name() == valueColumn
		c.names = append(c.names, t.Name())
		c.targets = append(c.targets, reflect.New(t.ScanType()).Interface())
	}
	if !valued {
		return nil, malformed("the query returns no column named value, but %s", strings.Join(c.names, ", "))
	}
	return c, nil
}

func (c *columns) row() (row detect.AnswerRow, err error) {
	row.Labels = map[string]string{}
	for i, n := range c.names {
		v := reflect.ValueOf(c.targets[i]).Elem()
		for v.Kind() == reflect.Pointer && !v.IsNil() {
			v = v.Elem()
		}
		null := v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface && v.IsNil()
		switch {
		case n == valueColumn && null:
			row.Value = detect.Number(math.NaN())
		case n == valueColumn:
			number, ok := numberOf(v)
			if !ok {
				return row, malformed("column value is a %s, which is no number", v.Type())
			}
			row.Value = detect.Number(number)
		case null:
		default:
			text, ok := textOf(v)
			if !ok {
				return row, malformed("column %s is a %s, which tells no rows apart: turn it into a text", n, v.Type())
			}
			if text != "" {
				row.Labels[n] = text
			}
		}
	}
	return row, nil
}

func numberOf(v reflect.Value) (float64, bool) {
	switch v.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return float64(v.Int()), true
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return float64(v.Uint()), true
	case reflect.Float32, reflect.Float64:
		return v.Float(), true
	case reflect.Bool:
		return map[bool]float64{true: 1}[v.Bool()], true
	case reflect.Struct: // decimals and wide integers write themselves
		if s, ok := written(v); ok {
			f, err := strconv.ParseFloat(s, 64)
			return f, err == nil
		}
		return 0, false
	default:
		return 0, false
	}
}

func textOf(v reflect.Value) (string, bool) {
	if t, ok := v.Interface().(time.Time); ok {
		return t.UTC().Format(time.RFC3339Nano), true
	}
	switch v.Kind() {
	case reflect.String:
		return strings.ToValidUTF8(v.String(), "�"), true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10), true
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.FormatUint(v.Uint(), 10), true
	case reflect.Bool:
		return strconv.FormatBool(v.Bool()), true
	default:
		return written(v)
	}
}

// written is what a value says of itself: UUIDs, addresses, decimals. Lists and maps do not.
func written(v reflect.Value) (string, bool) {
	if s, ok := v.Interface().(fmt.Stringer); ok {
		return s.String(), true
	}
	if v.CanAddr() {
		if s, ok := v.Addr().Interface().(fmt.Stringer); ok {
			return s.String(), true
		}
	}
	return "", false
}
