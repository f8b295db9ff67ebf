package detect_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// weakShare and weakTickets are what does not suffice alone within an hour: failures beside 0.5% usual ones, tickets an hour beside two.
const weakShare, weakTickets = 0.0115, 11

const fusing = `groups:
  - name: test
    rules:
      - {alert: Unusual, kind: failure_rate, false_pages: 1 per 30d, slices: [model]}
      - {alert: Tickets, kind: support, false_pages: 1 per 30d}
      - {alert: Together, kind: high_impact, false_pages: 1 per 30d, for: 30s, keep_firing_for: 5m}
`

const fusingCatalogue = `areas:
  - {name: pulls}
  - {name: issues}
services:
  - {name: merge, area: pulls}
  - {name: diff, area: pulls}
  - {name: issues, area: issues}
`

// odds is a world of counts: Poisson requests, failures and tickets, all of one seed.
type odds struct {
	r  *rand.Rand
	id int
}

func newOdds(seed uint64) *odds { return &odds{r: rand.New(rand.NewPCG(seed, 11))} }

func (w *odds) poisson(mean float64) (n uint64) {
	if mean > 200 {
		return uint64(max(0, math.Round(mean+math.Sqrt(mean)*w.r.NormFloat64())))
	}
	for p := w.r.ExpFloat64(); p < mean; p += w.r.ExpFloat64() {
		n++
	}
	return n
}

// requests adds the bucket's requests of a service, of which a share fails, a second.
func (w *odds) requests(in *detect.Inputs, b time.Duration, service string, perSecond, share float64) {
	n := w.poisson(10 * perSecond)
	f := min(n, w.poisson(float64(n)*share))
	c := traffic(at(b), service, n-f, f)
	if n > 0 {
		in.Cells = append(in.Cells, c)
	}
}

// tickets adds the bucket's tickets about an area, an hour; of new accounts, or all of one.
func (w *odds) tickets(in *detect.Inputs, b time.Duration, area string, perHour float64, account string) {
	for range w.poisson(perHour / 360) {
		w.id++
		who := account
		if who == "" {
			who = fmt.Sprintf("account-%d", w.r.IntN(5000))
		}
		in.Tickets = append(in.Tickets, signal.Ticket{Time: at(b).Add(time.Duration(w.r.IntN(10_000)) * time.Millisecond), ID: fmt.Sprint("t", w.id), Area: area, Account: who})
	}
}

// usual are ordinary hours of that world.
func (w *odds) usual(b time.Duration, in *detect.Inputs) {
	w.requests(in, b, "merge", 2, 0.005)
	w.requests(in, b, "diff", 20, 0.002)
	w.requests(in, b, "issues", 5, 0.003)
	w.tickets(in, b, "pulls", 2, "")
	w.tickets(in, b, "issues", 4, "")
}

// trouble goes on from a snapshot of that world for a while, with so many failures and tickets an hour more than usual.
func trouble(t *testing.T, rules string, snapshot []byte, seed uint64, d time.Duration, share, perHour float64, account string) *bench {
	t.Helper()
	w := newOdds(seed + 1000)
	p := newBench(t, rules, fusingCatalogue)
	if err := p.d.Restore(snapshot); err != nil {
		t.Fatal(err)
	}
	p.b = p.d.Position().Sub(t0)
	return p.play(d, func(b time.Duration, in *detect.Inputs) {
		w.requests(in, b, "merge", 2, 0.005+share)
		w.requests(in, b, "diff", 20, 0.002)
		w.requests(in, b, "issues", 5, 0.003)
		w.tickets(in, b, "pulls", 2, "")
		w.tickets(in, b, "pulls", perHour, account)
		w.tickets(in, b, "issues", 4, "")
	})
}

