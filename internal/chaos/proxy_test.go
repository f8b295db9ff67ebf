package chaos

import (
	"testing"
)

func TestForget(t *testing.T) {
	b := []byte(`xx{"end":12345,"incarnation":2}yy`)
	if forget(b); string(b) != `xx{"end":    0,"incarnation":2}yy` {
		t.Errorf("%s", b)
	}
}

func TestStepsAreNamedByTheirTable(t *testing.T) {
	for statement, want := range map[string]string{
		"INSERT INTO cells (topic, a) FORMAT Native": "insert cells",
		"insert INTO `tocsin`.`dead_letters` (x)":    "insert dead_letters",
		"\nINSERT INTO tick_cells (tick) SELECT 1":   "insert tick_cells",
		"SELECT 1": "query",
		"":         "query",
		"CREATE TABLE IF NOT EXISTS x (a Int) ENGINE = Memory": "query",
	} {
		if got := step(statement); got != want {
			t.Errorf("%q is %q, want %q", statement, got, want)
		}
	}
}
