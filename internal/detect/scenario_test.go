package detect_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/deploy"
	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/scenario"
	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/rules"
)

func shipped(t testing.TB) *rule.Set {
	t.Helper()
	set, err := rule.LoadFS(rules.FS, ".")
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func demo(t testing.TB) (*scenario.Scenario, *catalogue.Catalogue) {
	t.Helper()
	s, err := scenario.Load(deploy.Demo, "2026-09-13")
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalogue.Parse("catalogue.yaml", s.Catalogue)
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// inputs turns a slice of the scenario into what a tick that closes its bucket sees.
func inputs(sl *scenario.Slice) (in detect.Inputs) {
	at := map[signal.Key]*signal.Cell{}
	for i := range sl.Requests {
		r := &sl.Requests[i]
		k := signal.Key{Path: r.Path, Attributes: r.Attributes}
		c := at[k]
		if c == nil {
			c = &signal.Cell{Bucket: signal.BucketOf(r.Time), Key: k}
			at[k] = c
		}
		c.Count(r)
	}
	for _, k := range slices.SortedFunc(maps.Keys(at), signal.Key.Compare) {
		in.Cells = append(in.Cells, *at[k])
	}
	in.Gauges, in.Tickets, in.Changes = sl.Gauges, sl.Tickets, sl.Changes
	return in
}

// run is what a detector concluded, and what it cost.
type run struct {
	detect.Outputs
	cpu   time.Duration
	ticks int
}

func (r *run) add(o detect.Outputs) {
	r.Transitions = append(r.Transitions, o.Transitions...)
	r.Events = append(r.Events, o.Events...)
	r.Warnings = append(r.Warnings, o.Warnings...)
}

func play(t testing.TB, s *scenario.Scenario, cat *catalogue.Catalogue, set *rule.Set, seed int64) *run {
	t.Helper()
	d := detect.New(detect.Config{Rules: set, Catalogue: cat})
	r := &run{}
	for sl := range s.Generate(seed) {
		r.ticks++
		in := inputs(sl)
		in.Tick = detect.Tick{Number: uint64(r.ticks), From: sl.From, To: sl.To, Clock: sl.To}
		start := time.Now()
		r.add(d.Tick(in))
		r.cpu += time.Since(start)
	}
	return r
}

// last gives the newest state of each incident, in order of opening.
func (r *run) last() (out []incident.Incident) {
	at := map[string]int{}
	for _, e := range r.Events {
		i, ok := at[e.Incident]
		if !ok {
			i = len(out)
			at[e.Incident] = i
			out = append(out, e.After)
		}
		out[i] = e.After
	}
	return out
}

// pages counts what a receiver of everything would be paged for: a first time, and each rise in severity.
func (r *run) pages() (out []incident.Event) {
	paged := map[string]incident.Severity{}
	for _, e := range r.Events {
		if s, ok := paged[e.Incident]; e.After.Page && (!ok || e.After.Severity > s) {
			paged[e.Incident] = e.After.Severity
			out = append(out, e)
		}
	}
	return out
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05") }

// TestTenSeeds is the product's first promise, on ten days that differ in all their noise.
func TestTenSeeds(t *testing.T) {
	s, cat := demo(t)
	set := shipped(t)
	impact := time.Date(2026, 9, 13, 8, 43, 0, 0, time.UTC)
	const job, primary = "bgjob-88213", "mysql/collab/primary"
	var mu sync.Mutex
	for seed := int64(1); seed <= 10; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			r := play(t, s, cat, set, seed)
			if os.Getenv("SHOW") == fmt.Sprint(seed) {
				mu.Lock()
				show(r)
				mu.Unlock()
			}
			i := slices.IndexFunc(r.Warnings, func(w incident.Warning) bool { return w.Resource == primary })
			if i < 0 || !r.Warnings[i].At.Before(impact) {
				t.Fatal("no warning about the primary before 08:43")
			}
			if w := r.Warnings[i]; len(w.Suspects) == 0 || w.Suspects[0].ID != job {
				t.Errorf("the warning suspects %v", w.Suspects)
			}
			var declared []incident.Incident
			for _, x := range r.last() {
				if !x.DeclaredAt.IsZero() {
					declared = append(declared, x)
				}
			}
			if len(declared) != 1 {
				t.Fatalf("%d incidents declared, want 1", len(declared))
			}
			x := declared[0]
			if x.DeclaredAt.After(impact.Add(2 * time.Minute)) {
				t.Errorf("declared at %s, want 08:45 at the latest", clock(x.DeclaredAt))
			}
			if len(x.Services) < 25 {
				t.Errorf("%d services: %v", len(x.Services), x.Services)
			}
			if x.State != incident.Resolved {
				t.Errorf("ends as %s", x.State)
			}
			if len(x.Suspects) == 0 || x.Suspects[0].ID != job {
				t.Errorf("first suspect at the end %+v", x.Suspects)
			}
			lowest := 1.0
			for _, e := range r.Events {
				if e.Incident == x.ID && !e.After.DeclaredAt.IsZero() {
					if len(e.After.Suspects) == 0 || e.After.Suspects[0].ID != job {
						t.Errorf("first suspect at %s: %+v", clock(e.At), e.After.Suspects)
						break
					}
					lowest = min(lowest, e.After.Suspects[0].Score)
				}
			}
			pages := r.pages()
			for _, p := range pages {
				if p.Incident != x.ID {
					t.Errorf("paged at %s for %s", clock(p.At), p.After.Title)
				}
			}
			if len(pages) != 1 {
				t.Errorf("%d pages, want 1", len(pages))
			}
			t.Logf("warned %s, declared %s %s, mitigated %s, resolved %s, %d services, job %.2f (lowest %.2f), %d events, other incidents %d, warnings %d, accounts ≥ %d, tickets %d, %s a tick",
				clock(r.Warnings[i].At), clock(x.DeclaredAt), x.Severity, clock(x.MitigatedAt), clock(x.ResolvedAt), len(x.Services), x.Suspects[0].Score, lowest,
				x.Sequence, len(r.last())-1, len(r.Warnings), x.Impact.AccountsAtLeast, x.Tickets, r.cpu/time.Duration(r.ticks))
		})
	}
}

