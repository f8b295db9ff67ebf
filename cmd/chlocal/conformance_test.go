package main

// These tests drive a real chlocal through clickhouse-go and say what Tocsin relies on.

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/tocsin-project/tocsin/internal/chlocal/chlocaltest"
)

func exec(t testing.TB, conn driver.Conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if err := conn.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func scan[T any](t testing.TB, conn driver.Conn, query string, args ...any) (v T) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), query, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

func settings(ctx context.Context, s clickhouse.Settings) context.Context {
	return clickhouse.Context(ctx, clickhouse.WithSettings(s))
}

var compressions = []clickhouse.CompressionMethod{clickhouse.CompressionNone, clickhouse.CompressionLZ4, clickhouse.CompressionLZ4HC,
	clickhouse.CompressionZSTD, clickhouse.CompressionGZIP, clickhouse.CompressionDeflate, clickhouse.CompressionBrotli}

func open(t testing.TB, addr, database string, m clickhouse.CompressionMethod) driver.Conn {
	t.Helper()
	conn, err := clickhouse.Open(&clickhouse.Options{Addr: []string{addr}, Protocol: clickhouse.HTTP, MaxOpenConns: 16,
		Auth: clickhouse.Auth{Database: database}, Compression: &clickhouse.Compression{Method: m, Level: 3}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// everyType has a column of each type that a table of Tocsin's may use.
type everyType struct {
	U8     uint8             `ch:"u8"`
	U16    uint16            `ch:"u16"`
	U32    uint32            `ch:"u32"`
	U64    uint64            `ch:"u64"`
	I64    int64             `ch:"i64"`
	F64    float64           `ch:"f64"`
	S      string            `ch:"s"`
	LC     string            `ch:"lc"`
	TS     time.Time         `ch:"ts"`
	DT     time.Time         `ch:"dt"`
	B      bool              `ch:"b"`
	E      string            `ch:"e"`
	AU     []uint64          `ch:"au"`
	AS     []string          `ch:"asx"`
	M      map[string]string `ch:"m"`
	NF     *float64          `ch:"nf"`
	ID     uuid.UUID         `ch:"id"`
	FS     string            `ch:"fs"`
	Tuples [][]any           `ch:"tuples"`
	NName  []string          `ch:"n.name"`
	NCount []uint64          `ch:"n.count"`
}

const everyTypeTable = `CREATE TABLE every_type (u8 UInt8, u16 UInt16, u32 UInt32, u64 UInt64, i64 Int64, f64 Float64, s String, lc LowCardinality(String),
	ts DateTime64(3, 'UTC'), dt DateTime('UTC'), b Bool, e Enum8('success' = 1, 'failure' = 2), au Array(UInt64), asx Array(String),
	m Map(String, String), nf Nullable(Float64), id UUID, fs FixedString(4), tuples Array(Tuple(String, UInt64)), n Nested(name String, count UInt64))
	ENGINE = MergeTree ORDER BY u64`

func everyTypeRow(i int) everyType {
	half := 0.5 + float64(i)
	r := everyType{U8: 255, U16: 65535, U32: math.MaxUint32, U64: math.MaxUint64 - uint64(i), I64: math.MinInt64 + int64(i), F64: math.Pi, S: "empty\n\nlines; and 'quotes' \x00 é",
		LC: fmt.Sprint("value", i%3), TS: time.Date(2026, 11, 30, 1, 2, 3, 456e6, time.UTC), DT: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), B: true, E: "failure",
		AU: []uint64{1, math.MaxUint64}, AS: []string{"", "b\n\n"}, M: map[string]string{"k": "v\t"}, NF: &half, ID: uuid.MustParse("0f0e0d0c-0b0a-0908-0706-050403020100"),
		FS: "abcd", Tuples: [][]any{{"a", uint64(1)}, {"b", uint64(2)}}, NName: []string{"x", "y"}, NCount: []uint64{3, 4}}
	if i%2 == 1 {
		r.NF, r.AU, r.AS, r.M, r.Tuples, r.NName, r.NCount = nil, []uint64{}, []string{}, map[string]string{}, [][]any{}, []string{}, []uint64{}
	}
	return r
}

func TestEveryTypeComesBackAsSentInEveryCompression(t *testing.T) {
	for _, m := range compressions {
		t.Run(m.String(), func(t *testing.T) {
			addr, database := chlocaltest.NewDatabase(t)
			conn := open(t, addr, database, m)
			exec(t, conn, everyTypeTable)
			batch, err := conn.PrepareBatch(t.Context(), "INSERT INTO every_type")
			if err != nil {
				t.Fatal(err)
			}
			const rows = 2000
			for i := range rows {
				r := everyTypeRow(i)
				if err := batch.AppendStruct(&r); err != nil {
					t.Fatal(err)
				}
			}
			if err := batch.Send(); err != nil {
				t.Fatal(err)
			}
			if got := scan[uint64](t, conn, "SELECT count() FROM every_type"); got != rows {
				t.Fatalf("%d rows, want %d", got, rows)
			}
			var got []everyType
			if err := conn.Select(t.Context(), &got, "SELECT * FROM every_type ORDER BY u64 DESC"); err != nil {
				t.Fatal(err)
			}
			for i := range got {
				if diff := cmp.Diff(everyTypeRow(i), got[i]); diff != "" {
					t.Fatalf("row %d: (-sent +got)\n%s", i, diff)
				}
			}
		})
	}
}

func TestAggregateStatesAreReadMergedOrFinalised(t *testing.T) {
	conn, _ := chlocaltest.Conn(t)
	exec(t, conn, "CREATE TABLE states (k UInt8, n AggregateFunction(sum, UInt64), u AggregateFunction(uniqExact, String)) ENGINE = AggregatingMergeTree ORDER BY k",
		"INSERT INTO states SELECT number % 2, sumState(number), uniqExactState(toString(number)) FROM numbers(100) GROUP BY 1",
		"INSERT INTO states SELECT number % 2, sumState(number), uniqExactState(toString(number)) FROM numbers(100) GROUP BY 1")
	var n, u uint64
	if err := conn.QueryRow(t.Context(), "SELECT sumMerge(n), uniqExactMerge(u) FROM states").Scan(&n, &u); err != nil || n != 9900 || u != 100 {
		t.Errorf("merged: sum %d, distinct %d, want 9900 and 100 (%v)", n, u, err)
	}
	if got := scan[uint64](t, conn, "SELECT sum(finalizeAggregation(n)) FROM states"); got != 9900 {
		t.Errorf("finalised: sum %d, want 9900", got)
	}
}

func TestABatchIsOneBlockWhateverItsSize(t *testing.T) {
	conn, database := chlocaltest.Conn(t)
	exec(t, conn, "CREATE TABLE big (a UInt64, s String) ENGINE = MergeTree ORDER BY a SETTINGS non_replicated_deduplication_window = 1000", "SYSTEM STOP MERGES big")
	const rows = 200_000
	ctx := settings(t.Context(), clickhouse.Settings{"async_insert": 0, "insert_deduplicate": 1, "insert_deduplication_token": "t/0/100-200"})
	for range 2 { // the second is the retry of one whose answer was lost
		batch, err := conn.PrepareBatch(ctx, "INSERT INTO big (a, s)")
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			if err := batch.Append(uint64(i), "a text of some length, so that the block is megabytes"); err != nil {
				t.Fatal(err)
			}
		}
		if err := batch.Send(); err != nil {
			t.Fatal(err)
		}
	}
	if got := scan[uint64](t, conn, "SELECT count() FROM big"); got != rows {
		t.Errorf("%d rows after an insert and its retry, want %d", got, rows)
	}
	if got := scan[uint64](t, conn, "SELECT count() FROM system.parts WHERE database = ? AND table = 'big'", database); got != 1 {
		t.Errorf("%d parts, want 1: a reader could see half a batch", got)
	}
	// Another token is another insert.
	if err := conn.Exec(settings(t.Context(), clickhouse.Settings{"insert_deduplication_token": "t/0/200-300"}), "INSERT INTO big VALUES (1, 'x')"); err != nil {
		t.Fatal(err)
	}
	if got := scan[uint64](t, conn, "SELECT count() FROM big"); got != rows+1 {
		t.Errorf("%d rows after another token, want %d", got, rows+1)
	}
}

func TestParametersKeepTheirValue(t *testing.T) {
	conn, _ := chlocaltest.Conn(t)
	ctx := clickhouse.Context(t.Context(), clickhouse.WithParameters(clickhouse.Parameters{"n": "42", "ids": "[1,2,3]", "at": "2026-11-30 01:02:03.456"}))
	var n, ids uint64
	var at time.Time
	if err := conn.QueryRow(ctx, "SELECT {n:UInt64}, arraySum({ids:Array(UInt64)}), {at:DateTime64(3)}").Scan(&n, &ids, &at); err != nil {
		t.Fatal(err)
	}
	if want := time.Date(2026, 11, 30, 1, 2, 3, 456e6, time.UTC); n != 42 || ids != 6 || !at.Equal(want) {
		t.Errorf("got %d, %d, %s", n, ids, at)
	}
	for _, want := range []string{"plain", "it's", "two\n\nlines", `back\slash`, "tab\there", "é 漢字", "{x:String}", ""} {
		var got string
		if err := conn.QueryRow(t.Context(), "SELECT {s:String}", clickhouse.Named("s", want)).Scan(&got); err != nil || got != want {
			t.Errorf("parameter %q came back as %q (%v)", want, got, err)
		}
		if got := scan[string](t, conn, "SELECT ?", want); got != want {
			t.Errorf("bound %q came back as %q", want, got)
		}
	}
}

func TestSettingsHoldForTheirRequestOnly(t *testing.T) {
	conn, _ := chlocaltest.Conn(t)
	get := func(ctx context.Context) (v string) {
		t.Helper()
		if err := conn.QueryRow(ctx, "SELECT toString(getSetting('max_block_size'))").Scan(&v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	before := get(t.Context())
	if got := get(settings(t.Context(), clickhouse.Settings{"max_block_size": 1234})); got != "1234" {
		t.Errorf("max_block_size is %s inside the request that sets 1234", got)
	}
	exec(t, conn, "SET max_block_size = 99")
	if got := get(t.Context()); got != before {
		t.Errorf("max_block_size is %s in a later request, want %s", got, before)
	}
	var exception *clickhouse.Exception
	if err := conn.Exec(settings(t.Context(), clickhouse.Settings{"no_such_setting": 1}), "SELECT 1"); !errors.As(err, &exception) || exception.Code != 115 {
		t.Errorf("an unknown setting gives %v, want code 115", err)
	}
}

func TestExceptionsHaveTheirCode(t *testing.T) {
	for _, m := range compressions {
		t.Run(m.String(), func(t *testing.T) {
			addr, database := chlocaltest.NewDatabase(t)
			conn := open(t, addr, database, m)
			exec(t, conn, "CREATE TABLE t (a UInt64, CONSTRAINT small CHECK a < 10) ENGINE = MergeTree ORDER BY a")
			for _, c := range []struct {
				name, query string
				code        int32
			}{
				{"unknown table", "SELECT * FROM nothing", 60},
				{"syntax", "SELEC 1", 62},
				{"two statements", "SELECT 1; DROP TABLE t", 62},
				{"unknown identifier", "SELECT nothing FROM t", 47},
				{"a row is wrong", "INSERT INTO t VALUES (11)", 469},
				{"before the first block", "SELECT throwIf(number = 0) FROM numbers(10)", 395},
				{"time", "SELECT sleepEachRow(0.1) FROM numbers(50) SETTINGS max_execution_time = 0.2, max_block_size = 1", 159},
				{"memory", "SELECT uniqExact(number) FROM numbers(10000000) SETTINGS max_memory_usage = 10000000", 241},
			} {
				err := conn.Exec(t.Context(), c.query)
				var exception *clickhouse.Exception
				if !errors.As(err, &exception) || exception.Code != c.code {
					t.Errorf("%s: %v, want code %d", c.name, err, c.code)
				}
			}
			// An exception after the response has begun.
			rows, err := conn.Query(t.Context(), "SELECT number, throwIf(number = 500000) FROM numbers(1000000) SETTINGS max_block_size = 10000, max_threads = 1")
			n := 0
			if err == nil {
				for rows.Next() {
					n++
				}
				err = rows.Err()
				rows.Close()
			}
			var exception *clickhouse.Exception
			if !errors.As(err, &exception) || exception.Code != 395 || n == 0 {
				t.Errorf("in mid-stream, after %d rows: %v, want code 395", n, err)
			}
			if got := scan[uint8](t, conn, "SELECT 1"); got != 1 {
				t.Error("the connection does not work after exceptions")
			}
		})
	}
}

func TestAbandonedQueriesStop(t *testing.T) {
	conn, _ := chlocaltest.Conn(t)
	const running = "SELECT count() FROM system.processes WHERE query LIKE ? AND query NOT LIKE '%system.processes%'"
	for name, query := range map[string]string{
		"select":           "SELECT count() FROM numbers(1000000000000) WHERE sipHash64(number) = 1",
		"stream":           "SELECT number FROM numbers(1000000000001) WHERE sipHash64(number) % 1000 = 1",
		"insert from rows": "INSERT INTO FUNCTION null('n UInt64') SELECT number FROM numbers(1000000000002) WHERE sipHash64(number) = 1",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				rows, err := conn.Query(ctx, query)
				if err == nil {
					for rows.Next() {
					}
					err = rows.Err()
					rows.Close()
				}
				ended <- err
			}()
			pattern := "%" + query[strings.Index(query, "numbers("):strings.Index(query, " WHERE")] + "%"
			eventually(t, "the query runs", func() bool { return scan[uint64](t, conn, running, pattern) == 1 })
			cancel()
			if err := <-ended; err == nil {
				t.Error("the query ended without an error")
			}
			eventually(t, "the query is gone", func() bool { return scan[uint64](t, conn, running, pattern) == 0 })
		})
	}
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("not within 10 s: %s", what)
		case <-tick.C:
		}
	}
}

