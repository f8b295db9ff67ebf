package ruletest_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tocsin-project/tocsin/internal/detect/ruletest"
	"github.com/tocsin-project/tocsin/internal/respond/rehearse"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/rules"
)

func TestShippedRules(t *testing.T) {
	results := ruletest.RunWith(rules.FS, ".", ruletest.Options{Respond: rehearse.New})
	tested := map[string]bool{}
	for _, r := range results {
		tested[r.File] = true
		if !r.OK() {
			t.Errorf("%s: %s\n%s", r.File, r.Test, r.Diff)
		}
	}
	if !tested["routes_test.yaml"] {
		t.Error("the routes have no test beside them")
	}
	kinds := map[string]bool{}
	err := fs.WalkDir(rules.FS, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".yaml") || strings.HasSuffix(p, "_test.yaml") || !strings.Contains(p, "/") {
			return err
		}
		if !tested[strings.TrimSuffix(p, ".yaml")+"_test.yaml"] {
			t.Errorf("%s has no test beside it", p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	set, err := rule.LoadFS(rules.FS, ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range set.Rules() {
		kinds[r.Kind] = true
		for _, a := range []string{"summary", "description", "runbook_url"} {
			if r.Annotations[a].Value == "" {
				t.Errorf("%s has no %s", r.Alert, a)
			}
		}
	}
	for _, k := range rule.KindNames() {
		if !kinds[k] {
			t.Errorf("no shipped rule shows kind %s", k)
		}
	}
}

const someRule = "groups: [{name: g, rules: [{alert: Bad, kind: failure_rate, above: 10%}]}]\n"

func TestWhatDiffersIsSaidWithItsPlace(t *testing.T) {
	fsys := fstest.MapFS{
		"a/x.yaml": {Data: []byte(someRule)},
		"a/x_test.yaml": {Data: []byte(`tests:
  - name: wrong
    input:
      - {requests: shop / pay / write, from: 0m, to: 10m, per_second: 10, failing: 50%}
    expect:
      - at: 5m
        findings:
          - {alert: Bad, service: other}
        incidents: []
      - at: 6m
        findings: [{alert: Bad, service: shop, explain: nobody said that}]
`)},
		"a/y.yaml":      {Data: []byte(strings.Replace(someRule, "Bad", "Worse", 1))},
		"a/y_test.yaml": {Data: []byte("tests:\n  - name: unreadable\n    input: [{requests: shop, from: 0m, to: 1m}]\n    expect: [{at: 1m}]\n")},
		"a/z_test.yaml": {Data: []byte("this tests something else")},
	}
	results := ruletest.Run(fsys, ".")
	if len(results) != 2 {
		t.Fatalf("%d results: %+v", len(results), results)
	}
	for _, want := range []string{
		"a/x_test.yaml:8:13: at 5m: want Bad firing other, have Bad firing shop / pay / write",
		"a/x_test.yaml:6:9: at 5m: fires unexpectedly: Bad firing shop / pay / write",
		"an unexpected incident: minor suspected incident",
		"a/x_test.yaml:11:20: at 6m: want Bad firing shop explained by \"nobody said that\", it has the explanation \"50 of 100 writes failed",
	} {
		if !strings.Contains(results[0].Diff, want) {
			t.Errorf("missing %q in\n%s", want, results[0].Diff)
		}
	}
	if n := strings.Count(results[0].Diff, "unexpectedly"); n != 1 {
		t.Errorf("%d findings are unexpected, want the one of another service:\n%s", n, results[0].Diff)
	}
	if !strings.Contains(results[1].Diff, `"shop" is no path`) {
		t.Errorf("unreadable: %s", results[1].Diff)
	}
}
