package calibrate

import (
	"strings"
	"testing"
	"testing/fstest"
)

const file = `# The team's rules.
groups:
  - name: g
    rules:
      - alert: Writes   # never below ten
        kind: failure_rate
        above: 10%      # agreed in May
        window: 2m
        min_failures: 10
      - {alert: Inline, kind: failure_rate, above: 4%, window: 10m, min_failures: 30}
      - alert: Budget
        kind: failure_rate
        false_pages: 1 per 30d
`

// The best of each setting is proposed, never at the price of a detection, and the file keeps its comments.
func TestPropose(t *testing.T) {
	settings, files, err := Read(fstest.MapFS{"a/r.yaml": {Data: []byte(file)}, "a/r_test.yaml": {Data: []byte("groups: [{rules: [{alert: X, above: 1%}]}]")}})
	if err != nil || len(settings) != 7 || len(files) != 2 {
		t.Fatalf("%d settings, %d files, %v", len(settings), len(files), err)
	}
	delay := 100.0
	try := func(files map[string][]byte) (Outcome, bool, error) {
		text := string(files["a/r.yaml"])
		o := Outcome{Detected: 5, Labels: 5, FalsePagesWeek: 7, Delay: &delay}
		has := func(s string) bool { return strings.Contains(text, s) }
		if has("above: 15%") {
			o.FalsePagesWeek--
		}
		if has("above: 20%") {
			o.FalsePagesWeek, o.Detected = 0, 4 // quieter, and blind
		}
		if has("above: 8%, window: 10m") {
			o.FalsePagesWeek -= 2
		}
		if has("min_failures: 60") {
			o.FalsePagesWeek -= 3
		}
		if has("min_failures: 5") {
			o.FalsePagesWeek += 3
		}
		return o, !has("1 per 90d"), nil
	}
	p, err := Propose(settings, files, 100, try)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Proposals) != 3 || p.Together == nil || p.Together.FalsePagesWeek != 1 || p.Together.Detected != 5 || p.Skipped != 0 {
		t.Fatalf("%+v", p)
	}
	got := string(p.Files["a/r.yaml"])
	for _, want := range []string{"# The team's rules.", "above: 15%      # agreed in May", "{alert: Inline, kind: failure_rate, above: 8%, window: 10m, min_failures: 60}"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, want := range []string{"--- a/a/r.yaml\n+++ b/a/r.yaml\n@@ -4,10 +4,10 @@\n", "\n-        above: 10%      # agreed in May\n+        above: 15%      # agreed in May\n"} {
		if !strings.Contains(p.Diff, want) {
			t.Errorf("no %q in\n%s", want, p.Diff)
		}
	}
	if p, err = Propose(settings, files, 3, try); err != nil || p.Skipped == 0 {
		t.Errorf("a limit of three replays: %+v %v", p, err)
	}
}

func TestCandidates(t *testing.T) {
	for _, v := range []struct{ field, value, want string }{
		{"above", "10%", "5% 15% 20%"}, {"above", "60%", "30% 90%"}, {"above", "0.1", ""}, {"objective", "99.9%", "99.95% 99.8%"},
		{"false_pages", "1 per 30d", "1 per 10d 1 per 90d"}, {"window", "2m", "1m 4m"}, {"window", "30s", "20s 1m"}, {"window", "1h", "30m"},
		{"min_excess", "30", "15 60"}, {"min_failures", "1", "2"},
	} {
		s := Setting{Field: v.field, Value: v.value}
		if got := strings.Join(s.Candidates(), " "); got != v.want {
			t.Errorf("%s %s: %q, want %q", v.field, v.value, got, v.want)
		}
	}
}

// Blips are tried a minute shorter and longer, and twice as long where a rule may have that.
func TestBlips(t *testing.T) {
	for given, want := range map[string]string{"3m": "2m 4m 6m", "1m": "2m", "15m": "14m 16m", "90s": ""} {
		s := Setting{Field: "blips", Value: given}
		if got := strings.Join(s.Candidates(), " "); got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}
