package front

import (
	"net/http/httptest"
	"testing"
)

func TestInsertDataIsFoundWhereItBegins(t *testing.T) {
	for _, c := range []struct{ statement, head, format, data string }{
		{"INSERT INTO t FORMAT Native", "INSERT INTO t ", "Native", ""},
		{"insert into t (a, b) format Native\n\x01\x02", "insert into t (a, b) ", "Native", "\x01\x02"},
		{"/* c */ INSERT INTO t (values, format) VALUES (1, 'x\n\n;')", "/* c */ INSERT INTO t (values, format) ", "Values", " (1, 'x\n\n;')"},
		{"INSERT INTO `format x` FORMAT CSV\n1;2", "INSERT INTO `format x` ", "CSV", "1;2"},
		{"INSERT INTO t SELECT k FROM input('k String') FORMAT Native", "INSERT INTO t SELECT k FROM input('k String') ", "Native", ""},
		{"INSERT INTO t -- VALUES\nFORMAT JSONEachRow {}", "INSERT INTO t -- VALUES\n", "JSONEachRow", "{}"},
		{"INSERT INTO t SELECT format FROM x", "", "", ""},
		{"INSERT INTO t WITH 1 AS values SELECT values", "", "", ""},
		{"SELECT 'INSERT INTO t FORMAT Native'", "", "", ""},
		{"CREATE TABLE t (format String)", "", "", ""},
	} {
		at, format, ok := insertData(mask([]byte(c.statement)))
		if ok != (c.format != "") {
			t.Errorf("%q: found %t", c.statement, ok)
			continue
		}
		if ok && (c.statement[:at.start] != c.head || format != c.format || c.statement[at.end:] != c.data) {
			t.Errorf("%q: got %q, %q, %q", c.statement, c.statement[:at.start], format, c.statement[at.end:])
		}
	}
}

func FuzzMaskKeepsOffsets(f *testing.F) {
	for _, s := range []string{"SELECT 'a''b\\'c' -- x\n", "`", "/*", "'\\", "# c\n\"q\"", "--"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if got := mask(text); len(got) != len(text) {
			t.Fatalf("%q became %q", text, got)
		}
		insertData(mask(text))
	})
}

func TestOnlyThisMachineIsServed(t *testing.T) {
	for _, c := range []struct {
		host, origin string
		ok           bool
	}{
		{"127.0.0.1:8123", "", true}, {"localhost:8123", "", true}, {"[::1]:8123", "", true}, {"localhost", "", true},
		{"attacker.example:8123", "", false}, {"10.0.0.1:8123", "", false}, {"127.0.0.1:8123", "http://attacker.example", false},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		r.Host = c.host
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		if err := sameMachine(r); (err == nil) != c.ok {
			t.Errorf("host %q, origin %q: %v", c.host, c.origin, err)
		}
	}
}
