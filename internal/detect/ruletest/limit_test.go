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

// What weighs nothing one by one weighs nothing together: many resources that are unlike themselves are no failing services.
func TestPastALimitWeighsWhatItsKindDoes(t *testing.T) {
	var in strings.Builder
	for i := range 30 {
		fmt.Fprintf(&in, "  - {gauge: queue/%02d, metric: depth, from: 0m, to: 120m, value: 200, noise: 10}\n", i)
		fmt.Fprintf(&in, "  - {gauge: queue/%02d, metric: depth, from: 120m, to: 130m, value: 2000, noise: 10}\n", i)
	}
	runs(t, `
groups:
- name: g
  limit: 5
  rules:
  - {alert: Unusual, kind: gauge, false_alarms: 1 per 1d}
- name: impact
  rules:
  - {alert: HighImpact, kind: high_impact, services: 10, for: 20s}
`, `
tests:
- name: thirty queues at once
  input:
`+in.String()+`
  expect:
  - at: 125m
    findings: [{alert: Unusual, attributes: {past: limit}, explain: "30 more are abnormal"}]
    incidents: [{state: suspected, page: false}]
`)
}

// A rule that is evaluated once a minute has not stopped being abnormal half a minute later.
func TestRareEvaluationsKeepTheirWeight(t *testing.T) {
	var in strings.Builder
	for i := range 12 {
		fmt.Fprintf(&in, "  - {requests: s%02d / get / write, from: 0m, to: 60m, per_second: 2}\n", i)
		fmt.Fprintf(&in, "  - {requests: s%02d / get / write, from: 60m, to: 80m, per_second: 2, failing: 60%%}\n", i)
	}
	runs(t, `
groups:
- name: g
  interval: 1m
  rules:
  - {alert: Failing, kind: failure_rate, above: 10%, window: 2m}
- name: impact
  rules:
  - {alert: HighImpact, kind: high_impact, services: 10, for: 2m}
`, `
tests:
- name: twelve services
  input:
`+in.String()+`
  expect:
  - {at: 70m, incidents: [{state: declared, page: true}]}
`)
}

// Alerts from elsewhere past a limit are one finding that stays what it is while they fire, and ends with them, though no requests come.
func TestAlertsPastALimit(t *testing.T) {
	var in strings.Builder
	for i := range 9 {
		fmt.Fprintf(&in, "  - {alert: A%d, labels: {service: shop}, from: 10m, to: 20m}\n", i)
	}
	runs(t, `
groups:
- name: g
  limit: 4
  rules:
  - {alert: Elsewhere, kind: external}
`, `
tests:
- name: nine
  input:
`+in.String()+`
  expect:
  - {at: 11m, findings: [{alert: Elsewhere, attributes: {past: limit}, explain: "9 more are abnormal"}]}
  - {at: 19m, findings: [{alert: Elsewhere, attributes: {past: limit}, explain: "9 more are abnormal"}]}
  - {at: 25m, findings: []}
`)
}
