package demo

import (
	"context"
	"strings"
	"testing"
	"time"
)

// ClickHouse stops for a minute of wall time while the scenario runs at ten times real time. Nothing is lost, and Tocsin
// pages itself blind within that minute, through the path that needs no database.
func TestDatabaseDownForAMinute(t *testing.T) {
	t.Parallel()
	s := load(t, "2026-09-13")
	d := up(t, Options{Scenario: s, Seed: 3, Speed: 10, Until: s.Start.Add(16 * time.Minute)})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	played := make(chan error, 1)
	go func() { played <- d.Play(ctx) }()
	eventually(t, 2*time.Minute, "two minutes of the scenario are judged", func() bool { return d.judged.Load() >= s.Start.Add(2*time.Minute).UnixNano() })

	if err := d.StopClickHouse(t.Context()); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	blind := func() bool {
		for _, a := range d.PagerDuty.State().Alerts {
			if strings.HasPrefix(a.DedupKey, "tocsin/self/") && a.Status == "triggered" {
				return true
			}
		}
		return false
	}
	eventually(t, time.Minute, "Tocsin pages that it is blind", blind)
	t.Logf("paged itself blind after %s", time.Since(stopped).Round(time.Second))
	rest, done := context.WithDeadline(t.Context(), stopped.Add(time.Minute))
	<-rest.Done()
	done()
	if err := d.StartClickHouse(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-played; err != nil {
		t.Fatal(err)
	}
	d.drained(t)
	d.sameAsTruth(t)
	eventually(t, 3*time.Minute, "the page about itself is closed", func() bool { return !blind() })
	for _, a := range d.PagerDuty.State().Alerts {
		if !strings.HasPrefix(a.DedupKey, "tocsin/self/") {
			t.Errorf("somebody was paged for %s in a quiet hour", a.Summary)
		}
	}
}
