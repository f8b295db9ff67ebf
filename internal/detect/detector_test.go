package detect_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// bench plays inputs step by step.
type bench struct {
	run
	t *testing.T
	d *detect.Detector
	n uint64
	b time.Duration // position after t0
}

func newBench(t *testing.T, rules, cat string) *bench {
	t.Helper()
	c, err := catalogue.Parse("catalogue.yaml", []byte(cat))
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, d: detect.New(detect.Config{Rules: parseRules(t, rules), Catalogue: c})}
}

// play steps for a while; fill adds to the inputs of the bucket that begins at b.
func (p *bench) play(d time.Duration, fill func(b time.Duration, in *detect.Inputs)) *bench {
	for end := p.b + d; p.b < end; p.b += signal.BucketSize {
		p.n++
		in := detect.Inputs{Tick: detect.Tick{Number: p.n, From: at(p.b), To: at(p.b + signal.BucketSize)}}
		if fill != nil {
			fill(p.b, &in)
		}
		p.add(p.d.Tick(in))
	}
	return p
}

// command gives people's words in a tick without steps.
func (p *bench) command(cs ...incident.Command) *bench {
	p.n++
	p.add(p.d.Tick(detect.Inputs{Tick: detect.Tick{Number: p.n, From: at(p.b), To: at(p.b), Commands: cs}}))
	return p
}

// share fills each bucket of the services with 40 requests of which a part fails.
func share(bad float64, services ...string) func(time.Duration, *detect.Inputs) {
	return func(b time.Duration, in *detect.Inputs) {
		for _, s := range services {
			n := uint64(40 * bad)
			in.Cells = append(in.Cells, traffic(at(b), s, 40-n, n))
		}
	}
}

func (p *bench) open() (out []incident.Incident) {
	for _, x := range p.last() {
		if x.State.Open() {
			out = append(out, x)
		}
	}
	return out
}

func (p *bench) count(t incident.EventType) (n int) {
	for _, e := range p.Events {
		if e.Type == t {
			n++
		}
	}
	return n
}

const quick = `groups:
  - name: test
    rules:
      - {alert: Failing, kind: failure_rate, above: 10%, window: 30s}
      - {alert: HighImpact, kind: high_impact, accounts: 1000, services: 1, recovered: 5m}
`

func TestTenTogglesInTwentyEvaluationsAreOneFlappingIncident(t *testing.T) {
	p := newBench(t, strings.Replace(quick, "window: 30s", "window: 10s", 1), "")
	for range 20 {
		p.play(10*time.Second, share(0.8, "shop")).play(20*time.Second, share(0, "shop"))
	}
	all := p.last()
	if len(all) != 1 || !all[0].Flapping {
		t.Fatalf("%d incidents, flapping %v", len(all), len(all) == 1 && all[0].Flapping)
	}
	fired := 0
	for _, x := range p.Transitions {
		if x.Finding.Rule == "Failing" && x.Finding.State == incident.Firing {
			fired++
		}
	}
	if fired > 10 {
		t.Errorf("fired %d times", fired)
	}
	p.play(160*time.Second, share(0, "shop"))
	if p.Transitions[len(p.Transitions)-1].Finding.State == incident.Inactive {
		t.Error("ended before twenty clean runs")
	}
	p.play(20*time.Minute, share(0, "shop"))
	if n := len(p.open()); n != 0 {
		t.Errorf("%d incidents open after it has been clean", n)
	}
}

func TestWithoutACatalogueManyAtOnceAreWidespread(t *testing.T) {
	var all []string
	for i := range 30 {
		all = append(all, fmt.Sprintf("s%02d", i))
	}
	p := newBench(t, quick, "").play(10*time.Minute, share(0, all...)).play(3*time.Minute, func(b time.Duration, in *detect.Inputs) {
		share(0.5, all[:7]...)(b, in)
		share(0, all[7:]...)(b, in)
	})
	open := p.open()
	if len(open) != 1 || len(open[0].Services) != 7 || !strings.Contains(open[0].Title, "widespread") {
		t.Errorf("%d incidents, first %+v", len(open), open)
	}
	p = newBench(t, quick, "").play(10*time.Minute, share(0, all...)).play(3*time.Minute, func(b time.Duration, in *detect.Inputs) {
		share(0.5, all[:4]...)(b, in)
		share(0, all[4:]...)(b, in)
	})
	if n := len(p.open()); n != 4 {
		t.Errorf("four services that fail at once without any edge are %d incidents, want 4", n)
	}
}