func TestExternalTables(t *testing.T) {
	conn, _ := chlocaltest.Conn(t)
	exec(t, conn, "CREATE TABLE t (k UInt64, n AggregateFunction(sum, UInt64)) ENGINE = AggregatingMergeTree ORDER BY k")
	table := func(rows int) context.Context {
		ids, err := ext.NewTable("incoming", ext.Column("k", "UInt64"), ext.Column("s", "String"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			if err := ids.Append(uint64(i), "text\n\n"); err != nil {
				t.Fatal(err)
			}
		}
		return clickhouse.Context(t.Context(), clickhouse.WithExternalTable(ids))
	}
	if err := conn.Exec(table(1000), "INSERT INTO t SELECT k % 10, sumState(k) FROM incoming GROUP BY 1"); err != nil {
		t.Fatal(err)
	}
	if got := scan[uint64](t, conn, "SELECT sumMerge(n) FROM t"); got != 999*1000/2 {
		t.Errorf("sum is %d", got)
	}
	var n uint64
	if err := conn.QueryRow(table(5), "SELECT count() FROM t WHERE k IN (SELECT k FROM incoming)").Scan(&n); err != nil || n != 5 {
		t.Errorf("%d of 5 keys found (%v)", n, err)
	}
	if err := conn.QueryRow(table(0), "SELECT count() FROM incoming").Scan(&n); err != nil || n != 0 {
		t.Errorf("an empty table has %d rows (%v)", n, err)
	}
	if err := conn.Exec(t.Context(), "SELECT * FROM incoming"); err == nil {
		t.Error("the table outlived its request")
	}
}

func TestAResultWithoutRows(t *testing.T) {
	conn, _ := chlocaltest.Conn(t)
	for _, query := range []string{
		"SELECT number AS n, toLowCardinality('x') AS s FROM numbers(0)",
		"WITH 1 AS one SELECT number + one AS n, [map('a', 1)] AS s FROM numbers(10) WHERE number > {min:UInt64} -- none",
		"SELECT number AS n, 's' AS s FROM numbers(10) LIMIT 0 SETTINGS max_threads = 1;",
	} {
		rows, err := conn.Query(clickhouse.Context(t.Context(), clickhouse.WithParameters(clickhouse.Parameters{"min": "100"})), query)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"n", "s"}, rows.Columns()); diff != "" {
			t.Errorf("%s: columns (-want +got)\n%s", query, diff)
		}
		if rows.Next() {
			t.Error("a row came from nowhere")
		}
		if err := rows.Err(); err != nil {
			t.Error(err)
		}
		rows.Close()
	}
	var n uint64
	if err := conn.QueryRow(t.Context(), "SELECT number FROM numbers(0)").Scan(&n); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("got %v, want sql.ErrNoRows", err)
	}
}

