package docstest

import (
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/tocsin-project/tocsin/internal/chlocal/chlocaltest"
	"github.com/tocsin-project/tocsin/internal/clickhouse"
	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/rule"
)

func TestMain(m *testing.M) { chlocaltest.Main(m) }

// migrated is an empty installation's database.
func migrated(t *testing.T) (*clickhouse.DB, driver.Conn) {
	t.Helper()
	addr, database := chlocaltest.NewDatabase(t)
	db, err := clickhouse.Open(clickhouse.Config{Addresses: []string{addr}, Database: database}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db, chlocaltest.Open(t, addr, database)
}

// Whoever copies a rule from a page asks ClickHouse with its query: the engine understands each.
func TestQueriesOfRulesAreUnderstood(t *testing.T) {
	db, _ := migrated(t)
	asked := 0
	for _, b := range blocks(t, "yaml") {
		if b.what != "rules" {
			continue
		}
		f, err := rule.Parse(b.String(), []byte(b.text))
		if err != nil {
			continue // said elsewhere
		}
		for gi := range f.Groups {
			for ri := range f.Groups[gi].Rules {
				q, ok := detect.QuestionAt(&f.Groups[gi], &f.Groups[gi].Rules[ri], time.Date(2026, 9, 13, 8, 0, 0, 0, time.UTC))
				if !ok {
					continue
				}
				asked++
				if err := clickhouse.NewQuerier(db).Check(t.Context(), q); err != nil {
					t.Errorf("%s: %s: %v", b, q.Rule, err)
				}
			}
		}
	}
	if asked < 2 {
		t.Errorf("%d queries", asked)
	}
}

func TestSQLBlocksRun(t *testing.T) {
	all := blocks(t, "sql")
	if len(all) == 0 {
		t.Fatal("no page has a query")
	}
	_, conn := migrated(t)
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