// quietDays is that world after nine days in which nothing was wrong.
func quietDays(t *testing.T, rules string, seed uint64) []byte {
	t.Helper()
	w := newOdds(seed)
	p := newBench(t, rules, fusingCatalogue).play(9*24*time.Hour, w.usual)
	if len(p.Transitions) > 0 {
		t.Errorf("seed %d: in quiet days %s", seed, p.Transitions[0].Finding.Explain)
	}
	snapshot, err := p.d.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

func (p *bench) fired(alert string) bool {
	for _, x := range p.Transitions {
		if x.Finding.Rule == alert && x.Finding.State == incident.Firing {
			return true
		}
	}
	return false
}

// What neither failures nor tickets declare by their own, they declare together: in an hour, in a majority of worlds against a minority.
func TestWeakFailuresAndWeakTicketsDeclareTogether(t *testing.T) {
	const seeds, repeats = 6, 10
	var failures, tickets, both, either int
	for seed := range uint64(seeds) {
		snapshot := quietDays(t, fusing, seed)
		for again := range uint64(repeats) {
			for _, c := range []struct {
				share, perHour float64
				n              *int
			}{{weakShare, 0, &failures}, {0, weakTickets, &tickets}, {weakShare, weakTickets, &both}} {
				p := trouble(t, fusing, snapshot, 100*seed+again, time.Hour, c.share, c.perHour, "")
				if !p.fired("Together") {
					continue
				}
				*c.n++
				if c.n != &both {
					continue
				}
				if p.fired("Unusual") || p.fired("Tickets") {
					either++
				}
				if p.count(incident.EventDeclared) == 0 || !slices.Contains(p.last()[0].Areas, "pulls") || len(p.pages()) == 0 {
					t.Errorf("seed %d: declared %d times, %d pages", seed, p.count(incident.EventDeclared), len(p.pages()))
				}
			}
		}
	}
	t.Logf("declared in %d worlds: %d by failures alone, %d by tickets alone, %d by both, of which %d times one of them was a finding by itself", seeds*repeats, failures, tickets, both, either)
	if both < seeds*repeats/4 || 3*failures > 2*both || 3*tickets > 2*both {
		t.Errorf("declared in %d worlds: %d by failures alone, %d by tickets alone, %d by both", seeds*repeats, failures, tickets, both)
	}
}

// A rush of tickets alone declares when many accounts write, and not when one does, however often.
func TestARushOfTicketsDeclaresByAccounts(t *testing.T) {
	for seed := range uint64(3) {
		snapshot := quietDays(t, fusing, seed)
		p := trouble(t, fusing, snapshot, seed, 40*time.Minute, 0, 60, "")
		open := p.open()
		if len(open) != 1 || open[0].State != incident.Declared || open[0].Impact.Kind != incident.ImpactTickets && !p.fired("Together") {
			t.Fatalf("seed %d: sixty accounts an hour where two are usual: %d incidents, %v", seed, len(open), p.states("Tickets"))
		}
		f := open[0].Findings[0].Finding
		for _, part := range []string{"accounts wrote about pulls in ", "usually ", "at most ", "evidence +"} {
			if !strings.Contains(f.Explain, part) {
				t.Errorf("%q does not say %q", f.Explain, part)
			}
		}
		if len(f.Evidence) < 5 || f.Evidence[0].Evidence > -2 || f.Evidence[len(f.Evidence)-1].Evidence < 0 {
			t.Errorf("evidence over time: %+v", f.Evidence)
		}
		if p = trouble(t, fusing, snapshot, seed, 2*time.Hour, 0, 180, "angry"); len(p.Events) > 0 {
			t.Errorf("seed %d: one account's tickets: %s", seed, p.Events[0].Reason)
		}
	}
}

// A fused finding says what it put together, and its incident names the service, so that the right people are paged.
func TestWhatIsFusedIsSaid(t *testing.T) {
	snapshot := quietDays(t, fusing, 1)
	p := trouble(t, fusing, snapshot, 1, time.Hour, 0.02, 60, "")
	var f *incident.Finding
	for i := range p.Transitions {
		if x := &p.Transitions[i]; x.Finding.Rule == "Together" && x.Finding.State == incident.Firing {
			f = &x.Finding
		}
	}
	if f == nil || f.Key.Area != "pulls" {
		t.Fatalf("found %+v", f)
	}
	x := p.last()[0]
	if !strings.Contains(x.Reason, "beyond chance; ") || !strings.Contains(x.Reason, "evidence ") || x.Labels["service"] != "merge" && !slices.Contains(x.Services, "merge") && len(x.Services) > 0 {
		t.Errorf("declared with %q for %v", x.Reason, x.Services)
	}
	p = p.play(30*time.Minute, nil)
	live := p.last()[0]
	for i := range live.Findings {
		if g := &live.Findings[i].Finding; g.Rule == "Together" && g.State == incident.Firing && len(g.Evidence) == 0 {
			t.Error("a fused finding has no table")
		}
	}
}

func TestWhatIsInShadowDeclaresNothingTogetherEither(t *testing.T) {
	rules := strings.NewReplacer("slices: [model]", "slices: [model], shadow: true", "kind: support,", "kind: support, shadow: true,").Replace(fusing)
	snapshot := quietDays(t, rules, 2)
	if p := trouble(t, rules, snapshot, 2, time.Hour, 0.05, 80, ""); p.fired("Together") || len(p.Events) > 0 || !p.fired("Unusual") || !p.fired("Tickets") {
		t.Errorf("evidence in shadow declared: %d events; found %v %v", len(p.Events), p.states("Unusual"), p.states("Tickets"))
	}
	rules = strings.Replace(rules, "for: 30s,", "for: 30s, shadow: true,", 1)
	if p := trouble(t, rules, quietDays(t, rules, 2), 2, time.Hour, 0.05, 80, ""); !p.fired("Together") || len(p.Events) > 0 {
		t.Errorf("a shadow rule made %d events, and recorded %v", len(p.Events), p.states("Together"))
	}
}

// What is learned, heard and put together survives a restart at any time, another cut of ticks and a stream that is partial for a while.
func TestFusedEvidenceDoesNotDependOnCutsAndRestarts(t *testing.T) {
	const steps = 6 * 60 * 9
	play := func(cut, restart int, rules string) (out []string, state []byte) {
		w := newOdds(5)
		all := make([]detect.Inputs, steps)
		for i := range all {
			b := time.Duration(i) * signal.BucketSize
			more := 0.0
			if i > steps*5/6 {
				more = 1
			}
			w.requests(&all[i], b, "merge", 3, 0.005+0.03*more)
			w.tickets(&all[i], b, "pulls", 10+200*more, "")
			w.tickets(&all[i], b, "issues", 10, "")
		}
		p := newBench(t, rules, fusingCatalogue)
		for from := 0; from < steps; from += cut {
			p.n++
			to := min(from+cut, steps)
			in := detect.Inputs{Tick: detect.Tick{Number: p.n, From: at(time.Duration(from) * signal.BucketSize), To: at(time.Duration(to) * signal.BucketSize)}}
			if from/120 == 10 {
				in.Tick.Partial = []signal.Stream{signal.Tickets}
			}
			for i := from; i < to; i++ {
				in.Cells = append(in.Cells, all[i].Cells...)
				in.Tickets = append(in.Tickets, all[i].Tickets...)
			}
			p.add(p.d.Tick(in))
			if restart > 0 && int(p.n)%restart == 0 {
				snap, err := p.d.Snapshot()
				if err != nil {
					t.Fatal(err)
				}
				fresh := newBench(t, rules, fusingCatalogue).d
				if err := fresh.Restore(snap); err != nil {
					t.Fatal(err)
				}
				if again, _ := fresh.Snapshot(); !bytes.Equal(snap, again) {
					t.Fatal("a restored detector gives another snapshot")
				}
				p.d = fresh
			}
		}
		state, err := p.d.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range p.Transitions {
			out = append(out, fmt.Sprint(x.At, x.Finding.Key, x.Finding.State, x.Finding.Explain, x.Finding.Evidence))
		}
		for _, e := range p.Events {
			out = append(out, fmt.Sprint(e.At, e.Type, e.Reason))
		}
		return out, state
	}
	for _, rules := range []string{fusing, strings.Replace(fusing, "name: test", "name: test\n    interval: 30s", 1)} {
		want, state := play(1, 0, rules)
		if !strings.Contains(strings.Join(want, "\n"), "together, as requests and tickets are independent") {
			t.Fatalf("nothing was put together, so nothing is compared: %v", want)
		}
		for _, c := range [][2]int{{1, 41}, {8, 5}, {120, 1}} {
			got, end := play(c[0], c[1], rules)
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("cut %d, restart %d: %d lines, want %d", c[0], c[1], len(got), len(want))
			}
			if !bytes.Equal(end, state) {
				t.Errorf("cut %d, restart %d: another state", c[0], c[1])
			}
		}
	}
}