const shared = `services:
  - {name: a, depends_on: [auth]}
  - {name: b, depends_on: [auth]}
  - {name: c, depends_on: [auth]}
  - {name: auth}
  - {name: x}
`

func TestASharedDependencyJoinsWhatFailsTogetherEvenIfItSaysNothing(t *testing.T) {
	p := newBench(t, quick, shared).play(5*time.Minute, share(0, "a", "b", "c", "x")).play(3*time.Minute, share(0.5, "a", "b", "c", "x"))
	open := p.open()
	if len(open) != 2 || !slices.Equal(open[0].Services, []string{"a", "b", "c"}) || !slices.Equal(open[1].Services, []string{"x"}) {
		t.Errorf("incidents of %v", open)
	}
	// Two of three, hours apart, are not the dependency's fault.
	p = newBench(t, quick, shared).play(5*time.Minute, share(0, "a", "b", "c")).play(3*time.Minute, func(b time.Duration, in *detect.Inputs) {
		share(0.5, "a")(b, in)
		share(0, "b", "c")(b, in)
	}).play(2*time.Hour, func(b time.Duration, in *detect.Inputs) {
		share(0.5, "a")(b, in)
		share(0, "b", "c")(b, in)
	}).play(3*time.Minute, share(0.5, "a", "b"))
	if n := len(p.open()); n != 2 {
		t.Errorf("%d incidents, want 2", n)
	}
}

func TestSuspectedIncidentsThatTurnOutToBeOneAreMerged(t *testing.T) {
	weak := strings.Replace(quick, "services: 1,", "services: 50,", 1)
	p := newBench(t, weak, shared).play(5*time.Minute, share(0, "a", "b", "c")).
		play(time.Minute, func(b time.Duration, in *detect.Inputs) { share(0.2, "a")(b, in); share(0, "b", "c")(b, in) }).
		play(time.Minute, func(b time.Duration, in *detect.Inputs) { share(0.2, "a", "b")(b, in); share(0, "c")(b, in) })
	if n := len(p.open()); n != 2 {
		t.Fatalf("%d incidents before the third service fails, want 2", n)
	}
	p.play(time.Minute, share(0.2, "a", "b", "c"))
	open := p.open()
	if len(open) != 1 || len(open[0].Services) != 3 || p.count(incident.EventMerged) != 1 {
		t.Errorf("incidents %+v", open)
	}
}

func TestPeoplesWords(t *testing.T) {
	p := newBench(t, quick, "").play(5*time.Minute, share(0, "shop", "chat")).play(3*time.Minute, share(0.5, "shop", "chat"))
	open := p.open()
	if len(open) != 2 {
		t.Fatalf("%d incidents", len(open))
	}
	a, b := open[0].ID, open[1].ID
	merge := incident.Command{ID: "m", Type: incident.CommandMerge, Incident: b, Into: a, By: "ines"}
	p.command(merge, merge)
	if p.count(incident.EventMerged) != 1 {
		t.Fatalf("merged %d times", p.count(incident.EventMerged))
	}
	if got := p.open(); len(got) != 1 || !slices.Equal(got[0].Services, []string{"chat", "shop"}) {
		t.Errorf("after the merge: %+v", got)
	}
	p.command(incident.Command{ID: "d", Type: incident.CommandDismiss, Incident: a, By: "ines"})
	before := len(p.Events)
	p.play(10*time.Minute, share(0.5, "shop", "chat"))
	if n := len(p.Events) - before; n != 0 {
		t.Errorf("%d events about what a person called no incident", n)
	}
	p.command(incident.Command{ID: "x", Type: incident.CommandAcknowledge, Incident: "T-unknown", By: "ines"})
	if n := len(p.Events) - before; n != 0 {
		t.Errorf("%d events from a command to nothing", n)
	}
}

