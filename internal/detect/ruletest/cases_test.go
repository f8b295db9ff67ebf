package ruletest_test

import "testing"

// What users of other systems complained of: data that is missing, and a state that forgets it.
func TestCasesOfMissingData(t *testing.T) {
	runs(t, `
groups:
- name: g
  rules:
  - {alert: Failing, kind: failure_rate, above: 10%, keep_firing_for: 5m}
  - {alert: Slow, kind: latency, above: 10%, slower_than: 1s}
  - {alert: Full, kind: saturation, above: 90%}
  - {alert: Waits, kind: backlog, match: {metric: depth}, growing_for: 5m, times_usual: 2}
  - {alert: Refused, kind: failure_rate, above: 10%, bad: [rejected]}
`, `
tests:
- name: telemetry that stops is no recovery, however long (prometheus#17482, prometheus#14085, grafana#105571)
  input:
  - {requests: shop / pay / write, from: 0m, to: 20m, per_second: 4}
  - {requests: shop / pay / write, from: 20m, to: 30m, per_second: 4, failing: 50%, latency: 3s, slow: 50%}
  - {gauge: mysql/a, metric: connections, value: 950, limit: 1000, from: 0m, to: 30m}
  - {requests: chat / ask / write, from: 0m, to: 240m, per_second: 4}
  expect:
  - {at: 29m, findings: [{alert: Failing, service: shop}, {alert: Slow, service: shop}, {alert: Full, resource: mysql/a}]}
  - at: 32m
    findings: [{alert: Failing, service: shop, state: unknown}, {alert: Slow, service: shop, state: unknown}, {alert: Full, resource: mysql/a, state: unknown}]
  - at: 100m
    findings: [{alert: Failing, service: shop, state: unknown}, {alert: Slow, service: shop, state: unknown}, {alert: Full, resource: mysql/a, state: unknown}]
  - at: 240m
    findings: [{alert: Failing, service: shop, state: unknown}, {alert: Slow, service: shop, state: unknown}, {alert: Full, resource: mysql/a, state: unknown}]

- name: and when it comes back, healthy, it is
  input:
  - {requests: shop / pay / write, from: 0m, to: 20m, per_second: 4}
  - {requests: shop / pay / write, from: 20m, to: 30m, per_second: 4, failing: 50%}
  - {requests: shop / pay / write, from: 90m, to: 110m, per_second: 4}
  expect:
  - {at: 89m, findings: [{alert: Failing, service: shop, state: unknown}]}
  - {at: 110m, findings: []}

- name: nothing of nothing is no share (grafana#40392)
  input:
  - {requests: shop / pay / write, from: 0m, to: 20m, per_second: 4, rejected: 100%}
  - {gauge: mysql/a, metric: connections, value: 0, limit: 0, from: 0m, to: 20m}
  expect:
  - {at: 20m, findings: [{alert: Refused, service: shop}]}

- name: gaps of a gauge are no zeros, neither for what is too full nor for what has to be drained (hyperdx PR#1340)
  input:
  - {gauge: mysql/a, metric: connections, value: 950, limit: 1000, from: 0m, to: 20m}
  - {gauge: mysql/a, metric: connections, value: 950, limit: 1000, from: 25m, to: 40m}
  - {gauge: queue/a, metric: depth, value: 100, from: 0m, to: 60m}
  - {gauge: queue/a, metric: depth, value: 100, until: 5000, from: 60m, to: 75m}
  - {gauge: queue/a, metric: depth, value: 5000, from: 85m, to: 90m}
  expect:
  - {at: 23m, findings: [{alert: Full, resource: mysql/a, state: unknown}]}
  - {at: 26m, findings: [{alert: Full, resource: mysql/a}]}
  - {at: 74m, findings: [{alert: Waits, resource: queue/a}, {alert: Full, resource: mysql/a, state: unknown}]}
  - {at: 84m, findings: [{alert: Waits, resource: queue/a, state: unknown}, {alert: Full, resource: mysql/a, state: unknown}]}
  - {at: 89m, findings: [{alert: Waits, resource: queue/a}, {alert: Full, resource: mysql/a, state: unknown}]}
`)
}
