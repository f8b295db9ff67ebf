package rule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/rule"
)

func TestBudgetsAreReadAsWritten(t *testing.T) {
	for text, want := range map[string]rule.Budget{
		"1 per 30d": {Alarms: 1, Per: 30 * 24 * time.Hour}, "0.5 per 7d": {Alarms: 0.5, Per: 7 * 24 * time.Hour}, "3 per 12h": {Alarms: 3, Per: 12 * time.Hour},
	} {
		var b rule.Budget
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want {
			t.Errorf("%q is read as %v, %v", text, b, err)
		}
		if again, _ := b.MarshalText(); string(again) == "" || b.UnmarshalText(again) != nil || b != want {
			t.Errorf("%q is written as %q", text, again)
		}
	}
	for _, text := range []string{"", "1", "per 30d", "0 per 30d", "-1 per 30d", "NaN per 30d", "Inf per 30d", "1 per 5m", "1 per month", "1 per 99y"} {
		var b rule.Budget
		if err := b.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as %v", text, b)
		}
	}
}

func TestARuleJudgesByAThresholdOrByEvidence(t *testing.T) {
	for text, want := range map[string]string{
		"kind: failure_rate\nabove: 5%":                                          "",
		"kind: failure_rate\nfalse_pages: 1 per 30d\nblips: 2m\nmin_excess: 50":  "",
		"kind: latency\nslower_than: 2s\nfalse_pages: 1 per 30d":                 "",
		"kind: failure_rate":                                                     "want above",
		"kind: latency\nslower_than: 2s":                                         "want above",
		"kind: failure_rate\nabove: 5%\nfalse_pages: 1 per 30d":                  "not by both",
		"kind: failure_rate\nfalse_pages: 1 per 30d\nwindow: 5m":                 "window: means nothing",
		"kind: failure_rate\nfalse_pages: 1 per 30d\nmin_failures: 5":            "min_failures: means nothing",
		"kind: latency\nslower_than: 2s\nfalse_pages: 1 per 30d\ntimes_usual: 5": "times_usual: means nothing",
		"kind: failure_rate\nfalse_pages: 1 per 30d\nblips: 90s":                 "blips 1m30s",
		"kind: failure_rate\nfalse_pages: 1 per 30d\nblips: 30m":                 "blips 30m",
		"kind: failure_rate\nfalse_pages: often":                                 "no budget",
	} {
		accepts(t, text, want)
	}
}

func TestSupportAndHighImpactJudgeByNumbersOrByEvidence(t *testing.T) {
	for text, want := range map[string]string{
		"kind: support\nmin_accounts: 5":                                  "",
		"kind: support\nfalse_pages: 1 per 30d\nblips: 5m\nmin_excess: 3": "",
		"kind: support": "4:5: want min_accounts",
		"kind: support\nmin_accounts: 5\nfalse_pages: 1 per 30d": "not by both",
		"kind: support\nfalse_pages: 1 per 30d\nwindow: 5m":      "window: means nothing",
		"kind: support\nfalse_pages: 1 per 30d\ntimes_usual: 5":  "times_usual: means nothing",
		"kind: support\nmin_accounts: 5\nmin_excess: 9":          "min_excess: means nothing without",
		"kind: support\nfalse_pages: 1 per 30d\nblips: 10s":      "blips 10s",
		"kind: high_impact": "",
		"kind: high_impact\nfalse_pages: 1 per 30d\nareas: [pulls]":          "",
		"kind: high_impact\nfalse_pages: 1 per 30d\nrecovered: 9m":           "",
		"kind: high_impact\nfalse_pages: 1 per 30d\nservices: 2":             "services: means nothing beside",
		"kind: high_impact\nfalse_pages: 1 per 30d\ndeclare: 2\ncritical: 5": "declare: means nothing beside",
		"kind: high_impact\nmin_excess: 5":                                   "min_excess: means nothing without",
		"kind: high_impact\nfalse_pages: 1 per 30d\nmin_accounts: 0":         "want at least 1",
		"kind: high_impact\nfalse_pages: 3 each day":                         "no budget",
	} {
		accepts(t, text, want)
	}
}

// accepts parses one rule, given without its name, and wants an error that contains want, or none.
func accepts(t *testing.T, text, want string) {
	t.Helper()
	_, err := rule.Parse("r.yaml", []byte("groups:\n- name: g\n  rules:\n  - alert: A\n    "+strings.ReplaceAll(text, "\n", "\n    ")+"\n"))
	switch {
	case want == "" && err != nil:
		t.Errorf("%q: %v", text, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%q: %v, want %q", text, err, want)
	}
}
