package docstest

import (
	"testing"

	"github.com/tocsin-project/tocsin/internal/chlocal/chlocaltest"
	"github.com/tocsin-project/tocsin/internal/clickhouse"
)

func TestMain(m *testing.M) { chlocaltest.Main(m) }

func TestSQLBlocksRun(t *testing.T) {
	all := blocks(t, "sql")
	if len(all) == 0 {
		t.Fatal("no page has a query")
	}
	addr, database := chlocaltest.NewDatabase(t)
	db, err := clickhouse.Open(clickhouse.Config{Addresses: []string{addr}, Database: database}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Migrate(t.Context())
	if e := db.Close(); err != nil || e != nil {
		t.Fatal(err, e)
	}
	conn := chlocaltest.Open(t, addr, database)
	for _, b := range all {
		rows, err := conn.Query(t.Context(), b.text)
		if err != nil {
			t.Errorf("%s: %v", b, err)
			continue
		}
		for rows.Next() {
			_ = rows.Columns() // an error in the middle of the answer shows at its end
		}
		if err := rows.Err(); err != nil {
			t.Errorf("%s: %v", b, err)
		}
		if err := rows.Close(); err != nil {
			t.Errorf("%s: %v", b, err)
		}
	}
}
