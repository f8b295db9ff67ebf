package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// cost is what the database read for a question.
type cost struct {
	Bytes, Rows, Groups int64
	Took                time.Duration
}

// question is asked of what is stored, the last hour of it; each has an equal in the tables of the others.
type question struct{ Name, SQL string }

const (
	byPath   = "by path"
	byRegion = "by path and region"
	byName   = "by span name"
)

// tocsinQueries ask the view that analysts use.
var tocsinQueries = []question{
	{byPath, `SELECT service, operation, access, sum(failures) / sum(successes + failures) AS failure_rate
		FROM failure_rates WHERE minute > now() - INTERVAL 1 HOUR GROUP BY service, operation, access`},
	{byRegion, `SELECT service, operation, access, attributes['region'] AS region, sum(failures) / sum(successes + failures) AS failure_rate
		FROM failure_rates WHERE minute > now() - INTERVAL 1 HOUR GROUP BY service, operation, access, region`},
}

// spanQueries ask the tables that a Collector fills. A span's name has method and route where the instrumentation does
// as the conventions say: the cheapest question, which knows no regions.
var spanQueries = map[string][]question{
	roleCollector: {
		{byPath, `SELECT ServiceName, SpanAttributes['http.route'] AS route, SpanAttributes['http.request.method'] IN ('GET', 'HEAD') AS read,
			countIf(StatusCode = 'Error') / count() AS failure_rate
			FROM otel.otel_traces WHERE Timestamp > now() - INTERVAL 1 HOUR AND SpanKind = 'Server' GROUP BY ServiceName, route, read`},
		{byRegion, `SELECT ServiceName, SpanAttributes['http.route'] AS route, SpanAttributes['http.request.method'] IN ('GET', 'HEAD') AS read,
			ResourceAttributes['cloud.region'] AS region, countIf(StatusCode = 'Error') / count() AS failure_rate
			FROM otel.otel_traces WHERE Timestamp > now() - INTERVAL 1 HOUR AND SpanKind = 'Server' GROUP BY ServiceName, route, read, region`},
		{byName, `SELECT ServiceName, SpanName, countIf(StatusCode = 'Error') / count() AS failure_rate
			FROM otel.otel_traces WHERE Timestamp > now() - INTERVAL 1 HOUR AND SpanKind = 'Server' GROUP BY ServiceName, SpanName`},
	},
	roleCollectorNull: {
		{byPath, `SELECT service, route, method IN ('GET', 'HEAD') AS read, sum(failed) / sum(total) AS failure_rate
			FROM otel.path_10s WHERE ts > now() - INTERVAL 1 HOUR GROUP BY service, route, read`},
		{byRegion, `SELECT service, route, method IN ('GET', 'HEAD') AS read, region, sum(failed) / sum(total) AS failure_rate
			FROM otel.path_10s WHERE ts > now() - INTERVAL 1 HOUR GROUP BY service, route, read, region`},
	},
}

// gatherCells does what the detector does with each tick: the view's table has what is judged, a row for each bucket and
// key and tick.
const gatherCells = `INSERT INTO tick_cells (tick, tick_to, bucket, key, successes, failures, rejected, throttled, retries, latency, accounts, samples, estimated)
	SELECT intDiv(toUnixTimestamp(bucket), 10) AS tick, max(bucket) AS tick_to, bucket, key, sum(successes), sum(failures), sum(rejected), sum(throttled), sum(retries),
	sumForEach(latency), arraySlice(arraySort(groupUniqArrayArray(accounts)), 1, 64), arraySlice(arraySort(s -> s.1, groupUniqArrayArray(samples)), 1, 3), max(estimated)
	FROM cells WHERE marker = 0 GROUP BY bucket, key`

// costs asks each question once, which has the database's own count of what it read.
func costs(ctx context.Context, engine string, qs []question) (map[string]cost, error) {
	all := map[string]cost{}
	for _, q := range qs {
		began := time.Now()
		_, summary, err := ask(ctx, engine, q.SQL)
		if err != nil {
			return nil, fmt.Errorf("failure rates %s: %w", q.Name, err)
		}
		c := cost{Took: time.Since(began)}
		for key, to := range map[string]*int64{"read_bytes": &c.Bytes, "read_rows": &c.Rows, "result_rows": &c.Groups} {
			*to, _ = strconv.ParseInt(summary[key], 10, 64)
		}
		all[q.Name] = c
	}
	return all, nil
}

// settled returns when the database has nothing more to merge: what it does after a run is on the run's account.
func settled(ctx context.Context, engine string) error {
	tick := time.NewTicker(settle / 4)
	defer tick.Stop()
	end := time.After(settleMax) // it merges what it has merged already
	for quiet := 0; quiet < 4; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end:
			return nil
		case <-tick.C:
		}
		rows, err := query(ctx, engine, "SELECT toString(count()) FROM system.merges")
		if err != nil {
			return err
		}
		quiet++
		if rows[0][0] != "0" {
			quiet = 0
		}
	}
	return nil
}

// query asks the engine; all columns are texts.
func query(ctx context.Context, engine, sql string) ([][]string, error) {
	body, _, err := ask(ctx, engine, sql)
	if err != nil {
		return nil, err
	}
	var out struct{ Data [][]string }
	if len(body) > 0 {
		if err := json.Unmarshal(body, &out); err != nil {
			return nil, fmt.Errorf("query: %w: %.300s", err, body)
		}
	}
	return out.Data, nil
}

// ask asks over HTTP, as curl would, and gives the answer with the database's summary of it.
func ask(ctx context.Context, engine, sql string) (body []byte, summary map[string]string, err error) {
	q := url.Values{"database": {"tocsin"}, "default_format": {"JSONCompact"}, "wait_end_of_query": {"1"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(engine, "/")+"/?"+q.Encode(), strings.NewReader(sql))
	if err != nil {
		return nil, nil, fmt.Errorf("query: %w", err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, fmt.Errorf("query: %w", err)
	}
	defer res.Body.Close()
	body, err = io.ReadAll(res.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("query: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("query: status %d: %.300s", res.StatusCode, body)
	}
	if s := res.Header.Get("X-ClickHouse-Summary"); s != "" {
		if err := json.Unmarshal([]byte(s), &summary); err != nil {
			return nil, nil, fmt.Errorf("query: its summary: %w", err)
		}
	}
	return body, summary, nil
}
