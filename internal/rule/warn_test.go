package rule_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/rules"
)

func TestWarningsNameWhatWillDisappoint(t *testing.T) {
	set, err := rule.LoadFS(fstest.MapFS{"a.yaml": {Data: []byte(`groups:
- name: g
  rules:
  - {alert: Bare, kind: failure_rate, above: 5%}
  - {alert: Twin, kind: failure_rate, above: 5%, annotations: {runbook_url: x}}
  - {alert: Tier, kind: failure_rate, above: 9%, annotations: {runbook_url: x}}
  - {alert: Higher, kind: failure_rate, above: 50%, labels: {severity: page}, annotations: {runbook_url: x}}
  - {alert: Nowhere, kind: latency, above: 5%, slower_than: 1s, match: {service: shpo, area: money}, annotations: {runbook_url: x}}
  - {alert: NoSlice, kind: failure_rate, above: 5%, match: {service: 'sho*', attributes: {regoin: iad}}, annotations: {runbook_url: x}}
  - {alert: NoSlices, kind: failure_rate, above: 5%, window: 5m, slices: [zone, modell], annotations: {runbook_url: x}}
  - {alert: NoKind, kind: saturation, above: 5%, match: {kind: databse}, annotations: {runbook_url: x}}
  - {alert: Shy, kind: failure_rate, false_pages: 1 per 30d, shadow: true, annotations: {runbook_url: x}}
  - {alert: Unfed, kind: high_impact, false_pages: 1 per 30d, annotations: {runbook_url: x}}
  - {alert: HalfFed, kind: high_impact, false_pages: 1 per 30d, shadow: true, annotations: {runbook_url: x}}
  - {alert: NoArea, kind: support, min_accounts: 5, areas: [bills], annotations: {runbook_url: x}}
`)}}, ".")
	if err != nil {
		t.Fatal(err)
	}
	got := set.Warnings(rule.Known{Services: []string{"shop"}, Areas: []string{"shopping"}, Resources: []string{"mysql/a"}, Kinds: []string{"database"}, Attributes: []string{"region"}})
	all := strings.Join(got, "\n")
	for _, want := range []string{
		"a.yaml:4:5: warning: Bare has no runbook_url", "Twin judges the same as Bare (a.yaml:4:5)", "Tier differs in its threshold alone",
		`Nowhere: no service of the catalogue matches "shpo"`, `Nowhere: no area of the catalogue matches "money"`,
		`NoSlice: no pipeline keeps the attribute "regoin"`, "NoSlices: no pipeline keeps any of its slices ([zone modell])",
		`NoKind: no resource's kind of the catalogue matches "databse"`, `NoArea: no area of the catalogue matches "bills"`,
		"gives it evidence from requests", "HalfFed: no rule with false_pages (and none that is in shadow, unless this one is) gives it evidence from tickets",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("missing %q in\n%s", want, all)
		}
	}
	if strings.Contains(all, "HalfFed: no rule with false_pages (and none that is in shadow, unless this one is) gives it evidence from requests") {
		t.Errorf("what is in shadow does not count for what is in shadow:\n%s", all)
	}
	if strings.Contains(all, "Higher") {
		t.Errorf("a tier of its own severity is no overlap:\n%s", all)
	}
	if got := set.Warnings(rule.Known{}); len(got) != 7 { // Bare, Twin, Tier with both, Unfed twice, HalfFed once
		t.Errorf("without a catalogue: %q", got)
	}
}

func TestShippedRulesWarnOfNothing(t *testing.T) {
	set, err := rule.LoadFS(rules.FS, ".")
	if err != nil {
		t.Fatal(err)
	}
	if got := set.Warnings(rule.Known{}); len(got) > 0 {
		t.Errorf("%q", got)
	}
}
