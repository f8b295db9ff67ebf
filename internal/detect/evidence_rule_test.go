package detect_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const byEvidence = `groups:
  - name: test
    rules:
      - {alert: Unusual, kind: failure_rate, false_pages: 1 per 30d, slices: [model]}
      - {alert: HighImpact, kind: high_impact, accounts: 1000, services: 1, recovered: 5m}
`

// states lists what a rule's findings went through.
func (p *bench) states(alert string) (out []string) {
	for _, x := range p.Transitions {
		if x.Finding.Rule == alert {
			out = append(out, fmt.Sprintf("%s %s %s", x.Finding.Key.Service, x.Finding.Key.Attributes, x.Finding.State))
		}
	}
	return out
}

func TestEvidenceOpensAndEndsAnIncident(t *testing.T) {
	p := newBench(t, byEvidence, "").play(3*time.Hour, share(0.025, "shop", "chat"))
	if len(p.Transitions) > 0 {
		t.Fatalf("findings in quiet hours: %v", p.states("Unusual"))
	}
	p.play(10*time.Minute, func(b time.Duration, in *detect.Inputs) { share(0.5, "shop")(b, in); share(0.025, "chat")(b, in) })
	if got := p.states("Unusual"); len(got) != 1 || got[0] != "shop  firing" {
		t.Fatalf("after ten minutes: %v", got)
	}
	f := p.Transitions[0].Finding
	if at := f.FiredAt.Sub(t0) - 3*time.Hour; at > 8*time.Minute || at < 3*time.Minute {
		t.Errorf("fired after %s", at)
	}
	if !strings.Contains(f.Explain, "writes failed in") || !strings.Contains(f.Explain, "usually 2.49%") {
		t.Errorf("explained as %q", f.Explain)
	}
	if len(p.open()) != 1 {
		t.Errorf("%d incidents", len(p.open()))
	}
	p.play(40*time.Minute, share(0.025, "shop", "chat"))
	if len(p.open()) != 0 {
		t.Errorf("still open 40 minutes after the end")
	}
}

func TestAShadowRuleOnlyRecords(t *testing.T) {
	p := newBench(t, strings.Replace(byEvidence, "slices:", "shadow: true, slices:", 1), "").play(3*time.Hour, share(0.025, "shop")).
		play(20*time.Minute, share(0.9, "shop"))
	if got := p.states("Unusual"); len(got) != 1 || p.Transitions[0].Finding.Labels["shadow"] != "true" {
		t.Errorf("recorded %v", got)
	}
	if len(p.Events) != 0 {
		t.Errorf("a shadow rule made %d events", len(p.Events))
	}
}

func TestEvidenceFindsTheSliceThatTheWholeHides(t *testing.T) {
	fill := func(bad uint64) func(time.Duration, *detect.Inputs) {
		return func(b time.Duration, in *detect.Inputs) {
			for i, n := range []uint64{400, 8} {
				c := traffic(at(b), "chat", n-n/100, n/100)
				c.Key.Attributes = signal.AttributesOf(signal.Attr{Name: "model", Value: fmt.Sprint("m", i)})
				if i == 1 {
					c.Outcomes[signal.Success], c.Outcomes[signal.Failure] = n-bad, bad
				}
				in.Cells = append(in.Cells, c)
			}
		}
	}
	p := newBench(t, byEvidence, "").play(3*time.Hour, fill(0)).play(9*time.Minute, fill(4))
	for _, s := range p.states("Unusual") {
		if strings.Contains(s, "model=m1 firing") {
			return
		}
	}
	t.Errorf("found %v", p.states("Unusual"))
}

