package ruletest_test

import "testing"

// A group's interval says how often its rules are judged, its query_offset as of when: both as in Prometheus, where the time of what is
// found is that of the evaluation.
func TestIntervalsAndOffsets(t *testing.T) {
	runs(t, `
groups:
- name: every tick
  rules:
  - {alert: Now, kind: failure_rate, above: 10%, window: 1m}
- name: a minute ago
  query_offset: 1m
  rules:
  - {alert: Then, kind: failure_rate, above: 10%, window: 1m}
  - {alert: ThenSlow, kind: latency, above: 10%, slower_than: 1s, window: 1m}
  - {alert: ThenBurns, kind: failure_rate, objective: 99%, burn_rates: [5 over 5m and 1m]}
- name: once in two minutes
  interval: 2m
  rules:
  - {alert: Rarely, kind: failure_rate, above: 10%, window: 1m, for: 2m}
- name: both
  interval: 1m
  query_offset: 30s
  rules:
  - {alert: Both, kind: failure_rate, above: 10%, window: 1m}
`, `
tests:
- name: findings begin and end by their group's time
  input:
  - {requests: shop / pay / write, from: 0m, to: 10m, per_second: 4, latency: 3s}
  - {requests: shop / pay / write, from: 10m, to: 15m, per_second: 4, failing: 50%, latency: 3s, slow: 50%}
  - {requests: shop / pay / write, from: 15m, to: 30m, per_second: 4, latency: 3s}
  expect:
  - {at: 10m, findings: []}
  - {at: 10m40s, findings: [{alert: Now}]}
  - {at: 11m, findings: [{alert: Now}, {alert: Both}]}
  - {at: 11m40s, findings: [{alert: Now}, {alert: Both}, {alert: Then}, {alert: ThenSlow}, {alert: ThenBurns}]}
  - {at: 12m, findings: [{alert: Now}, {alert: Both}, {alert: Then}, {alert: ThenSlow}, {alert: ThenBurns}, {alert: Rarely, state: pending}]}
  - {at: 13m50s, findings: [{alert: Now}, {alert: Both}, {alert: Then}, {alert: ThenSlow}, {alert: ThenBurns}, {alert: Rarely, state: pending}]}
  - {at: 14m, findings: [{alert: Now}, {alert: Both}, {alert: Then}, {alert: ThenSlow}, {alert: ThenBurns}, {alert: Rarely}]}
  - {at: 15m40s, findings: [{alert: Both}, {alert: Then}, {alert: ThenSlow}, {alert: ThenBurns}, {alert: Rarely}]}
  - {at: 16m, findings: [{alert: Then}, {alert: ThenSlow}, {alert: ThenBurns}]}
  - {at: 18m, findings: []}
`)
}
