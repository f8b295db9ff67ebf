package clickhouse

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/detect/timelinetest"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/rules"
)

func question(query string) detect.Question {
	return detect.Question{Rule: "Q", At: at(60), From: at(0), To: at(60), Query: query, Timeout: 5 * time.Second, MaxRows: 100}
}

const spanned = " WHERE time >= {from:DateTime64(3)} AND time < {to:DateTime64(3)}"

func TestQueriesSeeTheirSpan(t *testing.T) {
	db := migrated(t)
	f := newFeeder(db)
	var gauges []signal.Gauge
	for _, s := range []int{-1, 0, 30, 59, 60} {
		gauges = append(gauges, signal.Gauge{Time: at(s), Resource: "r", Metric: "m", Value: float64(s)})
	}
	f.feed(t, timelinetest.Rows{Gauges: gauges})
	for _, column := range []string{"DateTime64(3)", "DateTime64(3, 'Asia/Tokyo')", "DateTime"} {
		q := question("SELECT resource, sum(value) AS value FROM gauges WHERE marker = 0 AND time >= {from:" + column + "} AND time < {to:" + column + "} GROUP BY resource")
		rows, err := NewQuerier(db).Query(t.Context(), q)
		if diff := cmp.Diff([]detect.AnswerRow{{Labels: map[string]string{"resource": "r"}, Value: 89}}, rows); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", column, err, diff)
		}
	}
}

var sameNumber = cmp.Comparer(func(a, b detect.Number) bool { return a == b || math.IsNaN(float64(a)) && math.IsNaN(float64(b)) })

func TestRowsOfAllTypes(t *testing.T) {
	db := migrated(t)
	rows, err := NewQuerier(db).Query(t.Context(), question(`SELECT 'x' AS a, toLowCardinality('y') AS b, toUInt8(3) AS c, NULL AS d, toNullable('z') AS e, true AS f,
		toDateTime64('2026-09-13 07:00:00.5', 3, 'UTC') AS g, toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0') AS h, CAST('up' AS Enum8('up' = 1)) AS i, toDecimal32(1.5, 2) AS j, '' AS k,
		toInt64(-4) AS value`))
	want := []detect.AnswerRow{{Labels: map[string]string{
		"a": "x", "b": "y", "c": "3", "e": "z", "f": "true", "g": "2026-09-13T07:00:00.5Z", "h": "61f0c404-5cb3-11e7-907b-a6006ad3dba0", "i": "up", "j": "1.5",
	}, Value: -4}}
	if diff := cmp.Diff(want, rows); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for text, want := range map[string]float64{
		"toUInt64(7)": 7, "toFloat32(0.5)": 0.5, "0 / 0": math.NaN(), "1 / 0": math.Inf(1), "-1 / 0": math.Inf(-1), "NULL": math.NaN(), "toNullable(2)": 2,
		"toDecimal64('12.25', 4)": 12.25, "toInt256(9)": 9, "true": 1, "toNullable(toDecimal32(3, 1))": 3,
	} {
		rows, err := NewQuerier(db).Query(t.Context(), question("SELECT "+text+" AS value"))
		if diff := cmp.Diff([]detect.AnswerRow{{Labels: map[string]string{}, Value: detect.Number(want)}}, rows, sameNumber); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", text, err, diff)
		}
	}
}

