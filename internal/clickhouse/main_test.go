package clickhouse

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/tocsin-project/tocsin/internal/chlocal/chlocaltest"
)

func TestMain(m *testing.M) { chlocaltest.Main(m, goleak.IgnoreCurrent()) }

var start = time.Date(2026, 9, 13, 7, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

// empty opens a fresh database of the shared engine without a schema.
func empty(t testing.TB) *DB {
	t.Helper()
	addr, database := chlocaltest.NewDatabase(t)
	return open(t, addr, database)
}

func open(t testing.TB, addr, database string) *DB {
	t.Helper()
	db, err := Open(Config{Addresses: []string{addr}, Database: database}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// fresh opens a fresh database with the schema, for tests that change it.
func fresh(t testing.TB) *DB {
	t.Helper()
	db := empty(t)
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

// migrated opens a database with the schema and no rows. Tests that use it run one after the other.
func migrated(t testing.TB) *DB {
	t.Helper()
	db := open(t, chlocaltest.StartShared(t), "emptied_for_each_test")
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	truncate(t, db)
	return db
}

// one reads a single value.
func one[T any](t testing.TB, db *DB, sql string) (v T) {
	t.Helper()
	if err := db.conn.QueryRow(context.Background(), sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// truncate empties every table, and with that the engine's memory of tokens: much faster than a fresh schema.
func truncate(t testing.TB, db *DB) {
	t.Helper()
	for _, table := range one[[]string](t, db, "SELECT groupArray(name) FROM system.tables WHERE database = currentDatabase() AND engine != 'View' AND total_rows > 0 AND name != 'schema_migrations'") {
		if err := db.conn.Exec(t.Context(), "TRUNCATE TABLE "+table+" SYNC"); err != nil {
			t.Fatal(err)
		}
	}
}

// equateEmpty: no list and an empty one are the same.
var equateEmpty = cmpopts.EquateEmpty()