// Whoever reopens knows of trouble that telemetry does not show; the quiet before it must not close the incident at once.
func TestWhatAPersonReopensStaysOpen(t *testing.T) {
	p := newBench(t, quick, "").play(5*time.Minute, share(0, "shop")).play(4*time.Minute, share(0.5, "shop"))
	id := p.open()[0].ID
	p.play(40*time.Minute, share(0, "shop"))
	if len(p.open()) != 0 {
		t.Fatal("it should have been over")
	}
	before := p.last()[0]
	p.command(incident.Command{ID: "r", Type: incident.CommandReopen, Incident: id, By: "ines"})
	p.play(2*time.Minute, share(0, "shop"))
	if open := p.open(); len(open) != 1 || open[0].ID != id {
		t.Fatalf("open after a person reopened it: %+v, before %s", open, before.State)
	}
	p.play(time.Hour, share(0, "shop"))
	if len(p.open()) != 0 {
		t.Error("it never ends")
	}
}

// The sentence under an incident's title says why it is what it is, not what joined it last.
func TestReasonIsOfTheState(t *testing.T) {
	p := newBench(t, quick, "").play(5*time.Minute, share(0, "shop", "chat")).play(4*time.Minute, share(0.5, "shop"))
	in := p.open()[0]
	var declared string
	for _, e := range p.Events {
		if e.Type == incident.EventDeclared && e.Incident == in.ID {
			declared = e.Reason
		}
	}
	if declared == "" || in.Reason != declared {
		t.Errorf("%s because %q, declared because %q", in.State, in.Reason, declared)
	}
}

func TestMissingStreamsAreNoRecovery(t *testing.T) {
	p := newBench(t, quick, "").play(5*time.Minute, share(0, "shop")).play(3*time.Minute, share(0.5, "shop"))
	p.n++
	in := detect.Inputs{Tick: detect.Tick{Number: p.n, From: at(p.b), To: at(p.b + 2*time.Minute), Partial: []signal.Stream{signal.Requests}}}
	for b := p.b; b < p.b+2*time.Minute; b += signal.BucketSize {
		share(0, "shop")(b, &in)
	}
	p.add(p.d.Tick(in))
	p.b += 2 * time.Minute
	var last incident.Transition
	for _, x := range p.Transitions {
		if x.Finding.Rule == "Failing" {
			last = x
		}
	}
	if last.Finding.State != incident.Unknown || !last.Finding.Partial {
		t.Errorf("the finding is %s, partial %v", last.Finding.State, last.Finding.Partial)
	}
	p.play(time.Minute, share(0, "shop"))
	for _, x := range p.Transitions {
		if x.Finding.Rule == "Failing" {
			last = x
		}
	}
	if last.Finding.State != incident.Inactive {
		t.Errorf("with all streams back the finding is %s", last.Finding.State)
	}
}

func TestLateRowsCountIntoTheirBuckets(t *testing.T) {
	p := newBench(t, strings.Replace(quick, "window: 30s", "window: 5m", 1), "").play(5*time.Minute, share(0, "shop"))
	p.play(10*time.Second, func(b time.Duration, in *detect.Inputs) {
		for back := time.Minute; back <= 3*time.Minute; back += signal.BucketSize {
			share(0.9, "shop")(b-back, in)
		}
		share(0.5, "shop")(b, in)
	})
	if len(p.open()) != 1 {
		t.Error("what came late does not count")
	}
}

func TestImpactCountsWhatFailed(t *testing.T) {
	p := newBench(t, quick, "").play(10*time.Minute, share(0, "shop")).play(5*time.Minute, func(b time.Duration, in *detect.Inputs) {
		share(0.5, "shop")(b, in)
		for i := range 30 {
			in.Cells[0].Accounts.Add(signal.HashAccount(fmt.Sprint("account", i)))
		}
	}).play(30*time.Minute, share(0, "shop"))
	all := p.last()
	if len(all) != 1 {
		t.Fatalf("%d incidents", len(all))
	}
	x := all[0]
	if x.Impact.Failures != 600 || x.Impact.PeakShare != 0.5 || x.Impact.AccountsAtLeast != 30 || x.Impact.Kind != incident.ImpactFailures {
		t.Errorf("impact %+v, want the 600 failures of five minutes from 30 accounts", x.Impact)
	}
	if len(x.Paths) != 1 || x.Paths[0].Failures != 600 || x.Paths[0].PeakShare != 0.5 || x.Paths[0].BaseShare != 0 {
		t.Errorf("paths %+v", x.Paths)
	}
	if x.StartedAt.Sub(at(10*time.Minute)).Abs() > 30*time.Second {
		t.Errorf("started at %s", x.StartedAt)
	}
}
