package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const events = `{"type":"request","time":"2026-09-13T08:00:00Z","service":"issues","operation":"create","access":"write","outcome":"success","count":50}
this is no event
{"type":"gauge","time":"2026-09-13T08:05:00Z","resource":"mysql/collab/primary","metric":"connections","value":10,"limit":100}
`

// Programs read the standard output of a backtest: with --output json it is one object, whatever else there is to say.
func TestBacktestPrintsJSONAlone(t *testing.T) {
	a, b := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
	write(t, filepath.Join(a, "events.jsonl"), events)
	write(t, filepath.Join(b, "events.jsonl"), events)
	write(t, filepath.Join(b, "labels.yaml"), "incidents: []\nquiet: [{from: 2026-09-13T08:00:00Z, to: 2026-09-13T08:05:00Z}]\n")
	got := call(t, Env{}, "backtest", a, b, "--output", "json")
	var v struct {
		Recordings []struct {
			Name      string
			Incidents []json.RawMessage
			Score     *json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(got.out), &v); got.code != 0 || err != nil {
		t.Fatalf("%d %v: %s%s", got.code, err, got.out, got.err)
	}
	if r := v.Recordings; len(r) != 2 || r[0].Name != "first" || r[1].Name != "second" || r[0].Incidents == nil || r[0].Score != nil || r[1].Score == nil {
		t.Errorf("recordings %+v", v.Recordings)
	}
	if !strings.Contains(got.err, filepath.Join(a, "events.jsonl")+":2") {
		t.Errorf("the line that is no event is not named: %q", got.err)
	}
	got = call(t, Env{}, "backtest", a, "--restart-at", "2026-09-13T08:02:00Z")
	if got.code != 0 || !strings.Contains(got.out, "first  2026-09-13 08:00:00 – 2026-09-13 08:05:00\n  not judged: RecordsUnreadable (kind sql: a recording holds no answers of a database)\n") {
		t.Errorf("as text: %+v", got)
	}
}

// A folder that is wrong is told before the first replay, which may take minutes, and all of them together.
func TestBacktestChecksAllFoldersFirst(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "set", "good")
	write(t, filepath.Join(good, "events.jsonl"), events)
	write(t, filepath.Join(dir, "deep", "er", "one", "events.jsonl"), events)
	labels := filepath.Join(dir, "labels")
	write(t, filepath.Join(labels, "events.jsonl"), events)
	write(t, filepath.Join(labels, "labels.yaml"), "incidents: [{colour: red, start: yesterday}]\n")
	catalogue := filepath.Join(dir, "catalogue")
	write(t, filepath.Join(catalogue, "events.jsonl"), events)
	write(t, filepath.Join(catalogue, "catalogue.yaml"), "services: {}\n")
	got := call(t, Env{}, "backtest", good, filepath.Join(dir, "none"), filepath.Join(dir, "set"), filepath.Join(dir, "deep"), labels, catalogue)
	for _, want := range []string{
		"none has no events.jsonl", "set is no recording but holds 1: name each, for example " + good,
		"deep is no recording but holds 1: name each, for example " + filepath.Join(dir, "deep", "er", "one"),
		"labels.yaml:1:", "catalogue.yaml:1:",
	} {
		if got.code != 1 || !strings.Contains(got.err, want) {
			t.Errorf("%d, no %q in %s", got.code, want, got.err)
		}
	}
	if got.out != "" {
		t.Errorf("something was replayed: %s", got.out)
	}
}

// Two sets of rules side by side: the one that pages at 5% is told apart from the one that pages at 50%.
func TestBacktestAgainstOtherRules(t *testing.T) {
	dir := oneSite(t)
	if err := os.Remove(filepath.Join(dir, "labels.yaml")); err != nil {
		t.Fatal(err)
	}
	rules := func(share string) string {
		at := filepath.Join(t.TempDir(), "rules")
		write(t, filepath.Join(at, "r.yaml"), `groups:
  - name: r
    rules:
      - alert: Failing
        kind: failure_rate
        above: `+share+`
        window: 3m
        annotations: {runbook_url: "https://example.org/failing", summary: failing}
`)
		return at
	}
	got := call(t, Env{}, "backtest", dir, "--rules", rules("5%"), "--against", rules("50%"))
	for _, want := range []string{"Failing  failure_rate  1      1", "against the other rules:"} {
		if got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("%d, no %q in\n%s%s", got.code, want, got.out, got.err)
		}
	}
	got = call(t, Env{}, "backtest", dir, "--output", "html")
	if got.code != 0 || !strings.HasPrefix(got.out, "<!doctype html>") {
		t.Errorf("as a page: %d %.200s%s", got.code, got.out, got.err)
	}
}

func TestBacktestRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "events.jsonl"), events)
	for _, v := range []struct {
		args string
		code int
		err  string
	}{
		{"backtest", 2, "at least one folder, or --from and --to"},
		{"backtest " + dir + " --from 2026-09-13T08:00:00Z", 2, "not both"},
		{"backtest --from 2026-09-13T08:00:00Z", 2, "both are needed"},
		{"backtest --from 2026-09-13T08:00:00Z --to 2026-09-13T08:00:00Z", 2, "not after"},
		{"backtest --from 2026-09-13T08:00:00Z --to 2026-09-13T09:00:00Z", 1, "no access to stored history"},
		{"backtest " + dir + " --output pdf", 2, "text or json, or html"},
		{"backtest " + dir + " --against nowhere", 1, "reading rules"},
	} {
		if got := call(t, Env{}, strings.Fields(v.args)...); got.code != v.code || !strings.Contains(got.err, v.err) || got.out != "" {
			t.Errorf("%s: %+v", v.args, got)
		}
	}
}
