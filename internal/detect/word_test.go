package detect_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// Two rules that weigh one incident must not take its time from each other: that one of them finds too little says
// nothing about for how long the other has found enough.
func TestRulesOfHighImpactDoNotHoldEachOtherUp(t *testing.T) {
	const little = "{alert: Little, kind: high_impact, services: 2, share: 100%, accounts: 1000, declare: 1, for: 1m}"
	const enough = "{alert: Enough, kind: high_impact, services: 1, share: 100%, accounts: 1000, declare: 1, for: 1m}"
	const generous = "{alert: Generous, kind: high_impact, services: 0.1, share: 100%, accounts: 1000, declare: 100, critical: 200, for: 1m}" // ten points, of a hundred
	for name, order := range map[string][]string{
		"the weaker first": {little, enough}, "the weaker last": {enough, little}, "points of another scale": {enough, generous},
		"points of another scale first": {generous, enough},
	} {
		t.Run(name, func(t *testing.T) {
			rules, _, _ := strings.Cut(quick, "      - {alert: HighImpact")
			for _, r := range order {
				rules += "      - " + r + "\n"
			}
			p := newBench(t, rules, "")
			p.play(5*time.Minute, share(0.3, "shop"))
			if n := p.count(incident.EventDeclared); n != 1 {
				t.Fatalf("declared %d times", n)
			}
			for _, x := range p.Transitions {
				if x.Finding.Kind == "high_impact" && x.Finding.Rule != "Enough" {
					t.Errorf("declared by %s", x.Finding.Rule)
				}
			}
		})
	}
}

// What was merged lives on in one place; a second button pressed on an old page must not give it to another as well.
func TestWhatIsMergedIsNotMergedAgain(t *testing.T) {
	p := newBench(t, quick, "")
	p.play(2*time.Minute, share(0.6, "a"))
	p.play(20*time.Minute, share(0.6, "a", "b"))
	p.play(20*time.Minute, share(0.6, "a", "b", "c"))
	id := map[string]string{}
	for _, in := range p.open() {
		id[in.Services[0]] = in.ID
	}
	if len(id) != 3 {
		t.Fatalf("the world has changed: %v", id)
	}
	for n, c := range []incident.Command{
		{Type: incident.CommandMerge, Into: id["b"]}, {Type: incident.CommandMerge, Into: id["c"]}, {Type: incident.CommandAcknowledge, Into: id["c"]},
	} {
		c.ID, c.Incident, c.By = strings.Repeat("x", n+1), id["a"], "ines"
		p.command(c)
	}
	p.play(time.Minute, share(0.6, "a", "b", "c"))
	for _, in := range p.open() {
		if in.ID == id["c"] && len(in.Services) != 1 {
			t.Errorf("%s took in %v", in.ID, in.Services)
		}
		if in.ID == id["b"] && len(in.Services) != 2 {
			t.Errorf("%s has %v", in.ID, in.Services)
		}
	}
}
