package rule

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

func indent(s, by string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return by + "- " + strings.Join(lines, "\n"+by+"  ") + "\n"
}

func load(t *testing.T, rules ...string) (*Set, error) {
	t.Helper()
	var b strings.Builder
	b.WriteString("groups:\n- name: g\n  rules:\n")
	for _, r := range rules {
		b.WriteString(indent(r, "  "))
	}
	return LoadFS(fstest.MapFS{"rules/a.yaml": {Data: []byte(b.String())}}, "rules")
}

func TestEveryKindDescribesItself(t *testing.T) {
	for _, k := range Kinds {
		if k.Summary == "" {
			t.Errorf("%s has no summary", k.Name)
		}
		set, err := load(t, k.Example)
		if err != nil {
			t.Errorf("example of %s: %v", k.Name, err)
			continue
		}
		if r := set.Rules()[0]; r.Kind != k.Name || r.Group != "g" {
			t.Errorf("example of %s is of kind %q in group %q", k.Name, r.Kind, r.Group)
		}
	}
}

func TestDefaultsAndOverrides(t *testing.T) {
	set, err := load(t, "alert: A\nkind: failure_rate\nabove: 5%", "alert: B\nkind: failure_rate\nabove: 0.5\nwindow: 5m\nbad: [throttled]")
	if err != nil {
		t.Fatal(err)
	}
	a, b := set.Rules()[0].Params.(*FailureRate), set.Rules()[1].Params.(*FailureRate)
	if a.Window.Std() != 2*time.Minute || a.MinFailures != 10 || !a.BadOutcomes()[signal.Failure] {
		t.Errorf("defaults: %+v", a)
	}
	if b.Window.Std() != 5*time.Minute || b.Above != 0.5 || b.BadOutcomes()[signal.Failure] || !b.BadOutcomes()[signal.Throttled] {
		t.Errorf("overrides: %+v", b)
	}
	if set.Rules()[0].NoData != Keep {
		t.Errorf("no_data is %q", set.Rules()[0].NoData)
	}
}

// A value in a label would begin another finding at each evaluation (prometheus#4836).
func TestMistakesHaveTheirPlace(t *testing.T) {
	_, err := load(t,
		"alert: A\nkind: failure_rate\nabove: 5%\nwindow: 7s",
		"alert: A\nkind: latency\nabove: 5%\nslower_than: 2s",
		"alert: C\nkind: guess",
		"alert: D\nkind: saturation",
		"alert: E\nkind: failure_rate\nabove: 5%\nthreshold: 3",
		"alert: F\nkind: failure_rate\nabove: 500%",
		"alert: G\nkind: failure_rate\nabove: 1%\nlabels: {severity: page, share: '{{ $value }}'}",
		"alert: H\nkind: failure_rate\nabove: 1%\nannotations: {summary: '{{ $labels.x'}",
		"alert: I\nkind: failure_rate\nabove: 1%\nlabels: {severity: urgent}",
	)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		"a.yaml:4:5: window 7s", `a.yaml:13:11: kind "guess"`, "a.yaml:14:5: a saturation rule wants", "threshold", "500%",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in:\n%v", want, err)
		}
	}
	_, err = load(t,
		"alert: A\nkind: failure_rate\nabove: 5%", "alert: A\nkind: latency\nabove: 5%\nslower_than: 2s",
		"alert: G\nkind: failure_rate\nabove: 1%\nlabels: {severity: page, share: '{{ $value }}'}",
		"alert: H\nkind: failure_rate\nabove: 1%\nannotations: {summary: '{{ $labels.x'}",
		"alert: I\nkind: failure_rate\nabove: 1%\nlabels: {severity: urgent}",
	)
	for _, want := range []string{`alert "A" is already defined at rules/a.yaml:4:5`, "contains $value", "summary: template", `severity "urgent"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in:\n%v", want, err)
		}
	}
}

func TestGlobsCrossSlashes(t *testing.T) {
	m := GaugeMatch{Resource: "mysql/*", Metric: "connections"}
	if !m.Matches("mysql/collab/primary", "connections", "") || m.Matches("lb/iad", "connections", "") {
		t.Error("mysql/* should select mysql/collab/primary and not lb/iad")
	}
}

func TestRender(t *testing.T) {
	got, err := Render(`{{ $labels.service }} fails {{ $value | humanizePercentage }} since {{ $activeAt.Format "15:04" }}{{ if $partial }} (partial){{ end }}`,
		TemplateData{Labels: map[string]string{"service": "pulls"}, Value: 0.0875, ActiveAt: time.Date(2026, 9, 13, 8, 43, 0, 0, time.UTC), Partial: true})
	if want := "pulls fails 8.75% since 08:43 (partial)"; err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

func FuzzParse(f *testing.F) {
	for _, k := range Kinds {
		f.Add("groups:\n- name: g\n  rules:\n" + indent(k.Example, "  "))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if file, err := Parse("f.yaml", []byte(text)); err == nil {
			for _, g := range file.Groups {
				for _, r := range g.Rules {
					if r.Params == nil {
						t.Fatal("a rule without parameters was accepted")
					}
				}
			}
		}
	})
}
