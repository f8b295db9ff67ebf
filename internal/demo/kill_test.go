package demo

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tocsin-project/tocsin/internal/app"
	"github.com/tocsin-project/tocsin/internal/backtest"
	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/scenario/recording"
	"github.com/tocsin-project/tocsin/rules"
)

// One seed goes through Kafka and ClickHouse while the daemon is killed three times. What is stored equals what was made,
// people are told once, and the incident log is the one that a backtest of the recorded scenario gives.
func TestKilledThreeTimes(t *testing.T) {
	t.Parallel()
	s := load(t, "2026-09-13")
	const seed = 1
	d := up(t, Options{Scenario: s, Seed: seed})
	r := rand.New(rand.NewPCG(seed, uint64(time.Now().UnixNano())))
	span := s.End.Sub(s.Start)
	var at []time.Time
	for i := range 3 {
		at = append(at, s.Start.Add(span*time.Duration(i)/3+time.Duration(r.Int64N(int64(span/3)))))
	}
	t.Logf("kills at %v", at)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	played := make(chan error, 1)
	go func() { played <- d.Play(ctx) }()
	for _, k := range at {
		eventually(t, 5*time.Minute, "the scenario reaches "+k.Format("15:04:05"), func() bool { return d.judged.Load() >= k.UnixNano() || len(played) > 0 })
		d.KillDaemon()
		if err := d.StartDaemon(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-played; err != nil {
		t.Fatal(err)
	}
	d.drained(t)
	d.sameAsTruth(t)

	events := d.incidentLog(t)
	live := backtest.FromLog(events)
	declared := slices.DeleteFunc(slices.Clone(live), func(i backtest.Incident) bool { return i.DeclaredAt == nil })
	if len(declared) != 1 {
		t.Fatalf("%d incidents were declared, want 1", len(declared))
	}
	id := declared[0].ID
	opened, repeats := 0, 0
	for _, a := range d.PagerDuty.State().Alerts {
		if strings.Contains(a.DedupKey, id) {
			opened++
			repeats += a.Triggers - 1
		} else if !strings.HasPrefix(a.DedupKey, "tocsin/self/") {
			t.Errorf("somebody was paged for something else: %s", a.Summary)
		}
	}
	if opened != 1 {
		t.Errorf("%d alerts were opened at PagerDuty for %s, want 1: %s", opened, id, pretty(t, d.PagerDuty.State().Alerts))
	}
	roots := 0
	for _, m := range d.Slack.Channel("incidents").Messages {
		if m.Metadata != nil && m.Metadata.EventPayload["incident"] == id {
			roots++
		}
	}
	if roots != 1 {
		t.Errorf("%d root messages for %s in Slack, want 1", roots, id)
	}
	t.Logf("%d alerts with %d repeats of their key, %d root messages", opened, repeats, roots)

	want := replayRecorded(t, d, seed)
	for i := range want {
		want[i].Pages = []backtest.Page{} // FromLog knows none
	}
	if diff := cmp.Diff(want, live); diff != "" {
		t.Errorf("the live run and a backtest of the recorded scenario differ (-backtest +live):\n%s", diff[:min(len(diff), 6000)])
	}
}

func replayRecorded(t *testing.T, d *Demo, seed int64) []backtest.Incident {
	t.Helper()
	dir := t.TempDir()
	if _, err := recording.Write(dir, d.Scenario, seed); err != nil {
		t.Fatal(err)
	}
	set, err := rule.LoadFS(rules.FS, ".")
	if err != nil {
		t.Fatal(err)
	}
	routes, err := app.Routes("")
	if err != nil {
		t.Fatal(err)
	}
	rec, err := backtest.Run(t.Context(), dir, backtest.Options{Rules: set, Routes: routes, Catalogue: catalogue.Empty()})
	if err != nil {
		t.Fatal(err)
	}
	return rec.Incidents
}
