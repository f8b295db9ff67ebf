package ruletest_test

import "testing"

func TestSQLRules(t *testing.T) {
	const query = `query: "SELECT target AS service, count() AS value FROM changes WHERE time >= {from:DateTime64(3)} AND time < {to:DateTime64(3)} GROUP BY service"`
	runs(t, `
groups:
- name: asked every minute
  interval: 1m
  rules:
  - {alert: Any, kind: sql, keep_firing_for: 2m, `+query+`}
  - {alert: High, kind: sql, above: 10, for: 2m, `+query+`}
  - {alert: Low, kind: sql, below: 3, no_data: zero, `+query+`}
  - {alert: Loud, kind: sql, above: 10, no_data: alert, `+query+`}
  - {alert: Forgiving, kind: sql, above: 10, no_data: ok, `+query+`}
`, `
tests:
- name: a row is a finding about what its columns name, and is over when it is gone
  input:
  - {result: Any, rows: [{service: shop, operation: pay, access: write, site: iad, value: 3}, {resource: mysql/a, metric: locks, value: 7}, {area: billing, value: 1}], from: 1m, to: 5m}
  - {result: Any, rows: [{resource: mysql/a, metric: locks, value: 8}], from: 5m, to: 20m}
  expect:
  - {at: 1m, findings: []}
  - at: 1m10s
    findings:
    - {alert: Any, service: shop, operation: pay, access: write, attributes: {site: iad}, explain: "shop / pay / write (site=iad): Any is 3; by its query from 23:56:00 to 00:01:00 UTC"}
    - {alert: Any, resource: mysql/a, metric: locks, explain: "mysql/a locks: Any is 7"}
    - {alert: Any, area: billing, explain: "billing: Any is 1"}
  - {at: 6m, findings: [{alert: Any, service: shop, operation: pay, access: write, attributes: {site: iad}}, {alert: Any, resource: mysql/a, metric: locks}, {alert: Any, area: billing}]}
  - {at: 8m, findings: [{alert: Any, resource: mysql/a, metric: locks}]}

- name: values are compared, and have to be so for as long as the rule says
  input:
  - {result: High, rows: [{service: shop, value: 9}, {service: chat, value: 11}], from: 0m, to: 5m}
  - {result: High, rows: [{service: shop, value: 9}, {service: chat, value: 10}], from: 5m, to: 10m}
  expect:
  - {at: 2m, findings: [{alert: High, service: chat, state: pending}]}
  - {at: 2m10s, findings: [{alert: High, service: chat, explain: "chat: High is 11, above 10"}]}
  - {at: 5m10s, findings: []}

- name: an error is no recovery, whatever it is, and says itself (prometheus#17482)
  input:
  - {result: High, rows: [{service: chat, value: 11}], from: 0m, to: 5m}
  - {result: High, error: "timeout: no answer within 10s", from: 5m, to: 8m}
  - {result: High, rows: [{service: chat, value: 11}], from: 8m, to: 10m}
  - {result: High, rows: [{service: chat, value: 2}], from: 10m, to: 12m}
  expect:
  - {at: 4m, findings: [{alert: High, service: chat}]}
  - {at: 5m10s, findings: [{alert: High, service: chat, state: unknown, explain: "High: its query failed: timeout: no answer within 10s"}], incidents: [{state: suspected}]}
  - {at: 7m50s, findings: [{alert: High, service: chat, state: unknown}]}
  - {at: 8m10s, findings: [{alert: High, service: chat}]}
  - {at: 10m10s, findings: []}

- name: no answer at all is no recovery either
  input:
  - {result: High, rows: [{service: chat, value: 11}], from: 0m, to: 5m}
  expect:
  - {at: 6m, findings: [{alert: High, service: chat}]}
  - {at: 9m, findings: [{alert: High, service: chat, state: unknown, explain: "its query has not been answered since 00:04:00 UTC"}]}
  - {at: 3h, findings: [{alert: High, service: chat, state: unknown}]}

- name: a value that is no number is no breach and no recovery (grafana#40392)
  input:
  - {result: High, rows: [{service: chat, value: 11}, {service: shop, value: NaN}, {service: mail}], from: 0m, to: 5m}
  - {result: High, rows: [{service: chat, value: NaN}, {service: shop, value: NaN}], from: 5m, to: 6m}
  - {result: High, rows: [{service: chat, value: +Inf}, {service: shop, value: -Inf}], from: 6m, to: 20m}
  expect:
  - {at: 4m, findings: [{alert: High, service: chat}]}
  - {at: 5m10s, findings: [{alert: High, service: chat, state: unknown, explain: "High: its query gives no value for it any more"}]}
  - {at: 6m10s, findings: [{alert: High, service: chat}]}
  - {at: 10m, findings: [{alert: High, service: chat, explain: "High is +Inf, above 10"}]}

- name: a row that is missing is 0 only where the rule says so (hyperdx PR#1340)
  input:
  - {result: Low, rows: [{service: chat, value: 2}], from: 0m, to: 2m}
  - {result: Low, rows: [], from: 2m, to: 5m}
  - {result: Low, rows: [{service: chat, value: 4}], from: 5m, to: 6m}
  - {result: Low, error: it broke, from: 6m, to: 9m}
  - {result: High, rows: [{service: chat, value: 12}], from: 0m, to: 4m}
  - {result: High, rows: [], from: 4m, to: 9m}
  expect:
  - {at: 1m, findings: [{alert: Low, service: chat}, {alert: High, service: chat, state: pending}]}
  - {at: 3m, findings: [{alert: Low, service: chat}, {alert: High, service: chat}]}
  - {at: 5m10s, findings: [{alert: High, service: chat, state: unknown}]}
  - {at: 8m, findings: [{alert: High, service: chat, state: unknown}]}

- name: whose query must not fail says so, others may be let go
  input:
  - {result: Loud, rows: [], from: 0m, to: 2m}
  - {result: Loud, error: no such table, from: 2m, to: 4m}
  - {result: Loud, rows: [], from: 4m, to: 6m}
  - {result: Forgiving, rows: [{service: chat, value: 11}], from: 0m, to: 2m}
  - {result: Forgiving, error: no such table, from: 2m, to: 5m}
  - {result: Forgiving, rows: [], from: 5m, to: 6m}
  expect:
  - {at: 1m, findings: [{alert: Forgiving, service: chat}]}
  - {at: 2m10s, findings: [{alert: Loud, explain: "Loud: its query failed: no such table"}]}
  - {at: 3m, findings: [{alert: Loud}, {alert: Forgiving, service: chat, state: unknown}]}
  - {at: 4m10s, findings: [{alert: Forgiving, service: chat, state: unknown}]}
  - {at: 5m10s, findings: []}

- name: rows that cannot be told apart, or ask too much, are none
  input:
  - {result: Any, rows: [{service: a, value: 1}], from: 0m, to: 2m}
  - {result: Any, rows: [{service: a, value: 1}, {service: a, value: 2}], from: 2m, to: 3m}
  - {result: Any, rows: [{service: a, access: both, value: 1}], from: 3m, to: 4m}
  expect:
  - {at: 2m10s, findings: [{alert: Any, service: a, state: unknown, explain: "two rows are about a: the columns beside value"}]}
  - {at: 3m10s, findings: [{alert: Any, service: a, state: unknown}]}
`)
}
