package chlocaltest

import (
	"testing"
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