// Tickets that are held up for hours come within minutes, and again. They are those of hours, not of minutes.
func TestHeldUpTicketsAreNoRush(t *testing.T) {
	w := newOdds(3)
	p := newBench(t, fusing, fusingCatalogue)
	quiet := func(b time.Duration, in *detect.Inputs) { w.tickets(in, b, "pulls", 40, "") }
	p.play(30*time.Hour, quiet)
	come := 0
	for range 3 {
		held := detect.Inputs{}
		begin, end := p.b, p.b+3*time.Hour
		for ; p.b < end; p.b += signal.BucketSize {
			quiet(p.b, &held)
			p.n++
			in := detect.Inputs{Tick: detect.Tick{Number: p.n, From: at(p.b), To: at(p.b + signal.BucketSize), Partial: []signal.Stream{signal.Tickets}}}
			if n := min(3, len(held.Tickets)); p.b > end-6*time.Minute { // the stream catches up
				in.Tickets, held.Tickets, come = held.Tickets[:n], held.Tickets[n:], come+n
				for i := range in.Tickets {
					in.Tickets[i].Time = at(p.b)
				}
			}
			p.add(p.d.Tick(in))
		}
		p.play(signal.BucketSize, func(b time.Duration, in *detect.Inputs) {
			for i := range held.Tickets {
				held.Tickets[i].Time = at(b)
			}
			in.Tickets, come = held.Tickets, come+len(held.Tickets)
		}).play(4*time.Minute, quiet)
		if p.fired("Tickets") {
			t.Fatalf("tickets held up since %s, %d so far: %v", at(begin), come, p.states("Tickets"))
		}
	}
	if p.play(time.Hour, quiet); come < 200 || p.fired("Tickets") {
		t.Errorf("%d tickets came late: %v", come, p.states("Tickets"))
	}
	if p.play(30*time.Minute, func(b time.Duration, in *detect.Inputs) { w.tickets(in, b, "pulls", 1200, "") }); !p.fired("Tickets") {
		t.Error("blind afterwards")
	}
}