func show(r *run) {
	for _, e := range r.Events {
		fmt.Println(clock(e.At), e.Incident, e.Sequence, e.Type, e.After.State, e.After.Severity, e.After.Page, len(e.After.Services), "|", e.After.Title, "|", e.Reason)
		if e.Type == incident.EventDeclared || e.Type == incident.EventResolved || e.Type == incident.EventSuspects {
			for _, s := range e.After.Suspects[:min(4, len(e.After.Suspects))] {
				fmt.Println("       ", s.Score, s.Kind, s.ID, s.Reasons, s.Against)
			}
			fmt.Printf("        %+v tickets %d scope %v paths %d labels %v\n", e.After.Impact, e.After.Tickets, e.After.Scope, len(e.After.Paths), e.After.Labels)
		}
	}
}

// stripped is what a run concluded without the number and clock of its ticks, which depend on how they were cut.
func stripped(t testing.TB, o detect.Outputs) []byte {
	t.Helper()
	for i := range o.Events {
		o.Events[i].Tick, o.Events[i].Clock = 0, time.Time{}
	}
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestCutsAndRestarts holds the detector to its word: neither how ticks are cut, nor in which order rows arrive, nor a restart
// from a snapshot anywhere changes anything.
func TestCutsAndRestarts(t *testing.T) {
	s, cat := demo(t)
	set := shipped(t)
	var day []*scenario.Slice
	for sl := range s.Generate(3) {
		if sl.From.Hour() >= 6 { // from the morning on: all that can differ lies there
			day = append(day, sl)
		}
	}
	var want run
	d := detect.New(detect.Config{Rules: set, Catalogue: cat})
	for i, sl := range day {
		in := inputs(sl)
		in.Tick = detect.Tick{Number: uint64(i + 1), From: sl.From, To: sl.To}
		want.add(d.Tick(in))
	}
	wantBytes := stripped(t, want.Outputs)
	wantState, err := d.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, 1))
			var got run
			d := detect.New(detect.Config{Rules: set, Catalogue: cat})
			from := day[0].From
			fed, largest := 0, 0
			for n := uint64(1); from.Before(day[len(day)-1].To); n++ {
				// Some ticks are one step, some many; rows arrive up to a minute before their tick, shuffled.
				steps := 1 + rnd.IntN(40)
				if rnd.IntN(3) == 0 {
					steps = 1
				}
				to := from
				var in detect.Inputs
				for range steps {
					to = to.Add(signal.BucketSize)
				}
				if end := day[len(day)-1].To; to.After(end) {
					to = end
				}
				for fed < len(day) && day[fed].From.Before(to.Add(time.Duration(rnd.IntN(60))*time.Second)) {
					more := inputs(day[fed])
					in.Cells = append(in.Cells, more.Cells...)
					in.Gauges = append(in.Gauges, more.Gauges...)
					in.Tickets = append(in.Tickets, more.Tickets...)
					in.Changes = append(in.Changes, more.Changes...)
					fed++
				}
				rnd.Shuffle(len(in.Cells), func(i, j int) { in.Cells[i], in.Cells[j] = in.Cells[j], in.Cells[i] })
				rnd.Shuffle(len(in.Gauges), func(i, j int) { in.Gauges[i], in.Gauges[j] = in.Gauges[j], in.Gauges[i] })
				rnd.Shuffle(len(in.Tickets), func(i, j int) { in.Tickets[i], in.Tickets[j] = in.Tickets[j], in.Tickets[i] })
				in.Tick = detect.Tick{Number: n, From: from, To: to}
				got.add(d.Tick(in))
				from = to
				if rnd.IntN(8) == 0 {
					snap, err := d.Snapshot()
					if err != nil {
						t.Fatal(err)
					}
					largest = max(largest, len(snap))
					d = detect.New(detect.Config{Rules: set, Catalogue: cat})
					if err := d.Restore(snap); err != nil {
						t.Fatal(err)
					}
					again, err := d.Snapshot()
					if err != nil {
						t.Fatal(err)
					}
					if !bytes.Equal(snap, again) {
						t.Fatalf("a restored detector gives another snapshot at %s", from)
					}
				}
			}
			if b := stripped(t, got.Outputs); !bytes.Equal(b, wantBytes) {
				t.Errorf("another result: %s", firstDifference(&want, &got))
			}
			state, err := d.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(state, wantState) {
				t.Errorf("another state at the end")
			}
			t.Logf("largest snapshot %d KiB", largest/1024)
		})
	}
}

func firstDifference(a, b *run) string {
	for i := range max(len(a.Events), len(b.Events)) {
		if i >= len(a.Events) || i >= len(b.Events) {
			return fmt.Sprintf("%d and %d events", len(a.Events), len(b.Events))
		}
		x, _ := json.Marshal(a.Events[i])
		y, _ := json.Marshal(b.Events[i])
		if !bytes.Equal(x, y) {
			n := 0
			for n < min(len(x), len(y)) && x[n] == y[n] {
				n++
			}
			n = max(0, n-80)
			return fmt.Sprintf("event %d:\n%.300s\n%.300s", i, x[n:], y[n:])
		}
	}
	return fmt.Sprintf("transitions or warnings (%d, %d; %d, %d)", len(a.Transitions), len(b.Transitions), len(a.Warnings), cmp.Or(len(b.Warnings)))
}
