package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPipelineTry(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	good := write("p.yaml", "name: p\ntopic: t\nstream: requests\ndecoder: json\nroutes:\n  - {match: GetIssue, operation: get}\n")
	broken := write("broken.yaml", "name: p\ntopic: t\nstream: requests\ndecoder: jsonn\n")
	record := write("record", `[{"time":1789288980000,"service":"issues","operation":"GetIssue","outcome":"failure"},{"time":1789288980000}]`)
	run := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		code := Execute(t.Context(), Env{Stdout: &out, Stderr: &errs}, append([]string{"pipeline", "try"}, args...))
		return code, out.String(), errs.String()
	}
	code, out, _ := run(good, record)
	for _, want := range []string{"2026-09-13T08:43:00Z", `"operation":"get"`, `route 1 (` + good + `:6:5) matches "GetIssue"`, "its verb is among reads.verbs", "dead   missing_field", "1 events, 1 dead letters"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("%d, no %q in:\n%s", code, want, out)
		}
	}
	var v struct {
		Events []struct {
			Event struct{ Service string }
			Why   []string
		}
		Dead []struct{ Reason string } `json:"dead_letters"`
	}
	if code, out, _ = run(good, record, "--output", "json"); code != 0 || json.Unmarshal([]byte(out), &v) != nil || len(v.Events) != 1 || len(v.Events[0].Why) != 3 || v.Dead[0].Reason != "missing_field" {
		t.Errorf("%d %s", code, out)
	}
	if code, out, _ = run("changes.yaml", record); code != 0 || !strings.Contains(out, "0 events, 2 dead letters") {
		t.Errorf("a shipped one: %d %s", code, out)
	}
	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{broken, record}, 1, `broken.yaml:4:10: unknown decoder "jsonn"`},
		{[]string{good, filepath.Join(dir, "none")}, 1, "reading the record"},
		{[]string{"none.yaml", record}, 1, "reading the pipeline"},
		{[]string{good}, 2, "wants a pipeline and a record"},
		{[]string{good, record, "--time", "noon"}, 2, "RFC 3339"},
	} {
		if code, _, errs := run(tt.args...); code != tt.code || !strings.Contains(errs, tt.says) {
			t.Errorf("%v: %d %s", tt.args, code, errs)
		}
	}
}