func TestDatabaseSQL(t *testing.T) {
	addr, database := chlocaltest.NewDatabase(t)
	db, err := sql.Open("clickhouse", "http://"+addr+"/"+database+"?compress=lz4")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE t (a UInt64, s String) ENGINE = MergeTree ORDER BY a"); err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	insert, err := tx.PrepareContext(t.Context(), "INSERT INTO t")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if _, err := insert.Exec(uint64(i), "s"); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	var n, sum uint64
	if err := db.QueryRowContext(t.Context(), "SELECT count(), sum(a) FROM t WHERE a >= ?", 50).Scan(&n, &sum); err != nil || n != 50 || sum != 3725 {
		t.Errorf("count %d, sum %d (%v)", n, sum, err)
	}
}

func TestReadersOnlyReadTables(t *testing.T) {
	addr, database := chlocaltest.NewDatabase(t)
	writer := open(t, addr, database, clickhouse.CompressionLZ4)
	exec(t, writer, "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a", "INSERT INTO t VALUES (1), (2)")
	reader, err := clickhouse.Open(&clickhouse.Options{Addr: []string{addr}, Protocol: clickhouse.HTTP, Auth: clickhouse.Auth{Database: database, Username: "reader"}})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for _, q := range []string{"SELECT count() FROM t", "WITH 1 AS x SELECT x", "(SELECT 1)", "SHOW TABLES", "DESCRIBE TABLE t", "EXPLAIN SELECT 1", "EXISTS TABLE t",
		"SELECT 'file(1)', 'it''s; é $'", "-- a comment; DROP\nSELECT 1", "SELECT 1 SETTINGS max_threads = 1", "SELECT count() FROM system.tables"} {
		if err := reader.Exec(t.Context(), q); err != nil {
			t.Errorf("refused: %s: %v", q, err)
		}
	}
	for _, q := range []string{"INSERT INTO t VALUES (3)", "INSERT INTO t SELECT 3", "DROP TABLE t", "TRUNCATE TABLE t", "ALTER TABLE t DELETE WHERE 1", "CREATE TABLE u (a UInt8) ENGINE = Memory",
		"SYSTEM STOP MERGES", "KILL QUERY WHERE 1", "SET ROLE writer", "SET readonly = 0", "SELECT 1; SET ROLE writer", "SELECT 1 SETTINGS readonly = 0",
		"SELECT file('/etc/hostname')", "SELECT FILE /**/ ('/etc/hostname')", "SELECT `file`('/etc/hostname')", `SELECT "file"('/etc/hostname')`, "SELECT `fil\\x65`('/etc/hostname')",
		"SELECT $$'$$, file('/etc/hostname') --'", "SELECT ‘'’, file('/etc/hostname') --'",
		"SELECT * FROM file('/etc/hostname', 'LineAsString')", "SELECT * FROM `default`.`/etc/hostname`", "SELECT * FROM url('http://127.0.0.1:1/', 'CSV', 'a String')",
		"SELECT 1 INTO OUTFILE '/tmp/chlocal-outfile'", "EXPLAIN AST SELECT 1; DROP TABLE t", "INSERT INTO FUNCTION file('/tmp/x', 'CSV') SELECT 1"} {
		if err := reader.Exec(t.Context(), q); err == nil {
			t.Errorf("allowed: %s", q)
		}
	}
	if got := scan[uint64](t, writer, "SELECT count() FROM t"); got != 2 {
		t.Errorf("%d rows after all this, want 2", got)
	}
}

