package chlocaltest

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

func TestEachTestHasADatabaseOfItsOwn(t *testing.T) {
	for _, name := range []string{"a", "b"} {
		t.Run(name, func(t *testing.T) {
			conn, database := Conn(t)
			if err := conn.Exec(t.Context(), "CREATE TABLE same_name (a UInt8) ENGINE = MergeTree ORDER BY a"); err != nil {
				t.Fatal(err)
			}
			var got string
			if err := conn.QueryRow(t.Context(), "SELECT currentDatabase()").Scan(&got); err != nil || got != database {
				t.Fatalf("current database %q, want %q (%v)", got, database, err)
			}
		})
	}
	if left := Exec(t, StartShared(t), "SELECT count() FROM system.databases WHERE name LIKE 'test\\_%'"); left != "0\n" {
		t.Errorf("%s databases left behind", left)
	}
}

func TestTheFoldersOfKilledTestsAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	old := time.Now().Add(-2 * staleAge)
	for name, c := range map[string]struct {
		locked, old, kept bool
	}{"a": {locked: true, old: true, kept: true}, "b": {locked: false, old: true, kept: false}, "c": {locked: false, old: false, kept: true}} {
		dir := filepath.Join(os.TempDir(), dirPrefix+name)
		file := filepath.Join(dir, "clickhouse", "chlocal.lock")
		os.MkdirAll(filepath.Dir(file), 0o755)
		if c.locked {
			unlock, err := lock(file)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(unlock)
		}
		if c.old {
			os.Chtimes(dir, old, old)
		}
		sweep()
		if _, err := os.Stat(dir); (err == nil) != c.kept {
			t.Errorf("%s: kept %t, want %t", name, err == nil, c.kept)
		}
	}
}
