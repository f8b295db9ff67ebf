package clickhouse

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		name, sql string
		want      []string
	}{
		{"nothing", " \n -- only a comment; really\n/* and ; another */", nil},
		{"no semicolon at the end", "SELECT 1;\n\nSELECT 2\n", []string{"SELECT 1", "SELECT 2"}},
		{"empty statements", ";;SELECT 1;;", []string{"SELECT 1"}},
		{"texts", `SELECT 'a;b', 'it''s;', 'it\';s;', "c;d", ` + "`e;f`; SELECT 2", []string{`SELECT 'a;b', 'it''s;', 'it\';s;', "c;d", ` + "`e;f`", "SELECT 2"}},
		{"comments", "SELECT 1 -- a; 'b\n, 2 /* ; ' */; # c;'\nSELECT 3", []string{"SELECT 1 -- a; 'b\n, 2 /* ; ' */", "# c;'\nSELECT 3"}},
		{"dashes in a text", "SELECT '--', ';' ; SELECT 1", []string{"SELECT '--', ';'", "SELECT 1"}},
		{"heredoc", "SELECT $doc$ ; ' -- $doc$; SELECT $$;$$", []string{"SELECT $doc$ ; ' -- $doc$", "SELECT $$;$$"}},
		{"parameter with a dollar", "SELECT a$b; SELECT 2", []string{"SELECT a$b", "SELECT 2"}},
		{"unclosed text", "SELECT 'a; b", []string{"SELECT 'a; b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, split(c.sql)); d != "" {
				t.Errorf("statements (-want +got):\n%s", d)
			}
		})
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("SELECT ';' -- ;\n; $a$;$a$ /*")
	f.Fuzz(func(t *testing.T, sql string) {
		for _, s := range split(sql) {
			if s == "" || !strings.Contains(sql, s) {
				t.Errorf("split(%q) has %q", sql, s)
			}
		}
	})
}

func TestMigrateTwiceChangesNothing(t *testing.T) {
	db := fresh(t)
	before := one[uint64](t, db, "SELECT count() FROM schema_migrations")
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := one[uint64](t, db, "SELECT count() FROM schema_migrations"); before == 0 || after != before {
		t.Errorf("%d migrations after %d", after, before)
	}
}

