package catalogue

import (
	"slices"
	"strings"
	"testing"
)

const world = `
areas:
  - {name: pulls, owner: team-pulls, words: [pull request, merge, 合并]}
  - {name: accounts, words: [sign up, password]}
services:
  - {name: pull_requests, area: pulls, tier: 1, depends_on: [authz], words: [code review]}
  - {name: authz, area: accounts, depends_on: [mysql/collab/primary]}
  - {name: signup, area: accounts, custom: kept}
resources:
  - {name: mysql/collab/primary, kind: mysql, used_by: [signup]}
`

func parse(t *testing.T, text string) *Catalogue {
	t.Helper()
	c, err := Parse("catalogue.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDependentsFollowBothSpellingsOfAnEdge(t *testing.T) {
	c := parse(t, world)
	if got, want := c.DependentServices("mysql/collab/primary", 2), []string{"authz", "pull_requests", "signup"}; !slices.Equal(got, want) {
		t.Errorf("two hops: %v, want %v", got, want)
	}
	if got, want := c.DependentServices("mysql/collab/primary", 1), []string{"authz", "signup"}; !slices.Equal(got, want) {
		t.Errorf("one hop: %v, want %v", got, want)
	}
	if got := c.Upstream("pull_requests", 2)["mysql/collab/primary"]; got != 2 {
		t.Errorf("distance to the database %d, want 2", got)
	}
}

func TestOwnerFallsBackToTheArea(t *testing.T) {
	if got := parse(t, world).OwnerOf("pull_requests"); got != "team-pulls" {
		t.Errorf("owner %q", got)
	}
}

func TestUnknownKeysAreKept(t *testing.T) {
	if got := parse(t, world).Service("signup").Extra["custom"]; got != "kept" {
		t.Errorf("extra key: %v", got)
	}
}

func TestClassify(t *testing.T) {
	c := parse(t, world)
	for text, want := range map[string]string{
		"I can't MERGE my Pull Request":  "pulls",
		"merging hangs":                  "pulls",
		"emerge from the sea":            "",
		"submerged":                      "",
		"无法合并代码":                         "pulls",
		"cannot sign up, password wrong": "accounts",
		"the weather is nice":            "",
	} {
		if got := c.Classify(text); got != want {
			t.Errorf("Classify(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestAllMistakesAreReportedWithTheirPlace(t *testing.T) {
	_, err := Parse("catalogue.yaml", []byte(`services:
  - {name: a, depends_on: [nowhere]}
  - {name: a}
  - {name: b, depends_on: [b]}
`))
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{`catalogue.yaml:2:28: "nowhere"`, `catalogue.yaml:3:5: service "a" is listed twice`, `"b" depends on itself`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in:\n%s", want, err)
		}
	}
}

// A list under another name would be an empty one.
func TestAMisspeltListIsRefused(t *testing.T) {
	_, err := Parse("catalogue.yaml", []byte("areas: []\nservice:\n  - {name: a}\nowners: {a: team}\n"))
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{`catalogue.yaml:2:1: unknown field "service"`, `did you mean "services"?`, `catalogue.yaml:4:1: unknown field "owners"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in:\n%s", want, err)
		}
	}
}