// A month of a help desk on which nothing is wrong: at most the upper 95% Poisson bound of the budget, for each rule.
func TestQuietMonthsOfTickets(t *testing.T) {
	const months, bound = 4, 8 // of a Poisson count with mean 4
	total := map[string]int{}
	for seed := range uint64(months) {
		fired, p := quietMonth(t, seed, fusing)
		for alert, n := range fired {
			total[alert] += n
		}
		if seed > 0 {
			continue
		}
		// And at its end it is not deaf.
		w := newOdds(99)
		p.play(30*time.Minute, func(b time.Duration, in *detect.Inputs) { w.tickets(in, b, "area3", 60, "") })
		if !p.fired("Tickets") {
			t.Error("a rush at the end of the month is not found")
		}
	}
	for _, alert := range []string{"Tickets", "Together"} {
		t.Logf("%s fired %d times in %d months", alert, total[alert], months)
		if total[alert] > bound {
			t.Errorf("%s fired %d times in %d months, at most %d are allowed", alert, total[alert], months, bound)
		}
	}
}

// What few merges there are fail at 40%, under reads that are well: who is on call has to know within two minutes.
func TestAMaskedWriteIsPagedWithinTwoMinutes(t *testing.T) {
	const seeds = 30
	var delays []time.Duration
	for seed := range uint64(seeds) {
		w := newOdds(seed)
		d := detect.New(detect.Config{Rules: shipped(t)})
		p := &bench{t: t, d: d}
		fill := func(share float64) func(time.Duration, *detect.Inputs) {
			return func(b time.Duration, in *detect.Inputs) {
				w.requests(in, b, "merge", 0.5, share)
				for i := range in.Cells {
					for range in.Cells[i].Outcomes[signal.Failure] {
						in.Cells[i].Accounts.Add(signal.HashAccount(fmt.Sprint(w.r.IntN(40))))
					}
				}
				n := len(in.Cells)
				w.requests(in, b, "merge", 100, 0.001)
				in.Cells[n].Key.Access = signal.Read
			}
		}
		p.play(65*time.Minute, fill(0.005)).play(5*time.Minute, fill(0.4))
		delay := time.Hour
		if pages := p.pages(); len(pages) > 0 {
			delay = pages[0].At.Sub(t0) - 65*time.Minute
		}
		if delay < 0 {
			t.Errorf("seed %d: paged %s before anything was wrong", seed, -delay)
		}
		delays = append(delays, delay)
	}
	slices.Sort(delays)
	t.Logf("paged after %s (median), %s (eight of ten), %s (all)", delays[seeds/2], delays[seeds*8/10], delays[seeds-1])
	if delays[seeds/2] > 2*time.Minute || delays[seeds-1] > 5*time.Minute {
		t.Errorf("paged after %s (median), %s (all)", delays[seeds/2], delays[seeds-1])
	}
}

