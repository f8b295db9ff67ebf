package app

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tocsin-project/tocsin/internal/chlocal/chlocaltest"
	"github.com/tocsin-project/tocsin/internal/cli"
	"github.com/tocsin-project/tocsin/internal/clickhouse"
)

// checkDatabase calls `tocsin check --database` with rules of one file.
func checkDatabase(t *testing.T, addr, database, rules string) (code int, out, said string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"tocsin.yaml":           fmt.Sprintf("kafka: {brokers: [\"127.0.0.1:1\"]}\nclickhouse: {addresses: [%q], database: %s}\nfiles: {rules: rules}\n", addr, database),
		"rules/asked/rows.yaml": rules,
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var o, e bytes.Buffer
	code = cli.Execute(t.Context(), cli.Env{Stdout: &o, Stderr: &e, CheckConfig: CheckConfig, CheckQueries: CheckQueries}, []string{"check", "--database", "--config.file", filepath.Join(dir, "tocsin.yaml")})
	return code, o.String(), strings.ReplaceAll(e.String(), dir+string(filepath.Separator), "")
}

// What the engine makes of the queries of sql rules is told as any other mistake in a file: with its place, all of them at once.
func TestCheckAsksTheDatabaseAboutQueries(t *testing.T) {
	addr, database := chlocaltest.NewDatabase(t)
	db, err := clickhouse.Open(clickhouse.Config{Addresses: []string{addr}, Database: database}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Migrate(t.Context())
	if e := db.Close(); err != nil || e != nil {
		t.Fatal(err, e)
	}
	const good = `groups:
- name: rows
  rules:
  - alert: Good
    kind: sql
    query: |
      SELECT resource, sum(value) AS value FROM gauges
      WHERE time >= {from:DateTime64(3)} AND time < {to:DateTime64(3)} GROUP BY resource
    annotations: {summary: a, runbook_url: "https://example.com/a"}
`
	code, out, said := checkDatabase(t, addr, database, good)
	if code != 0 || !strings.Contains(out, "\nqueries: 1, each is understood by ClickHouse\n") || said != "" {
		t.Errorf("good: %d %s%s", code, out, said)
	}
	code, out, said = checkDatabase(t, addr, database, good+`  - alert: Misspelt
    kind: sql
    query: |
      SELECT resource,
        value value value
      FROM gauges WHERE time >= {from:DateTime64(3)} AND time < {to:DateTime64(3)}
  - {alert: Elsewhere, kind: sql, query: "SELECT 1 AS value FROM gages WHERE time >= {from:DateTime64(3)} AND time < {to:DateTime64(3)}"}
  - alert: Wordy
    kind: sql
    query: SELECT resource AS value FROM gauges WHERE time >= {from:DateTime64(3)} AND time < {to:DateTime64(3)}
`)
	lines := strings.Split(strings.TrimSpace(said), "\n")
	for i, want := range []string{
		"rules/asked/rows.yaml:14:21: Misspelt: query: Syntax error",
		"rules/asked/rows.yaml:16:43: Elsewhere: query: Unknown table expression identifier 'gages'",
		"rules/asked/rows.yaml:19:12: Wordy: query: column value is of type String, which is no number",
	} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d does not begin with %q, in\n%s", i+1, want, said)
		}
	}
	if code != 1 || len(lines) != 3 || strings.Contains(out, "queries:") {
		t.Errorf("%d\n%s\n%s", code, out, said)
	}
	// That nobody answers is no mistake in a file.
	if code, _, said = checkDatabase(t, "127.0.0.1:1", database, good); code != 1 || strings.Contains(said, "rows.yaml") || !strings.Contains(said, "checking queries: ClickHouse at 127.0.0.1:1: ") {
		t.Errorf("out of reach: %d %s", code, said)
	}
}
