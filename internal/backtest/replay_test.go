package backtest

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/deploy"
	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/respond/receivers"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/scenario"
	"github.com/tocsin-project/tocsin/internal/scenario/recording"
	"github.com/tocsin-project/tocsin/rules"
)

func shipped(t *testing.T) Options { return options(t) }

func options(t testing.TB) Options {
	t.Helper()
	set, err := rule.LoadFS(rules.FS, ".")
	if err != nil {
		t.Fatal(err)
	}
	data, err := rules.FS.ReadFile("routes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	routes, err := receivers.Load("routes.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Rules: set, Routes: routes, Catalogue: catalogue.Empty(), BadLine: func(err error) { t.Error(err) }}
}

func replayed(t *testing.T, folder string, o Options) (Recording, string) {
	t.Helper()
	rec, err := Run(t.Context(), folder, o)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.MarshalIndent(rec, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return rec, string(b)
}

// A recording of the scenario gives what its labels say, and gives it again after a restart at any time.
func TestRecordedScenario(t *testing.T) {
	s, err := scenario.Load(deploy.Demo, "2026-09-13")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := recording.Write(dir, s, 1); err != nil {
		t.Fatal(err)
	}
	rec, text := replayed(t, dir, shipped(t))
	declared := slices.DeleteFunc(slices.Clone(rec.Incidents), func(i Incident) bool { return i.DeclaredAt == nil })
	if len(declared) != 1 || len(declared[0].Pages) != 1 {
		t.Fatalf("%d incidents were declared, want one with one page:\n%s", len(declared), text[:min(len(text), 4000)])
	}
	for _, i := range rec.Incidents {
		if i.DeclaredAt == nil && len(i.Pages) > 0 {
			t.Errorf("%s was never declared and paged", i.ID)
		}
	}
	if sc := rec.Score; sc == nil || sc.Detected != 1 || sc.FalsePages != 0 || sc.CauseFirst != 1 {
		t.Errorf("score %+v", sc)
	}
	for _, at := range []string{"08:10:00", "08:43:20", "10:30:00"} {
		o := shipped(t)
		o.RestartAt, err = time.Parse(time.RFC3339, "2026-09-13T"+at+"Z")
		if err != nil {
			t.Fatal(err)
		}
		if _, again := replayed(t, dir, o); again != text {
			t.Errorf("a restart at %s changes the answer", at)
		}
	}
}