func TestManyClientsAtOnce(t *testing.T) {
	addr, database := chlocaltest.NewDatabase(t)
	conn := open(t, addr, database, clickhouse.CompressionLZ4)
	exec(t, conn, "CREATE TABLE t (w UInt8, i UInt64) ENGINE = MergeTree ORDER BY (w, i) SETTINGS non_replicated_deduplication_window = 1000")
	const workers, rounds, rows = 16, 6, 500
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			ctx := t.Context()
			for i := range rounds {
				token := settings(ctx, clickhouse.Settings{"insert_deduplication_token": fmt.Sprintf("%d/%d", w, i)})
				batch, err := conn.PrepareBatch(token, "INSERT INTO t")
				if err != nil {
					t.Error(err)
					return
				}
				for r := range rows {
					batch.Append(uint8(w), uint64(i*rows+r))
				}
				if err := batch.Send(); err != nil {
					t.Error(err)
					return
				}
				var n uint64
				if err := conn.QueryRow(ctx, "SELECT count() FROM t WHERE w = ?", w).Scan(&n); err != nil || n != uint64(i+1)*rows {
					t.Errorf("worker %d sees %d of its %d rows (%v)", w, n, (i+1)*rows, err)
				}
				if err := conn.Exec(ctx, "SELECT broken"); err == nil {
					t.Error("a broken query succeeded")
				}
				short, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
				conn.Exec(short, "SELECT count() FROM numbers(10000000000) WHERE sipHash64(number) = 1")
				cancel()
			}
		})
	}
	wg.Wait()
	if got := scan[uint64](t, conn, "SELECT count() FROM t"); got != workers*rounds*rows {
		t.Errorf("%d rows, want %d", got, workers*rounds*rows)
	}
}
