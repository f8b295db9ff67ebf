package detect_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/detect/memory"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var t0 = time.Date(2026, 9, 13, 8, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return t0.Add(d) }

func parseRules(t testing.TB, text string) *rule.Set {
	t.Helper()
	f, err := rule.Parse("rules.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &rule.Set{Groups: f.Groups, Revision: "test"}
}

const someRules = `groups:
  - name: test
    rules:
      - {alert: WritesFailing, kind: failure_rate, match: {access: write}, above: 10%, for: 20s}
      - {alert: HighImpact, kind: high_impact, accounts: 1000, services: 1, recovered: 2m}
`

// traffic is one bucket of one path.
func traffic(from time.Time, service string, ok, failed uint64) signal.Cell {
	c := signal.Cell{Bucket: from, Key: signal.Key{Path: signal.Path{Service: service, Operation: "op", Access: signal.Write}}}
	c.Outcomes[signal.Success], c.Outcomes[signal.Failure] = ok, failed
	return c
}

// failing feeds ten minutes of which the middle fails.
func failing(tl *memory.Timeline, from, to time.Time) {
	for b := from; b.Before(to); b = b.Add(signal.BucketSize) {
		bad := uint64(0)
		if m := b.Sub(t0); m >= 3*time.Minute && m < 6*time.Minute {
			bad = 20
		}
		tl.AddCells([]signal.Cell{traffic(b, "shop", 40-bad, bad)})
	}
}

type desk struct {
	mu      sync.Mutex
	pending []incident.Command
	done    []string
}

func (d *desk) Pending(int) []incident.Command {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pending
}

func (d *desk) Done(cs []incident.Command) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range cs {
		d.done = append(d.done, c.ID)
	}
	d.pending = nil
}

func (d *desk) give(c incident.Command) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending = append(d.pending, c)
}

// flaky fails some calls, before or after they have had their effect.
type flaky struct {
	detect.Timeline
	mu             sync.Mutex
	before, after  map[string]int
	failed, passed int
}

var errBroken = errors.New("the database is away")

func (f *flaky) hit(m map[string]int, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m[name] > 0 {
		m[name]--
		f.failed++
		return fmt.Errorf("%s: %w", name, errBroken)
	}
	f.passed++
	return nil
}

func (f *flaky) Claim(ctx context.Context, t detect.Tick) (detect.Inputs, error) {
	if err := f.hit(f.before, "claim"); err != nil {
		return detect.Inputs{}, err
	}
	in, err := f.Timeline.Claim(ctx, t)
	return in, errors.Join(err, f.hit(f.after, "claim"))
}

func (f *flaky) Commit(ctx context.Context, t detect.Tick, o detect.Outputs) error {
	if err := f.hit(f.before, "commit"); err != nil {
		return err
	}
	return errors.Join(f.Timeline.Commit(ctx, t, o), f.hit(f.after, "commit"))
}

var _ detect.Timeline = (*flaky)(nil)

