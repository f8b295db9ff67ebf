package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const jumpy = `groups:
  - name: r
    rules:
      - alert: Failing
        kind: failure_rate
        above: 0.15%   # the site's usual is 0.2%
        window: 10m
        annotations: {runbook_url: "https://example.org/failing", summary: failing}
      - alert: Impact
        kind: high_impact
        services: 1
        declare: 1
        recovered: 5m
        annotations: {runbook_url: "https://example.org/page", summary: page}
`

// A rule that pages from the first minute is proposed a threshold above what is usual, as a patch that keeps comments; what
// is labelled is still found.
func TestCalibrate(t *testing.T) {
	dir := oneSite(t)
	if err := os.Remove(filepath.Join(dir, "labels.yaml")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "labels.yaml"), "incidents: [{id: one, start: 2026-09-13T08:30:00Z}]\nquiet: [{from: 2026-09-13T08:00:00Z, to: 2026-09-13T08:30:00Z}]\n")
	rules := filepath.Join(t.TempDir(), "rules")
	write(t, filepath.Join(rules, "r.yaml"), jumpy)
	got := call(t, Env{}, "calibrate", dir, "--rules", rules, "--rule", "Failing", "--output", "json")
	var p struct {
		Proposals []struct{ Rule, Field, Value, Proposed string }
		Diff      string
	}
	if err := json.Unmarshal([]byte(got.out), &p); got.code != 0 || err != nil {
		t.Fatalf("%d %v: %s%s", got.code, err, got.out, got.err)
	}
	if len(p.Proposals) == 0 || p.Proposals[0].Rule != "Failing" || !strings.Contains(p.Diff, "+        "+p.Proposals[0].Field+": "+p.Proposals[0].Proposed) {
		t.Fatalf("%+v", p)
	}
	text := call(t, Env{}, "calibrate", dir, "--rules", rules, "--rule", "Failing", "--accept")
	if text.code != 0 || !strings.Contains(text.out, "as it is") || !strings.Contains(text.out, "replays") {
		t.Errorf("%+v", text)
	}
	data, err := os.ReadFile(filepath.Join(rules, "r.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if string(data) == jumpy || !strings.Contains(string(data), "# the site's usual is 0.2%") {
		t.Errorf("accepted:\n%s", data)
	}
	for _, v := range []struct {
		args string
		code int
		err  string
	}{
		{"calibrate", 2, "name folders, or --from and --to"},
		{"calibrate " + dir + " --accept", 2, "those that Tocsin ships with"},
		{"calibrate " + dir + " --output html", 2, "text, json or diff"},
	} {
		if got := call(t, Env{}, strings.Fields(v.args)...); got.code != v.code || !strings.Contains(got.err, v.err) {
			t.Errorf("%s: %+v", v.args, got)
		}
	}
}
