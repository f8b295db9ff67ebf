package ruletest_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tocsin-project/tocsin/internal/detect/ruletest"
	"github.com/tocsin-project/tocsin/rules"
)

// shippedRuns plays tests against all rules that ship together.
func shippedRuns(t *testing.T, tests string) {
	t.Helper()
	files := fstest.MapFS{}
	var others []string
	err := fs.WalkDir(rules.FS, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".yaml") || strings.HasSuffix(p, "_test.yaml") || p == "routes.yaml" {
			return err
		}
		data, err := fs.ReadFile(rules.FS, p)
		files[p] = &fstest.MapFile{Data: data}
		if p != "impact/high_impact.yaml" {
			others = append(others, "../"+p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	files["impact/high_impact_test.yaml"] = &fstest.MapFile{Data: []byte("rule_files: [" + strings.Join(others, ", ") + "]\n" + tests)}
	for _, r := range ruletest.Run(files, ".") {
		if !r.OK() {
			t.Errorf("%s\n%s", r.Test, r.Diff)
		}
	}
}

// What detectors are known to be blind to, or to cry about, with all shipped rules at once.
func TestBlindSpots(t *testing.T) {
	var forty, gone strings.Builder
	for i := range 40 {
		fmt.Fprintf(&forty, "  - {requests: s%02d / get / read, from: 0m, to: 90m, per_second: 0.5}\n", i)
		fmt.Fprintf(&gone, "  - {requests: s%02d / get / read, from: 0m, to: 70m, per_second: 0.5}\n", i)
	}
	shippedRuns(t, `
tests:
- name: everything silent at once is one incident about telemetry
  input:
`+gone.String()+`
  expect:
  - {at: 70m, incidents: []}
  - {at: 80m, incidents: [{title: 40 of 40 that have traffic, services: []}]}

- name: 403 to everybody, which is no failure in any protocol's words
  input:
`+forty.String()+`
  - {requests: shop / pay / write, from: 0m, to: 60m, per_second: 4, rejected: 3%}
  - {requests: shop / pay / write, from: 60m, to: 75m, per_second: 4, rejected: 97%}
  expect:
  - {at: 60m, incidents: []}
  - {at: 70m, incidents: [{state: declared, page: true, services: [shop]}]}

- name: gRPC and GraphQL, whose operations name no method, are writes until somebody says otherwise
  input:
  - {requests: grpc / shop.Cart/Check / write, from: 0m, to: 40m, per_second: 4, failing: 0.2%}
  - {requests: graphql / query / write, from: 0m, to: 60m, per_second: 4, failing: 0.2%}
  - {requests: grpc / shop.Cart/Check / write, from: 40m, to: 60m, per_second: 4, failing: 60%}
  expect:
  - {at: 40m, incidents: []}
  - {at: 46m, incidents: [{state: declared, page: true, services: [grpc]}]}

- name: a cold start with paths that have always failed wakes nobody for being judged the first time
  input:
  - {requests: old / legacy / write, from: 0m, to: 90m, per_second: 0.05, failing: 100%}
  - {requests: old / home / read, from: 0m, to: 90m, per_second: 20, failing: 0.1%}
  expect:
  - {at: 4m, incidents: []}

- name: an inner service that has failed for as long as it is known, while what needs it succeeds, wakes nobody; what then fails above it does
  catalogue:
    services: [{name: front, depends_on: [machine]}, {name: machine}]
  input:
  - {requests: machine / all / read, from: 0m, to: 60m, per_second: 0.5, failing: 75%}
  - {requests: front / all / read, from: 0m, to: 40m, per_second: 10, failing: 0.1%}
  - {requests: front / all / read, from: 40m, to: 60m, per_second: 10, failing: 70%}
  expect:
  - {at: 20m, incidents: [{state: suspected, page: false, services: [machine]}]}
  - {at: 39m, incidents: [{state: suspected, page: false}]}
  - {at: 46m, incidents: [{state: declared, page: true}]}

- name: one failure of three at night never pages (pyrra#1925, sloth#666)
  input:
  - {requests: shop / export / write, from: 0m, to: 14h, per_second: 0.00084, failing: 34%}
  expect:
  - {at: 5h, incidents: []}
  - {at: 14h, incidents: []}

- name: nine of ten failing at half a request a second page within the hour
  input:
  - {requests: shop / import / write, from: 0m, to: 70m, per_second: 0.5, failing: 90%}
  expect:
  - {at: 60m, incidents: [{state: declared, page: true, services: [shop]}]}

- name: four in ten merges failing at low volume under healthy reads are found, and paged for, within two minutes
  input:
  - {requests: pulls / merge / write, from: 0m, to: 125m, per_second: 0.5, failing: 0.5%}
  - {requests: pulls / merge / read, from: 0m, to: 150m, per_second: 100, failing: 0.1%}
  - {requests: pulls / merge / write, from: 125m, to: 150m, per_second: 0.5, failing: 40%}
  expect:
  - {at: 124m, incidents: []}
  - at: 127m
    incidents: [{state: declared, page: true, services: [pulls], title: "of merge writes failing"}]
`)
}
