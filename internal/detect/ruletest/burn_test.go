package ruletest_test

import (
	"testing"
	"testing/fstest"

	"github.com/tocsin-project/tocsin/internal/detect/ruletest"
)

// runs plays one test file against one rule file.
func runs(t *testing.T, rules, tests string) {
	t.Helper()
	results := ruletest.Run(fstest.MapFS{"r.yaml": {Data: []byte(rules)}, "r_test.yaml": {Data: []byte(tests)}}, ".")
	if len(results) == 0 {
		t.Fatal("nothing ran")
	}
	for _, r := range results {
		if !r.OK() {
			t.Errorf("%s\n%s", r.Test, r.Diff)
		}
	}
}

func TestBurnRates(t *testing.T) {
	runs(t, `
groups:
- name: slo
  rules:
  - {alert: BudgetBurns, kind: failure_rate, objective: 99.9%, min_failures: 20}
  - {alert: SlowBurn, kind: failure_rate, objective: 99%, burn_rates: [1 over 3d and 6h], min_failures: 50}
  - {alert: SlowBudgetBurns, kind: latency, objective: 95%, slower_than: 2s, burn_rates: [8 over 1h and 5m], min_requests: 100}
`, `
tests:
- name: four in a hundred for half an hour burn the budget of a month fourteen times too fast, and the short window ends it
  input:
  - {requests: shop / pay / write, from: 0h, to: 8h, per_second: 10}
  - {requests: shop / pay / write, from: 8h, to: 9h, per_second: 10, failing: 4%}
  - {requests: shop / pay / write, from: 9h, to: 10h, per_second: 10}
  expect:
  - {at: 8h15m, findings: []}
  - at: 8h30m
    findings: [{alert: BudgetBurns, service: shop, explain: "in 1 h (1.4%), 14.4 times what the objective of 99.9% allows"}]
  - {at: 9h6m, findings: [{alert: BudgetBurns}]}
  - {at: 9h35m, findings: []}

- name: seven in a thousand show over six hours only
  input:
  - {requests: shop / pay / write, from: 0h, to: 6h, per_second: 4}
  - {requests: shop / pay / write, from: 6h, to: 16h, per_second: 4, failing: 0.7%}
  - {requests: shop / pay / write, from: 16h, to: 20h, per_second: 4}
  expect:
  - {at: 10h, findings: []}
  - {at: 11h15m, findings: [{alert: BudgetBurns, explain: "in 6 h (0.6%), 6.01 times what"}]}
  - {at: 11h57m, findings: [{alert: BudgetBurns}]} # six hours are not seven for five minutes of each hour
  - {at: 13h, findings: [{alert: BudgetBurns}]}
  - {at: 17h, findings: []}

- name: three days are remembered
  input:
  - {requests: shop / pay / write, from: 0h, to: 48h, per_second: 0.2}
  - {requests: shop / pay / write, from: 48h, to: 84h, per_second: 0.2, failing: 3%}
  - {requests: shop / pay / write, from: 84h, to: 100h, per_second: 0.2}
  expect:
  - {at: 48h, findings: []}
  - at: 82h
    findings: [{alert: SlowBurn, explain: "in 72 h (1."}, {alert: BudgetBurns}]
  - {at: 100h, findings: []}

- name: one failure of three at night proves nothing
  input:
  - {requests: shop / export / write, from: 0m, to: 10h, per_second: 0.00084, failing: 34%}
  expect:
  - {at: 10h, findings: []}

- name: slow requests burn, too
  input:
  - {requests: shop / pay / write, from: 0m, to: 60m, per_second: 10, latency: 3s, slow: 1%}
  - {requests: shop / pay / write, from: 60m, to: 120m, per_second: 10, latency: 3s, slow: 90%}
  expect:
  - {at: 60m, findings: []}
  - {at: 100m, findings: [{alert: SlowBudgetBurns, explain: "took longer than 2s in 1 h"}]}
`)
}
