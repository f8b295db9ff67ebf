package ruletest_test

import (
	"fmt"
	"strings"
	"testing"
)

// prometheus#12415, #9225: past a limit every alert is dropped. Here they are one finding and one incident, with their number and
// the worst of them; those that were known before stay.
func TestPastALimitAllAreOne(t *testing.T) {
	var in strings.Builder
	for i := range 300 {
		fmt.Fprintf(&in, "  - {requests: s%03d / get / read, from: 0m, to: 30m, per_second: 2}\n", i)
		if i >= 3 {
			fmt.Fprintf(&in, "  - {requests: s%03d / get / read, from: 15m, to: 25m, per_second: 2, failing: %d%%}\n", i, 50+i%50)
		}
	}
	runs(t, `
groups:
- name: g
  limit: 20
  rules:
  - {alert: Failing, kind: failure_rate, above: 10%, window: 2m, keep_firing_for: 1m}
- name: impact
  rules:
  - {alert: HighImpact, kind: high_impact, services: 100, for: 20s}
`, `
tests:
- name: three hundred at once
  input:
`+in.String()+`
  - {requests: early / get / read, from: 0m, to: 8m, per_second: 2}
  - {requests: early / get / read, from: 8m, to: 25m, per_second: 2, failing: 40%}
  expect:
  - {at: 14m, findings: [{alert: Failing, service: early}]}
  - at: 18m
    findings:
    - {alert: Failing, service: early}
    - {alert: Failing, attributes: {past: limit}, explain: "more are abnormal by Failing than its limit of 20 allows, of "}
    incidents: [{state: declared, page: true, title: "more are abnormal by Failing than its limit of 20 allows"}]
  - {at: 29m, findings: []}

- name: what is past the limit is unknown while nothing comes
  input:
`+strings.NewReplacer("to: 30m", "to: 20m", "to: 25m", "to: 20m").Replace(in.String())+`
  expect:
  - {at: 19m, findings: [{alert: Failing, attributes: {past: limit}}]}
  - {at: 40m, findings: [{alert: Failing, attributes: {past: limit}, state: unknown}]}
`)
}
