package rehearse_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tocsin-project/tocsin/internal/detect/ruletest"
	"github.com/tocsin-project/tocsin/internal/respond/rehearse"
)

const (
	someRules = `groups:
- name: g
  rules:
  - alert: Failing
    kind: failure_rate
    above: 10%
    annotations: {summary: "{{ $labels.service }} fails", runbook_url: https://runbooks.example.com/failing}
  - {alert: HighImpact, kind: high_impact, services: 1, accounts: 1000, recovered: 2m}
`
	someRoutes = `route:
  receiver: chat
  routes:
  - matchers: ['page="true"', 'service="office"']
    receiver: office
    active_time_intervals: [office hours]
    continue: true
  - matchers: ['page="true"']
    receiver: oncall
    continue: true
  - receiver: chat
receivers:
- name: oncall
  pagerduty_configs: [{routing_key_file: no/such/file}]
- name: office
  pagerduty_configs: [{routing_key_file: nor/this}]
- name: chat
  slack_configs: [{token_file: no/such/token, channel: incidents}]
  webhook_configs: [{url_file: no/such/url}]
time_intervals:
- name: office hours
  time_intervals: [{times: [{start_time: '09:00', end_time: '17:00'}], location: Europe/London}]
`
)

func play(t *testing.T, tests string) []ruletest.Result {
	t.Helper()
	return ruletest.RunWith(fstest.MapFS{
		"rules/r.yaml": {Data: []byte(someRules)}, "routes.yaml": {Data: []byte(someRoutes)}, "rules/r_test.yaml": {Data: []byte(tests)},
	}, ".", ruletest.Options{Respond: rehearse.New})
}

func passes(t *testing.T, tests string) {
	t.Helper()
	results := play(t, tests)
	if len(results) == 0 {
		t.Fatal("nothing ran")
	}
	for _, r := range results {
		if !r.OK() {
			t.Errorf("%s\n%s", r.Test, r.Diff)
		}
	}
}

func TestWhoIsToldWhat(t *testing.T) {
	passes(t, `tests:
- name: one page, one post, and their ends
  input:
  - {requests: shop / pay / write, from: 0m, to: 20m, per_second: 4}
  - {requests: shop / pay / write, from: 20m, to: 25m, per_second: 4, failing: 60%}
  - {requests: shop / pay / write, from: 25m, to: 60m, per_second: 4}
  expect:
  - {at: 20m, notifications: []}
  - at: 24m
    notifications:
    - {receiver: oncall, kind: pagerduty, says: "severity: "}
    - {receiver: chat, kind: slack, says: "*Path* shop / pay / write"}
    - {receiver: chat, kind: webhook}
  - at: 60m
    notifications:
    - {receiver: oncall, action: close, says: "event_action: resolve"}
    - {receiver: chat, kind: slack, action: close, says: "(resolved)"}
    - {receiver: chat, kind: webhook, action: close}

- name: a silence that is set before keeps it from everybody, and when it ends what is open is told (alertmanager#2322)
  silences: [{matchers: ['service="shop"'], from: 10m, to: 40m}]
  input:
  - {requests: shop / pay / write, from: 0m, to: 20m, per_second: 4}
  - {requests: shop / pay / write, from: 20m, to: 50m, per_second: 4, failing: 60%}
  expect:
  - {at: 39m, incidents: [{state: declared, page: true}], notifications: []}
  - {at: 41m, notifications: [{receiver: oncall}, {receiver: chat, kind: slack}, {receiver: chat, kind: webhook}]}

- name: maintenance mutes the page, not the post
  input:
  - {requests: shop / pay / write, from: 0m, to: 20m, per_second: 4}
  - {requests: shop / pay / write, from: 20m, to: 50m, per_second: 4, failing: 60%}
  - {change: m1, kind: maintenance, target: shop, from: 15m, to: 35m}
  expect:
  - {at: 30m, notifications: [{receiver: chat, kind: slack, says: pages muted}, {receiver: chat, kind: webhook}]}
  - {at: 37m, notifications: [{receiver: oncall}]}

- name: on the night when clocks go forward, nine o'clock in London is eight in UTC (alertmanager#2646)
  time_zone: Europe/London
  start: 2026-03-29T00:30:00
  input:
  - {requests: office / sign / write, from: 0h, to: 1h, per_second: 4}
  - {requests: office / sign / write, from: 1h, to: 9h, per_second: 4, failing: 60%}
  expect:
  - {at: 7h20m, notifications: [{receiver: oncall}, {receiver: chat, kind: slack}, {receiver: chat, kind: webhook}]} # 08:50 there
  - {at: 7h40m, notifications: [{receiver: office}]} # 09:10 there: an hour of the night was left out
`)
}