func TestMigrateMakesTheDatabase(t *testing.T) {
	db := empty(t)
	if err := db.conn.Exec(t.Context(), "DROP DATABASE "+db.cfg.Database+" SYNC"); err != nil {
		t.Fatal(err)
	}
	again := open(t, db.cfg.Addresses[0], db.cfg.Database)
	if err := again.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestFourMigratorsApplyEachFileOnce(t *testing.T) {
	// Statements that fail or add up when they run twice.
	files := fstest.MapFS{
		"clickhouse/0001_a.sql": {Data: []byte("CREATE TABLE a (x UInt8) {{engine `MergeTree`}} ORDER BY x; INSERT INTO a SELECT 1; CREATE TABLE b (x UInt8) {{engine `MergeTree`}} ORDER BY x")},
		"clickhouse/0002_b.sql": {Data: []byte("INSERT INTO a SELECT 2; ALTER TABLE b ADD COLUMN y UInt8")},
	}
	db := empty(t)
	var group sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		m := open(t, db.cfg.Addresses[0], db.cfg.Database)
		group.Go(func() { errs[i] = m.migrate(context.Background(), files) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if got := one[string](t, db, "SELECT toString(arraySort(groupArray(x))) FROM a"); got != "[1,2]" {
		t.Errorf("rows %s, want each insert once", got)
	}
	if got := one[string](t, db, "SELECT toString(arraySort(groupArray(version))) FROM schema_migrations"); got != "[1,2]" {
		t.Errorf("migrations %s, want each once", got)
	}
}

func TestMigratorThatDiedHoldsNobodyUpForEver(t *testing.T) {
	db := empty(t)
	if err := db.migrate(t.Context(), fstest.MapFS{}); err != nil {
		t.Fatal(err)
	}
	dead, err := takeLock(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := takeLock(ctx, db); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a held lock is taken: %v", err)
	}
	if err := db.conn.Exec(t.Context(), "ALTER TABLE schema_lock UPDATE until = now64(3) - 1 WHERE 1 SETTINGS mutations_sync = 1"); err != nil {
		t.Fatal(err)
	}
	next, err := takeLock(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	if err := dead.check(t.Context()); err == nil {
		t.Error("whoever lost the lock goes on")
	}
	if err := next.check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestMigrateRefusesWhatItDoesNotKnow(t *testing.T) {
	file := func(x string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("CREATE TABLE IF NOT EXISTS a (" + x + " UInt8) ENGINE = MergeTree ORDER BY tuple()")}
	}
	db := empty(t)
	if err := db.migrate(t.Context(), fstest.MapFS{"clickhouse/0001_a.sql": file("x"), "clickhouse/0002_b.sql": file("x")}); err != nil {
		t.Fatal(err)
	}
	err := db.migrate(t.Context(), fstest.MapFS{"clickhouse/0001_a.sql": file("x"), "clickhouse/0002_b.sql": file("y")})
	if !errors.Is(err, ErrChangedMigration) || Retryable(err) {
		t.Fatalf("a changed file gives %v, want ErrChangedMigration for good", err)
	}
	for _, want := range []string{"0002_b.sql", "checksum"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not name %s", err, want)
		}
	}
	if m, _ := loadMigrations(fstest.MapFS{"clickhouse/0001_b.sql": file("y")}); !strings.Contains(err.Error(), m[0].checksum) {
		t.Errorf("error %q does not name the checksum %s", err, m[0].checksum)
	}
	if err := db.migrate(t.Context(), fstest.MapFS{"clickhouse/0001_a.sql": file("x")}); err == nil || !strings.Contains(err.Error(), "older than the schema") {
		t.Errorf("an older program gives %v, want a refusal", err)
	}
	if _, err := loadMigrations(fstest.MapFS{"clickhouse/0001_a.sql": file("x"), "clickhouse/0003_b.sql": file("x")}); err == nil {
		t.Error("a gap in the numbers is accepted")
	}
}

func TestEverythingHasAComment(t *testing.T) {
	db := fresh(t)
	for what, sql := range map[string]string{
		"tables":  "SELECT groupArray(name) FROM system.tables WHERE database = currentDatabase() AND comment = ''",
		"columns": "SELECT groupArray(table || '.' || name) FROM system.columns WHERE database = currentDatabase() AND comment = ''",
	} {
		if without := one[[]string](t, db, sql); len(without) > 0 {
			t.Errorf("%s without a comment: %v", what, without)
		}
	}
	if n := one[uint64](t, db, "SELECT count() FROM system.tables WHERE database = currentDatabase()"); n < 25 {
		t.Errorf("only %d tables and views", n)
	}
}

func TestEveryViewAnswers(t *testing.T) {
	db := fresh(t)
	for _, view := range one[[]string](t, db, "SELECT groupArray(name) FROM system.tables WHERE database = currentDatabase() AND engine = 'View'") {
		if err := db.conn.Exec(t.Context(), "SELECT * FROM "+view+" FORMAT Null"); err != nil {
			t.Errorf("view %s: %v", view, err)
		}
	}
}

// A token is remembered for each storage partition, so the partition may depend on nothing that two tries could see
// differently; and a materialised view on a base table costs ten times the insert.
func TestPartitionsFollowTokens(t *testing.T) {
	db := fresh(t)
	const allowed = "'', 'toYYYYMMDD(batch_time)', 'intDiv(tick, 10000)', 'intDiv(tick, 1000000)'"
	bad := one[[]string](t, db, "SELECT groupArray(name || ' by ' || partition_key) FROM system.tables WHERE database = currentDatabase() AND partition_key NOT IN ("+allowed+")")
	if len(bad) > 0 {
		t.Errorf("tables with another partition key: %v", bad)
	}
	if views := one[[]string](t, db, "SELECT groupArray(name) FROM system.tables WHERE database = currentDatabase() AND engine = 'MaterializedView'"); len(views) > 0 {
		t.Errorf("materialised views: %v", views)
	}
}

func TestTickRetentionIsASetting(t *testing.T) {
	db := fresh(t)
	kept := func(days string) uint64 {
		t.Helper()
		return one[uint64](t, db, "SELECT count() FROM system.tables WHERE database = currentDatabase() AND startsWith(name, 'tick_') AND position(engine_full, 'toIntervalDay("+days+")') > 0")
	}
	if n := kept("35"); n != 5 {
		t.Errorf("%d tables keep ticks for 35 days, want 5", n)
	}
	other, err := Open(Config{Addresses: db.cfg.Addresses, Database: db.cfg.Database, TickRetention: strictyaml.Duration(50 * day)}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for range 2 {
		if err := other.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := kept("50"); n != 5 {
		t.Errorf("%d tables keep ticks for 50 days, want 5", n)
	}
}