// What is learned and proven survives a restart, another cut of ticks, rows that come late and an edited budget.
func TestEvidenceDoesNotDependOnCutsAndRestarts(t *testing.T) {
	const steps = 6 * 60 * 4
	fill := func(b time.Duration, in *detect.Inputs) {
		i := int(b / signal.BucketSize)
		for j, s := range []string{"chat", "shop"} {
			n := uint64(20 + (i*7+j*3)%11)
			bad := uint64(0)
			switch {
			case i > 3*steps/4 && j == 1:
				bad = n - n/3
			case (i*13+j)%17 == 0:
				bad = 1
			}
			c := traffic(at(b), s, n-bad, bad)
			c.Key.Attributes = signal.AttributesOf(signal.Attr{Name: "model", Value: fmt.Sprint("m", i%3)})
			in.Cells = append(in.Cells, c)
		}
	}
	play := func(cut, restart int, rules string) (out []string, state []byte) {
		p := newBench(t, rules, "")
		for from := 0; from < steps; from += cut {
			p.n++
			to := min(from+cut, steps)
			in := detect.Inputs{Tick: detect.Tick{Number: p.n, From: at(time.Duration(from) * signal.BucketSize), To: at(time.Duration(to) * signal.BucketSize)}}
			for i := from; i < to; i++ {
				fill(time.Duration(i)*signal.BucketSize, &in)
			}
			p.add(p.d.Tick(in))
			if restart > 0 && int(p.n)%restart == 0 {
				snap, err := p.d.Snapshot()
				if err != nil {
					t.Fatal(err)
				}
				p.d = detect.New(detect.Config{Rules: parseRules(t, rules)})
				if err := p.d.Restore(snap); err != nil {
					t.Fatal(err)
				}
				if again, _ := p.d.Snapshot(); !bytes.Equal(snap, again) {
					t.Fatal("a restored detector gives another snapshot")
				}
			}
		}
		state, err := p.d.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range p.Transitions {
			out = append(out, fmt.Sprint(x.At, x.Finding.Key, x.Finding.State, x.Finding.Explain))
		}
		return out, state
	}
	for _, rules := range []string{byEvidence, strings.Replace(byEvidence, "name: test", "name: test\n    interval: 30s", 1)} {
		want, state := play(1, 0, rules)
		if len(want) == 0 {
			t.Fatal("nothing was found, so nothing is compared")
		}
		for _, c := range [][2]int{{1, 97}, {7, 5}, {40, 1}} {
			got, end := play(c[0], c[1], rules)
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("cut %d, restart %d: %d transitions, want %d", c[0], c[1], len(got), len(want))
			}
			if !bytes.Equal(end, state) {
				t.Errorf("cut %d, restart %d: another state", c[0], c[1])
			}
		}
	}
}

func TestAnEditedBudgetKeepsWhatWasLearned(t *testing.T) {
	p := newBench(t, byEvidence, "").play(3*time.Hour, share(0.025, "shop"))
	snap, err := p.d.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	p.d = detect.New(detect.Config{Rules: parseRules(t, strings.Replace(byEvidence, "1 per 30d", "1 per 90d", 1))})
	if err := p.d.Restore(snap); err != nil {
		t.Fatal(err)
	}
	// A key that had begun anew would prove nothing for half an hour.
	p.play(10*time.Minute, share(0.5, "shop"))
	if got := p.states("Unusual"); len(got) != 1 {
		t.Errorf("after the edit: %v", got)
	}
	if p.Transitions[0].Finding.State != incident.Firing {
		t.Errorf("the finding is %s", p.Transitions[0].Finding.State)
	}
}

func TestLateRowsAreEvidenceWhenTheyCome(t *testing.T) {
	// Everything comes ten minutes late, as from a service with a slow exporter.
	late := func(bad float64) func(time.Duration, *detect.Inputs) {
		return func(b time.Duration, in *detect.Inputs) { share(bad, "shop")(b-10*time.Minute, in) }
	}
	p := newBench(t, byEvidence, "").play(3*time.Hour, late(0.025)).play(10*time.Minute, late(0.5))
	if got := p.states("Unusual"); len(got) == 0 {
		t.Error("what always comes late is never found")
	}
}