// quietMonth plays thirty days of tickets in which nothing is wrong: nights, weekends, areas that drift, and mailings.
func quietMonth(t *testing.T, seed uint64, rules string) (fired map[string]int, p *bench) {
	w, fired := newOdds(seed), map[string]int{}
	areas := []float64{0.2, 0.5, 1, 2, 3, 5, 8, 15} // accounts an hour at the height of the day
	wander := make([]float64, len(areas))
	mailing, about := time.Duration(0), 0
	p = newBench(t, rules, "")
	var in detect.Inputs
	for b := time.Duration(0); b < 30*24*time.Hour; b += signal.BucketSize {
		if b%(10*time.Minute) == 0 {
			for i := range wander {
				wander[i] = 0.985*wander[i] + math.Sqrt(1-0.985*0.985)*0.2*w.r.NormFloat64()
			}
			if w.r.Float64() < 2.0/(7*144) {
				mailing, about = b, w.r.IntN(len(areas))
			}
		}
		now := at(b)
		hour := float64(now.Hour()) + float64(now.Minute())/60
		season := 0.1 + 0.9*math.Pow(max(0, math.Sin((hour-5)/16*math.Pi)), 1.5)
		if d := now.Weekday(); d == time.Saturday || d == time.Sunday {
			season *= 0.3
		}
		for i, rate := range areas {
			rate *= season * math.Exp(wander[i])
			if i == about && mailing > 0 {
				rate *= 1 + 2*math.Exp(-float64(b-mailing)/float64(time.Hour))
			}
			w.tickets(&in, b, fmt.Sprint("area", i), rate, "")
		}
		if b%time.Hour == time.Hour-signal.BucketSize {
			p.n++
			in.Tick = detect.Tick{Number: p.n, From: at(p.b), To: at(b + signal.BucketSize)}
			p.add(p.d.Tick(in))
			p.b, in = b+signal.BucketSize, detect.Inputs{}
		}
	}
	for _, x := range p.Transitions {
		if x.Finding.State == incident.Firing {
			fired[x.Finding.Rule]++
			t.Log("seed", seed, x.At.Format("Monday 15:04"), x.Finding.Rule, x.Finding.Explain)
		}
	}
	return fired, p
}

// Names of services come with telemetry. Those that are gone must not keep their part of the budget, or each new one would get less.
func TestServicesThatAreGoneShareNoBudget(t *testing.T) {
	w := newOdds(1)
	d := detect.New(detect.Config{Rules: parseRules(t, fusing)})
	number := uint64(0)
	play := func(from, to time.Duration, service func(time.Duration) string) {
		for ; from < to; from += time.Minute {
			number++
			in := detect.Inputs{Tick: detect.Tick{Number: number, From: at(from), To: at(from + time.Minute)}}
			w.requests(&in, from, service(from), 20, 0.01)
			d.Tick(in)
		}
	}
	play(0, 30*time.Minute, func(b time.Duration) string { return fmt.Sprintf("canary-%d", b/time.Minute) })
	if n := d.Sharing(); n < 25 {
		t.Fatalf("%d services share the budget, want nearly all of 30", n)
	}
	const week = 7 * 24 * time.Hour
	play(30*time.Minute, week+2*time.Hour, func(time.Duration) string { return "steady" })
	if n := d.Sharing(); n != 1 {
		t.Errorf("%d services share the budget a week later, want the one that is left", n)
	}
}
