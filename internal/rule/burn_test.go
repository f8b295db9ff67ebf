package rule_test

import (
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/rule"
)

func TestBurnRatesAreReadAsWritten(t *testing.T) {
	var b rule.BurnRate
	if err := b.UnmarshalText([]byte("14.4 over 1h and 5m")); err != nil || b != (rule.BurnRate{Factor: 14.4, Long: time.Hour, Short: 5 * time.Minute}) {
		t.Errorf("%v, %v", b, err)
	}
	if b.String() != "14.4 over 1h and 5m" {
		t.Errorf("written as %q", b)
	}
	for _, text := range []string{"", "14.4", "14.4 over 1h", "0 over 1h and 5m", "x over 1h and 5m", "2 over 5m and 1h", "2 over 1h and 7s", "2 over 4d and 6h", "2 over 61m and 5m"} {
		if err := b.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as %v", text, b)
		}
	}
}

func TestAnObjectiveIsOneOfThreeWays(t *testing.T) {
	for text, want := range map[string]string{
		"kind: failure_rate\nobjective: 99.9%":                                           "",
		"kind: latency\nslower_than: 2s\nobjective: 95%\nburn_rates: [8 over 1h and 5m]": "",
		"kind: failure_rate\nobjective: 99.9%\nabove: 5%":                                "not by both",
		"kind: failure_rate\nobjective: 99.9%\nfalse_pages: 1 per 30d":                   "not by both",
		"kind: failure_rate\nobjective: 100%":                                            "no failure at all",
		"kind: failure_rate\nobjective: 99.9%\nwindow: 5m":                               "window: means nothing",
		"kind: failure_rate\nobjective: 90%":                                             "14.4 over 1h and 5m is more than everything",
		"kind: failure_rate\nobjective: 99.9%\nburn_rates: []":                           "want at least one",
		"kind: failure_rate\nobjective: 99.9%\nburn_rates: [2 over 4d and 6h]":           "windows of 3d at most",
	} {
		accepts(t, text, want)
	}
}
