package detect

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Question is what a sql rule asks at one moment of event time, of data that is complete by then.
type Question struct {
	Rule     string
	Of       string        // what is asked, whenever: an answer to another query of the same rule is none
	At       time.Time     // the moment that the answer judges
	From, To time.Time     // the span that is asked about
	Partial  signal.Stream // that misses data of the span, if one does
	Query    string
	Timeout  time.Duration
	MaxRows  int
}

// Answer is what came of a question. Ticks carry answers, so that whoever evaluates a tick again sees the same.
type Answer struct {
	Rule string    `json:"rule"`
	Of   string    `json:"of"`
	At   time.Time `json:"at"`
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Partial is a stream that missed data when the question was put.
	Partial signal.Stream `json:"partial,omitempty"`
	Rows    []AnswerRow   `json:"rows,omitempty"`
	// Error is why there is no answer: then nothing is known, and that is no recovery.
	Error string `json:"error,omitempty"`
}

// AnswerRow is one row: the columns that tell it apart from others, and its value.
type AnswerRow struct {
	Labels map[string]string `json:"labels,omitempty"`
	Value  Number            `json:"value"`
}

// Number is a float that JSON can carry whatever it is.
type Number float64

// MarshalJSON writes what is no number as a text.
func (n Number) MarshalJSON() ([]byte, error) {
	if v := float64(n); math.IsNaN(v) || math.IsInf(v, 0) {
		return json.Marshal(strconv.FormatFloat(v, 'g', -1, 64))
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON reads both.
func (n *Number) UnmarshalJSON(data []byte) error {
	text := string(data)
	if len(text) > 1 && text[0] == '"' {
		text = text[1 : len(text)-1]
	}
	v, err := strconv.ParseFloat(text, 64)
	*n = Number(v)
	return err
}

// Why there is no answer; also the metric label.
const (
	QueryTimeout   = "timeout"
	QueryTooLarge  = "too_large"
	QueryMalformed = "malformed" // its columns or rows are not as a rule wants them
	QueryRefused   = "refused"   // by the database: wrong SQL, missing tables, missing rights
	QueryFailed    = "failed"    // anything else, such as a database that does not answer
)

var queryOutcomes = []string{"answered", QueryTimeout, QueryTooLarge, QueryMalformed, QueryRefused, QueryFailed}

// QueryError says why there is no answer.
type QueryError struct {
	Reason string
	Err    error
}

func (e *QueryError) Error() string { return e.Err.Error() }
func (e *QueryError) Unwrap() error { return e.Err }

// Querier runs the queries of sql rules. The loop calls it from several goroutines, each with a context that ends with the
// question's timeout. It changes nothing in the database, whatever the query says; rows may come in any order, values may be NaN.
// Errors should be *QueryError.
type Querier interface {
	Query(ctx context.Context, q Question) ([]AnswerRow, error)
}

// sqlEvery is how often a sql rule asks whose group says nothing. A query costs more than an evaluation.
const sqlEvery = time.Minute

func everyOf(interval time.Duration) int64 {
	if interval <= 0 {
		interval = sqlEvery
	}
	return buckets(interval)
}

// QuestionAt is what a rule of a group asks about the data up to a moment, or up to the last one before it at which it asks. ok is
// false for rules that ask nothing.
func QuestionAt(g *rule.Group, r *rule.Rule, at time.Time) (q Question, ok bool) {
	p, ok := r.Params.(*rule.SQL)
	if !ok {
		return q, false
	}
	every := everyOf(g.Interval.Std())
	q = Question{
		Rule: r.Alert, At: timeOf(floorDiv(bucketOf(at), every) * every),
		Query: p.Query.Text(), Timeout: p.Timeout.Std(), MaxRows: p.MaxRows,
	}
	q.To = q.At.Add(-g.QueryOffset.Std())
	q.From = q.To.Add(-p.Window.Std())
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", q.Query, p.Window, g.QueryOffset))
	q.Of = hex.EncodeToString(sum[:6])
	return q, true
}

const (
	maxLabels      = 16
	maxLabelBytes  = 1 << 10
	maxAnswerBytes = 256 << 10
)

// Answered makes an answer of what a query returned, or says what is wrong with it. Equal rows in another order are equal answers.
func (q *Question) Answered(rows []AnswerRow, err error) (a Answer, outcome string) {
	a = Answer{Rule: q.Rule, Of: q.Of, At: q.At, From: q.From, To: q.To, Partial: q.Partial}
	if err == nil {
		rows = slices.Clone(rows)
		err = q.accept(rows)
	}
	if err == nil {
		a.Rows = rows
		return a, queryOutcomes[0]
	}
	a.Error = clip(err.Error(), 300)
	return a, reasonOf(err)
}

func (q *Question) accept(rows []AnswerRow) error {
	if len(rows) > q.MaxRows {
		return &QueryError{QueryTooLarge, fmt.Errorf("the query returns %d rows, max_rows allows %d", len(rows), q.MaxRows)}
	}
	bytes := 0
	keys := make(map[incident.FindingKey]bool, len(rows))
	for i := range rows {
		if len(rows[i].Labels) > maxLabels {
			return &QueryError{QueryMalformed, fmt.Errorf("the query returns %d columns beside value, %d at most tell rows apart", len(rows[i].Labels), maxLabels)}
		}
		for n, v := range rows[i].Labels {
			if bytes += len(n) + len(v); len(v) > maxLabelBytes {
				return &QueryError{QueryTooLarge, fmt.Errorf("a value of column %s has %d bytes, %d at most", n, len(v), maxLabelBytes)}
			}
		}
		k := rows[i].key(q.Rule)
		if _, err := signal.ParseAccess(k.Access); k.Access != "" && err != nil {
			return &QueryError{QueryMalformed, fmt.Errorf("column access: %w", err)}
		}
		if keys[k] {
			return &QueryError{QueryMalformed, fmt.Errorf("two rows are about %s: the columns beside value have to tell rows apart", cmp.Or(rowSubject(&k), "the same"))}
		}
		keys[k] = true
	}
	if bytes > maxAnswerBytes {
		return &QueryError{QueryTooLarge, fmt.Errorf("the query returns %d bytes, %d at most", bytes, maxAnswerBytes)}
	}
	slices.SortFunc(rows, func(a, b AnswerRow) int {
		x, y := a.key(q.Rule), b.key(q.Rule)
		return x.Compare(y)
	})
	return nil
}

// key is what a row is about. Columns that are named like parts of a key are those; the others are attributes.
func (r *AnswerRow) key(alert string) incident.FindingKey {
	k := incident.FindingKey{Rule: alert}
	parts := map[string]*string{
		"service": &k.Service, "operation": &k.Operation, "access": &k.Access, "resource": &k.Resource, "metric": &k.Metric, "area": &k.Area,
	}
	var rest []signal.Attr
	for _, n := range sortedKeys(r.Labels) {
		if p := parts[n]; p != nil {
			*p = r.Labels[n]
		} else if r.Labels[n] != "" {
			rest = append(rest, signal.Attr{Name: n, Value: r.Labels[n]})
		}
	}
	k.Attributes = signal.AttributesOf(rest...)
	return k
}

// rowSubject names what a row is about, in words.
func rowSubject(k *incident.FindingKey) string {
	switch {
	case k.Service != "" || k.Resource != "":
		return k.Subject()
	case k.Area != "":
		return k.Area
	}
	return k.Attributes.String()
}

func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

func reasonOf(err error) string {
	var e *QueryError
	switch {
	case errors.As(err, &e):
		return e.Reason
	case errors.Is(err, context.DeadlineExceeded):
		return QueryTimeout
	}
	return QueryFailed
}
