package rule

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestOffsetsThatCannotHold(t *testing.T) {
	for rule, want := range map[string]string{
		"{alert: A, kind: failure_rate, above: 5%}":                                                         "",
		"{alert: A, kind: latency, above: 5%, slower_than: 1s}":                                             "",
		"{alert: A, kind: failure_rate, objective: 99.9%}":                                                  "A looks 1h back",
		"{alert: A, kind: failure_rate, objective: 99.9%, burn_rates: [6 over 6h and 30m]}":                 "",
		"{alert: A, kind: failure_rate, above: 5%, window: 1h}":                                             "A looks 1h back from there",
		"{alert: A, kind: failure_rate, objective: 99.9%, burn_rates: [14.4 over 1h and 5m]}":               "A looks 1h back",
		"{alert: A, kind: failure_rate, false_pages: 1 per 30d}":                                            "rules/a.yaml:5:5: query_offset 5m of group g: evidence takes each minute in as it comes",
		"{alert: A, kind: gauge}":                                                                           "a rule of kind gauge takes each value in as it comes",
		"{alert: A, kind: absence}":                                                                         "kind absence",
		"{alert: A, kind: external}":                                                                        "kind external",
		"{alert: A, kind: high_impact}":                                                                     "kind high_impact",
		"{alert: A, kind: sql, query: 'SELECT 1 AS value WHERE " + strings.ReplaceAll(span, "'", "") + "'}": "",
	} {
		text := "groups:\n- name: g\n  query_offset: 5m\n  rules:\n  - " + rule + "\n"
		_, err := LoadFS(fstest.MapFS{"rules/a.yaml": {Data: []byte(text)}}, "rules")
		if err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", rule, err, want)
		}
	}
	for offset, want := range map[string]string{"7s": "want a multiple of 10s", "20m": "want at most 10m"} {
		text := "groups:\n- name: g\n  query_offset: " + offset + "\n  rules:\n  - {alert: A, kind: failure_rate, above: 5%}\n"
		if _, err := LoadFS(fstest.MapFS{"rules/a.yaml": {Data: []byte(text)}}, "rules"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", offset, err, want)
		}
	}
}
