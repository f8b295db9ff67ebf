package rule

import (
	"math"
	"slices"
	"strings"
	"testing"
)

const span = "time >= {from:DateTime64(3)} AND time < {to:DateTime64(3)}"

func sqlRule(query string, more ...string) string {
	return "alert: Q\nkind: sql\nquery: |\n  " + strings.ReplaceAll(query, "\n", "\n  ") + "\n" + strings.Join(more, "\n")
}

func TestQueriesThatCanBeRun(t *testing.T) {
	for _, q := range []string{
		"SELECT service, count() AS value FROM t WHERE " + span + " GROUP BY service",
		"with 1 as one select one as value from t where " + span + ";",
		"SELECT value FROM t WHERE " + span + " -- now() is not asked; DROP TABLE t\n",
		"SELECT value, 'now(); INSERT INTO x', `file`, \"url\" FROM t WHERE " + span + " /* sleep(3) */",
		"SELECT * FROM t WHERE time >= {from:DateTime} AND time < { to : DateTime('UTC') }",
		"SELECT format, settings, map('a', 1)['a'] AS value, {'b': 2} AS m FROM t WHERE " + span,
		"SELECT $$it's; now()$$ AS a, 1.5e3 AS value FROM t WHERE " + span + " ORDER BY value LIMIT 10",
		"SELECT count() AS value FROM (SELECT x FROM t WHERE " + span + " SETTINGS)",
		"SELECT max(time) AS now, now - min(time) AS value, t.current_date, `now` FROM t WHERE " + span,
		"SELECT value /* outer /* FORMAT inner */ now() */ FROM t WHERE " + span,
	} {
		if _, err := load(t, sqlRule(q)); err != nil {
			t.Errorf("%s\n%v", q, err)
		}
	}
}

func TestQueriesThatCanNot(t *testing.T) {
	for q, want := range map[string]string{
		"DROP TABLE t":      "a.yaml:7:7: query: it begins with DROP",
		"SELECT 1 AS value": "it does not use {from:DateTime64(3)}",
		"SELECT 1 AS value WHERE " + span + ";\nDROP TABLE t":                   "a.yaml:8:7: query: a second statement",
		"SELECT count() FROM t WHERE " + span:                                   "no column a name of value",
		"SELECT 1 AS value\nWHERE time > now() AND " + span:                     "a.yaml:8:20: query: now() gives another answer each time",
		"SELECT `now64` (3) AS value WHERE " + span:                             "now64() gives another answer",
		"SELECT 1 AS value FROM url('http://127.0.0.1:1/', CSV) WHERE " + span:  "url() reads from elsewhere",
		"SELECT \"file\"('/etc/hostname') AS value WHERE " + span:               "file() reads from elsewhere",
		"SELECT 1 AS value WHERE " + span + " FORMAT JSON":                      "FORMAT is the program's business",
		"SELECT 1 AS value WHERE " + span + " SETTINGS max_execution_time = 0":  "SETTINGS are the program's",
		"SELECT 1 AS value WHERE " + span + " INTO OUTFILE '/tmp/x'":            "INTO writes",
		"WITH x AS (SELECT 1) INSERT INTO t SELECT 1 AS value WHERE " + span:    "INSERT writes",
		"SELECT {limit:UInt8} AS value WHERE " + span:                           "{limit:UInt8} is no parameter of a rule",
		"SELECT 1 AS value WHERE time > {from:UInt64} AND " + span:              "not UInt64",
		"SELECT 'x AS value WHERE " + span:                                      "a quote begins here and does not end",
		"SELECT (1 AS value WHERE " + span:                                      "a bracket is opened here",
		"SELECT 1] AS value WHERE " + span:                                      "closes no bracket",
		"SELECT 1 AS value /* WHERE " + span:                                    "a comment begins here",
		"SELECT ‘file‘ AS value WHERE " + span:                                  "not ASCII",
		"SELECT `fil\\x65`('/etc/hostname') AS value WHERE " + span:             "is not understood",
		"SELECT NOW AS n, 1 AS value FROM t WHERE " + span:                      "NOW gives another answer each time",
		"SELECT 1 AS value FROM t WHERE time < CURRENT_TIMESTAMP AND " + span:   "CURRENT_TIMESTAMP gives another",
		"SELECT 1 AS value FROM icebergS3Cluster('c', 'x') WHERE " + span:       "icebergS3Cluster() reads from elsewhere",
		"SELECT 1 AS value FROM oss('x') WHERE " + span:                         "oss() reads from elsewhere",
		"SELECT 1 AS value FROM t /* a /* b */ WHERE " + span:                   "a comment begins here",
		"SELECT 1 AS value FROM t /* /* x */ WHERE " + span + " */ WHERE a > 1": "it does not use {from:DateTime64(3)}",
		"-- nothing": "it is empty",
	} {
		if _, err := load(t, sqlRule(q)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nwant %q in %v", q, want, err)
		}
	}
	for more, want := range map[string]string{
		"window: 7s": "window 7s", "window: 60d": "at most 31d", "timeout: 2m": "timeout 2m", "max_rows: 0": "max_rows 0", "above: 1\nbelow: 2": "every value is one or the other",
		"above: .nan": "must be a number", "values: 3": "values",
	} {
		if _, err := load(t, sqlRule("SELECT 1 AS value WHERE "+span, more)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want %q in %v", more, want, err)
		}
	}
}

// A place that a database names is found in the file, however the query is written.
func TestPlacesInsideOfQueries(t *testing.T) {
	for text, want := range map[string]string{
		sqlRule("SELECT 1 AS value\nWHERE " + span):                          "rules/a.yaml:8:9",
		"alert: Q\nkind: sql\nquery: 'SELECT 1 AS value WHERE " + span + "'": "rules/a.yaml:6:13",
	} {
		set, err := load(t, text)
		if err != nil {
			t.Fatal(err)
		}
		r := set.Rules()[0]
		q := &r.Params.(*SQL).Query
		line := 1 + strings.Count(q.Text(), "\n")
		if got := q.AtLine(r.Pos, min(line, 2), 3).String(); line == 2 && got != want || line == 1 && q.At(r.Pos, 0).String() != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestBoundsOfValues(t *testing.T) {
	five, one := 5.0, 1.0
	for _, c := range []struct {
		p    SQL
		want []bool // of 0, 3, 9, NaN, +Inf
	}{
		{SQL{}, []bool{true, true, true, false, true}},
		{SQL{Above: &five}, []bool{false, false, true, false, true}},
		{SQL{Below: &five}, []bool{true, true, false, false, false}},
		{SQL{Above: &five, Below: &one}, []bool{true, false, true, false, true}},
	} {
		var got []bool
		for _, v := range []float64{0, 3, 9, math.NaN(), math.Inf(1)} {
			got = append(got, c.p.Abnormal(v))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, want %v", c.p, got, c.want)
		}
	}
}

// Moving a rule within its file is no change of what it judges: what it found stays.
func TestTheSameQueryElsewhereInTheFile(t *testing.T) {
	a, err := load(t, sqlRule("SELECT 1 AS value WHERE "+span))
	if err != nil {
		t.Fatal(err)
	}
	b, err := load(t, "alert: Before\nkind: failure_rate\nabove: 5%", sqlRule("SELECT 1 AS value WHERE "+span))
	if err != nil {
		t.Fatal(err)
	}
	if !a.Rules()[0].JudgesAs(&b.Rules()[1]) || a.Rules()[0].JudgesAs(&b.Rules()[0]) {
		t.Error("a rule's place is taken for a part of it, or its query is not")
	}
}