// Whatever a query says, it reads, within its bounds, and fails in words that help.
func TestQueriesThatAreNotAnswered(t *testing.T) {
	db := migrated(t)
	for _, c := range []struct{ query, reason, text string }{
		{"SELECT 1 AS n", detect.QueryMalformed, "no column named value, but n"},
		{"SELECT 'x' AS value", detect.QueryMalformed, "column value is a string"},
		{"SELECT [1] AS a, 1 AS value", detect.QueryMalformed, "column a is a []uint8"},
		{"SELECT nothing AS value", detect.QueryRefused, "nothing"},
		{"SELECT 1 AS value FROM no_such_table", detect.QueryRefused, "no_such_table"},
		{"SELECT 1 AS value FRM x y z", detect.QueryRefused, "Syntax error"},
		{"SELECT number AS n, 1 AS value FROM numbers(101)", detect.QueryTooLarge, ""},
		{"SELECT concat(repeat('x', 100000), toString(number)) AS n, number AS value FROM numbers(100)", detect.QueryTooLarge, ""},
		{"SELECT uniqExact(number) AS value FROM numbers(1000000000)", detect.QueryTooLarge, ""},
		{"INSERT INTO sources (kind) SELECT 'x'", detect.QueryRefused, ""},
		{"DROP TABLE sources", detect.QueryRefused, ""},
		{"SELECT 1 AS value SETTINGS max_execution_time = 0", detect.QueryRefused, ""},
		{"SELECT throwIf(number = 3) AS value FROM numbers(10)", detect.QueryRefused, ""},
	} {
		_, err := NewQuerier(db).Query(t.Context(), question(c.query))
		var e *detect.QueryError
		if !errors.As(err, &e) || e.Reason != c.reason || !strings.Contains(e.Error(), c.text) {
			t.Errorf("%s: %v, want %s with %q", c.query, err, c.reason, c.text)
			continue
		}
		if text := e.Error(); strings.Contains(text, "version 2") || strings.Contains(text, "\n") || strings.Contains(text, "http://") {
			t.Errorf("%s: says too much: %s", c.query, text)
		}
	}
	if n := one[uint64](t, db, "SELECT count() FROM sources"); n != 0 {
		t.Errorf("a rule wrote %d rows", n)
	}
	slow := question("SELECT count() AS value FROM numbers(100000000000) WHERE sipHash64(number) = 1")
	slow.Timeout = time.Second
	began := time.Now()
	var e *detect.QueryError
	if _, err := NewQuerier(db).Query(t.Context(), slow); !errors.As(err, &e) || e.Reason != detect.QueryTimeout || time.Since(began) > 4*time.Second {
		t.Errorf("slow: %v after %s", err, time.Since(began))
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NewQuerier(db).Query(gone, slow); err == nil {
		t.Error("answered after its context ended")
	}
}

func TestCheckOfQueries(t *testing.T) {
	db := migrated(t)
	q := NewQuerier(db)
	for text, want := range map[string]string{
		"SELECT resource, sum(value) AS value FROM gauges" + spanned + " GROUP BY resource -- so": "",
		"SELECT resource, value FROM gauges" + spanned:                                            "",
		"SELECT resource AS value FROM gauges" + spanned:                                          "which is no number",
		"SELECT resource FROM gauges" + spanned:                                                   "no column named value, but resource",
		"SELECT resource, vlue AS value FROM gauges" + spanned:                                    "vlue",
		"SELECT 1 AS value FROM gages" + spanned:                                                  "gages",
	} {
		if err := q.Check(t.Context(), question(text)); err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	err := q.Check(t.Context(), question("SELECT resource,\n  value value value FROM gauges"+spanned))
	if line, col, ok := q.Place(err); !ok || line != 2 || col != 15 {
		t.Errorf("%d:%d %v in %v, want 2:15", line, col, ok, err)
	}
}

// What ships, and what the manual shows, is understood by the engine.
func TestShippedQueriesAreUnderstood(t *testing.T) {
	db := migrated(t)
	q := NewQuerier(db)
	set, err := rule.LoadFS(rules.FS, ".")
	if err != nil {
		t.Fatal(err)
	}
	groups := set.Groups
	for _, k := range rule.Kinds {
		f, err := rule.Parse(k.Name, []byte("groups:\n- name: example\n  rules:\n  - "+strings.ReplaceAll(strings.TrimRight(k.Example, "\n"), "\n", "\n    ")+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		groups = append(groups, f.Groups...)
	}
	asked := 0
	for gi := range groups {
		for ri := range groups[gi].Rules {
			r := &groups[gi].Rules[ri]
			question, ok := detect.QuestionAt(&groups[gi], r, at(60))
			if !ok {
				continue
			}
			asked++
			if err := q.Check(t.Context(), question); err != nil {
				t.Errorf("%s: %v", r.Alert, err)
			}
			if _, err := q.Query(t.Context(), question); err != nil {
				t.Errorf("%s: %v", r.Alert, err)
			}
		}
	}
	if asked < 2 {
		t.Errorf("%d queries, want the shipped one and the example", asked)
	}
}

// On a cluster a replica may lag behind what has been acknowledged, and a question is about a span that is there as a whole.
func TestQueriesOfAClusterSeeWhatIsAcknowledged(t *testing.T) {
	q := question("SELECT 1 AS value")
	for quorum, want := range map[string]any{"": nil, "auto": 1} {
		if got := NewQuerier(&DB{cfg: Config{InsertQuorum: quorum}}).settings(&q)["select_sequential_consistency"]; got != want {
			t.Errorf("quorum %q: %v, want %v", quorum, got, want)
		}
	}
}