// Whole texts are compared, as people read them; ids and times are those of the test.
func TestWholeTexts(t *testing.T) {
	results := play(t, `tests:
- name: texts
  input:
  - {requests: shop / pay / write, from: 0m, to: 20m, per_second: 4}
  - {requests: shop / pay / write, from: 20m, to: 25m, per_second: 4, failing: 60%, accounts: 12}
  expect:
  - at: 24m
    notifications:
    - receiver: chat
      kind: slack
      text: |
        # no such header
        *Services* shop
    - receiver: oncall
      says: nobody says that
`)
	for _, want := range []string{
		"rules/r_test.yaml:9:7: at 24m: open to chat says otherwise (- wanted, + sent):",
		"\n- # no such header\n", "\n  *Services* shop\n", "\n+ *Path* shop / pay / write\n", "[Acknowledge] [Resolve]",
		`at 24m: want open to oncall saying "nobody says that", it says:`, "event_action: trigger", "an unexpected message: webhook open to chat",
	} {
		if !strings.Contains(results[0].Diff, want) {
			t.Errorf("missing %q in\n%s", want, results[0].Diff)
		}
	}
	if strings.Contains(results[0].Diff, "routing_key") {
		t.Errorf("a key is shown:\n%s", results[0].Diff)
	}
}

func TestWhatCannotBeLookedAt(t *testing.T) {
	const input = "  input: [{requests: shop / pay / write, from: 0m, to: 1m, per_second: 4}]\n"
	for tests, want := range map[string]string{
		"tests:\n- name: x\n  silences: [{matchers: ['a=b'], to: 1m}]\n" + input + "  expect: [{at: 1m, findings: []}]\n":                   "a silence shows in notifications only",
		"tests:\n- name: x\n  silences: [{matchers: ['a'], to: 1m}]\n" + input + "  expect: [{at: 1m, notifications: []}]\n":                "silence 1",
		"tests:\n- name: x\n  time_zone: Mars/Olympus\n" + input + "  expect: [{at: 1m, notifications: []}]\n":                              "Mars/Olympus",
		"routes: other.yaml\ntests:\n- name: x\n" + input + "  expect: [{at: 1m, notifications: []}]\n":                                     "rules/other.yaml",
		"routes: {route: {receiver: x}, receivers: [{name: y}]}\ntests:\n- name: x\n" + input + "  expect: [{at: 1m, notifications: []}]\n": `receiver "x" is not defined`,
	} {
		if r := play(t, tests); len(r) != 1 || !strings.Contains(r[0].Diff, want) {
			t.Errorf("%s\nwant %q in %+v", tests, want, r)
		}
	}
	bare := ruletest.Run(fstest.MapFS{"r.yaml": {Data: []byte(someRules)}, "r_test.yaml": {Data: []byte("tests:\n- name: x\n" + input + "  expect: [{at: 1m, notifications: []}]\n")}}, ".")
	if len(bare) != 1 || !strings.Contains(bare[0].Diff, "can't be looked at here") {
		t.Errorf("%+v", bare)
	}
}