// start runs a loop until the returned function ends it.
func start(t *testing.T, tl detect.Timeline, set *rule.Set, edit func(*detect.LoopConfig)) (*detect.Loop, func() error) {
	t.Helper()
	cfg := detect.LoopConfig{Detector: detect.Config{Rules: set}, Owner: "test"}
	if edit != nil {
		edit(&cfg)
	}
	l := detect.NewLoop(tl, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	return l, func() error { cancel(); return <-done }
}

// log is an incident log without what depends on how ticks were cut.
func log(tl *memory.Timeline) (out []string) {
	for _, e := range tl.EventsAfter(0) {
		out = append(out, fmt.Sprintf("%s %s %d %s %s %s", e.At.Format("15:04:05"), e.Incident, e.Sequence, e.Type, e.After.State, e.Reason))
	}
	return out
}

func TestLoopJudgesWhatIsCompleteAndSurvivesRestartsAndErrors(t *testing.T) {
	set := parseRules(t, someRules)
	want := func() []string {
		var out []string
		synctest.Test(t, func(t *testing.T) {
			tl := memory.New()
			failing(tl, t0, at(20*time.Minute))
			tl.SetProgress(at(20*time.Minute), at(20*time.Minute))
			l, stop := start(t, tl, set, nil)
			time.Sleep(time.Minute)
			synctest.Wait()
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if h := l.Health(); !h.To.Equal(at(20*time.Minute-10*time.Second)) || h.Tick == 0 || !h.BlockedSince.IsZero() {
				t.Errorf("health %+v", h)
			}
			out = log(tl)
		})
		return out
	}()
	if s := strings.Join(want, "\n"); strings.Count(s, " declared declared") != 1 || !strings.Contains(s, " resolved resolved") {
		t.Fatalf("the log of one run:\n%s", s)
	}
	synctest.Test(t, func(t *testing.T) {
		// The same past comes minute by minute, the database fails now and then, and every fifth minute the detector is restarted.
		tl := memory.New()
		f := &flaky{Timeline: tl, before: map[string]int{}, after: map[string]int{}}
		var stop func() error
		for m := range 20 {
			failing(tl, at(time.Duration(m)*time.Minute), at(time.Duration(m+1)*time.Minute))
			f.mu.Lock()
			f.before["claim"], f.after["claim"], f.before["commit"], f.after["commit"] = m%2, m/2%2, min(m%5, 1), m/4%2
			f.mu.Unlock()
			tl.SetProgress(at(time.Duration(m+1)*time.Minute), at(time.Duration(m+1)*time.Minute))
			if m%5 == 0 {
				if stop != nil {
					f.mu.Lock()
					f.before["commit"] = m / 5 % 2 // without its last checkpoint there is something to replay
					f.mu.Unlock()
					if err := stop(); err != nil {
						t.Fatal(err)
					}
				}
				f.Timeline = tl.Again()
				_, stop = start(t, f, set, func(c *detect.LoopConfig) { c.CheckpointEvery = 3 })
			}
			time.Sleep(time.Duration(m+20) * time.Second)
			synctest.Wait()
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, log(tl)); d != "" {
			t.Errorf("with restarts and errors (−once +so):\n%s", d)
		}
		if f.failed == 0 {
			t.Error("nothing failed")
		}
	})
}

// Where a tick has many rows a crash must not have many ticks to repeat.
func TestLoopSavesItsStateByRowsToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tl := memory.New()
		_, stop := start(t, tl, parseRules(t, someRules), func(c *detect.LoopConfig) { c.CheckpointEvery, c.CheckpointRows = 1000, 20 })
		for m := range 10 {
			failing(tl, at(time.Duration(m)*time.Minute), at(time.Duration(m+1)*time.Minute))
			tl.SetProgress(at(time.Duration(m+1)*time.Minute), at(time.Duration(m+1)*time.Minute))
			time.Sleep(time.Minute)
			synctest.Wait()
			r, err := tl.Resume(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			rows := 0
			for i := range r.Ticks {
				rows += r.Ticks[i].Rows()
			}
			if rows >= 20 {
				t.Errorf("minute %d: %d rows in %d ticks after the checkpoint of tick %d", m, rows, len(r.Ticks), r.CheckpointTick)
			}
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// A restart with stricter rules must not conclude from ticks that are done what then stands in no log: nobody would be
// paged for it.
func TestOtherRulesConcludeNothingInSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		strict := strings.Replace(quick, "accounts: 1000, services: 1", "accounts: 1000, services: 1, for: 10s", 1)
		lax := strings.Replace(strict, "above: 10%", "above: 90%", 1)
		tl := memory.New()
		failing(tl, t0, at(5*time.Minute))
		tl.SetProgress(at(5*time.Minute), at(5*time.Minute))
		run := func(rules string) {
			tl = tl.Again()
			_, stop := start(t, tl, parseRules(t, rules), nil)
			time.Sleep(time.Minute)
			synctest.Wait()
			if err := stop(); err != nil {
				t.Fatal(err)
			}
		}
		run(lax)
		if got := log(tl); len(got) > 0 {
			t.Fatalf("the lax rule concludes %v", got)
		}
		failing(tl, at(5*time.Minute), at(10*time.Minute))
		tl.SetProgress(at(10*time.Minute), at(10*time.Minute))
		run(strict)
		got := strings.Join(log(tl), "\n")
		if !strings.Contains(got, " 1 suspected ") || !strings.Contains(got, " declared declared ") {
			t.Errorf("the log with the stricter rule:\n%s", got)
		}
	})
}

func TestLoopReadsABacklogFromItsOldestRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tl := memory.New()
		failing(tl, t0, at(20*time.Minute))
		for b := at(20 * time.Minute); b.Before(at(72 * time.Hour)); b = b.Add(10 * time.Minute) {
			tl.AddCells([]signal.Cell{traffic(b, "shop", 40, 0)})
		}
		tl.SetProgress(at(72*time.Hour), at(72*time.Hour))
		_, stop := start(t, tl, parseRules(t, someRules), nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		s := strings.Join(log(tl), "\n")
		if strings.Count(s, " declared declared") != 1 || !strings.Contains(s, "08:03:") {
			t.Errorf("the incident of three days ago:\n%s", s)
		}
		if h := tl.Head(); h.To.Sub(h.From) > 10*time.Minute {
			t.Errorf("a tick from %s to %s while catching up", h.From, h.To)
		}
	})
}

func TestLoopCarriesCommandsWhileNothingMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tl := memory.New()
		failing(tl, t0, at(5*time.Minute))
		tl.SetProgress(at(5*time.Minute), at(5*time.Minute))
		d := &desk{}
		woken := 0
		_, stop := start(t, tl, parseRules(t, someRules), func(c *detect.LoopConfig) { c.Commands, c.Notify = d, func() { woken++ } })
		time.Sleep(10 * time.Second)
		events := tl.EventsAfter(0)
		if len(events) == 0 {
			t.Fatal("no incident")
		}
		before := woken
		id := events[0].Incident
		d.give(incident.Command{ID: "a1", Type: incident.CommandAcknowledge, Incident: id, By: "ines"})
		time.Sleep(10 * time.Second)
		d.give(incident.Command{ID: "a1", Type: incident.CommandAcknowledge, Incident: id, By: "ines"}) // delivered again
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		var acks []incident.Event
		for _, e := range tl.EventsAfter(0) {
			if e.Type == incident.EventAcknowledged {
				acks = append(acks, e)
			}
		}
		if len(acks) != 1 || acks[0].By != "ines" || acks[0].After.State != incident.Acknowledged {
			t.Errorf("acknowledged %d times: %+v", len(acks), acks)
		}
		if len(d.done) != 2 || woken == before {
			t.Errorf("done %v, woken %d after %d", d.done, woken, before)
		}
	})
}

func TestLoopEndsWhenSuperseded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tl := memory.New()
		failing(tl, t0, at(time.Minute))
		tl.SetProgress(at(time.Minute), at(time.Minute))
		l, _ := start(t, tl, parseRules(t, someRules), nil)
		time.Sleep(10 * time.Second)
		other := tl.Again()
		if _, err := other.Lead(t.Context(), "other"); err != nil {
			t.Fatal(err)
		}
		failing(tl, at(time.Minute), at(2*time.Minute))
		tl.SetProgress(at(2*time.Minute), at(2*time.Minute))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if h := l.Health(); h.Leading || !strings.Contains(h.LastError, detect.ErrSuperseded.Error()) {
			t.Errorf("health %+v", h)
		}
	})
}

func TestLoopWaitsForALaggingStreamButNotForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tl := memory.New()
		failing(tl, t0, at(20*time.Minute))
		tl.SetProgress(at(time.Minute), at(time.Minute))
		_, stop := start(t, tl, parseRules(t, someRules), nil)
		time.Sleep(5 * time.Second)
		// Tickets stand still; requests and the clock go on.
		step := func(to, clock time.Duration) detect.Tick {
			for _, s := range signal.Streams {
				if s != signal.Tickets {
					tl.SetWatermark(s, at(to))
				}
			}
			tl.SetProgress(time.Time{}, at(clock))
			time.Sleep(5 * time.Second)
			synctest.Wait()
			return tl.Head()
		}
		if h := step(2*time.Minute, 2*time.Minute); h.To.After(at(time.Minute)) {
			t.Errorf("judged up to %s without the tickets, after one minute", h.To)
		}
		if h := step(4*time.Minute, 4*time.Minute); !h.To.Equal(at(4*time.Minute-10*time.Second)) || len(h.Partial) != 1 || h.Partial[0] != signal.Tickets {
			t.Errorf("after three minutes judged up to %s, partial %v", h.To, h.Partial)
		}
		// Back again.
		tl.SetProgress(at(5*time.Minute), at(5*time.Minute))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if h := tl.Head(); !h.To.Equal(at(5*time.Minute-10*time.Second)) || len(h.Partial) != 0 {
			t.Errorf("judged up to %s, partial %v", h.To, h.Partial)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLoopWaitsForABacklogThatShrinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tl := memory.New()
		failing(tl, t0, at(20*time.Minute))
		now := at(24 * time.Hour)
		for _, s := range signal.Streams {
			if s != signal.Requests {
				tl.SetWatermark(s, now)
			}
		}
		tl.SetWatermark(signal.Requests, t0) // before it begins: requests that nobody has read yet are another matter
		tl.SetProgress(time.Time{}, now)
		_, stop := start(t, tl, parseRules(t, someRules), nil)
		for m := 1; m <= 20; m++ {
			tl.SetWatermark(signal.Requests, at(time.Duration(m)*time.Minute))
			tl.SetProgress(time.Time{}, now.Add(time.Duration(m)*20*time.Second))
			time.Sleep(time.Second)
		}
		synctest.Wait()
		h := tl.Head()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if !h.To.Equal(at(20*time.Minute-10*time.Second)) || len(h.Partial) > 0 {
			t.Errorf("judged up to %s with %v missing, while requests were catching up", h.To, h.Partial)
		}
	})
}
