package detect_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Tickets name their area, and whoever sends them may name any. What is remembered stays bounded by that, such tickets still count
// together, and a burst about an area of the catalogue is found all the same, by counting and by evidence.
func TestAreasThatTicketsInventAreBounded(t *testing.T) {
	rules := parseRules(t, `groups:
  - name: desk
    rules:
      - {alert: Burst, kind: support, min_accounts: 5, window: 15m}
      - {alert: Chance, kind: support, false_pages: 1 per 7d}
`)
	cat, err := catalogue.Parse("catalogue.yaml", []byte("areas: [{name: billing}]"))
	if err != nil {
		t.Fatal(err)
	}
	d := detect.New(detect.Config{Rules: rules, Catalogue: cat})
	size := 0
	fired := map[string]bool{}
	id := 0
	for n := 1; n <= 2400; n++ {
		to := at(time.Duration(n) * signal.BucketSize)
		in := detect.Inputs{Tick: detect.Tick{Number: uint64(n), From: to.Add(-signal.BucketSize), To: to}}
		ticket := func(area string) {
			id++
			in.Tickets = append(in.Tickets, signal.Ticket{Time: to.Add(-time.Second), ID: fmt.Sprintf("%05d", id), Area: area, Account: fmt.Sprintf("a%d", id)})
		}
		if n < 800 || n >= 1600 && n < 1700 {
			ticket(fmt.Sprintf("made up %d", id))
			ticket(fmt.Sprintf("made up %d", id))
		}
		if n > 2300 {
			ticket("billing")
		}
		for _, x := range d.Tick(in).Transitions {
			if x.Finding.State.String() == "firing" {
				fired[x.Finding.Rule+" "+x.Finding.Key.Area] = true
			}
		}
		if n == 800 {
			size = d.Areas()
		}
	}
	if now := d.Areas(); size != now-1 || size > 1002 {
		t.Errorf("%d areas after 1600 names, %d after 1800 and one of the catalogue", size, now)
	}
	for _, want := range []string{"Burst billing", "Chance billing", "Burst unclassified"} {
		if !fired[want] {
			t.Errorf("no finding %s: %v", want, slices.Sorted(maps.Keys(fired)))
		}
	}
}
