package detect_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/detect/memory"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
)

// upgraded gives checkpoints of a version that nobody reads, and can be killed: from then on nothing is stored.
type upgraded struct {
	*memory.Timeline
	garbled, dead bool
}

var _ detect.Timeline = (*upgraded)(nil)

func (u *upgraded) Resume(ctx context.Context) (detect.Resume, error) {
	r, err := u.Timeline.Resume(ctx)
	if u.garbled && r.Checkpoint != nil {
		r.Checkpoint = []byte("of another version")
	}
	return r, err
}

// Recall gives less than lies behind what is open, as after hours.
func (u *upgraded) Recall(ctx context.Context, _ time.Duration) (detect.Resume, error) {
	return u.Timeline.Recall(ctx, time.Minute)
}

func (u *upgraded) Commit(ctx context.Context, t detect.Tick, o detect.Outputs) error {
	if u.dead {
		return errors.New("killed")
	}
	return u.Timeline.Commit(ctx, t, o)
}

// history is what people see: which incident came into which state when, and why a finding changed.
func history(tl *memory.Timeline) (out []string) {
	for _, e := range tl.EventsAfter(0) {
		switch e.Type {
		case incident.EventSuspected, incident.EventDeclared, incident.EventSeverity, incident.EventMitigated, incident.EventReopened, incident.EventResolved:
			out = append(out, fmt.Sprintf("%s %s %s", e.At.Format("15:04:05"), e.Incident, e.Type))
		default:
		}
	}
	for _, t := range tl.Transitions() {
		out = append(out, fmt.Sprintf("%s %s %s→%s", t.At.Format("15:04:05"), t.Finding.Rule, t.From, t.Finding.State))
	}
	return out
}

// sequences must rise by one in each incident: whoever reads the log drops what does not come after what he knows.
func sequences(t *testing.T, tl *memory.Timeline) {
	t.Helper()
	last := map[string]uint64{}
	for _, e := range tl.EventsAfter(0) {
		if e.Sequence != last[e.Incident]+1 {
			t.Errorf("event %d of %s (%s) comes after %d", e.Sequence, e.Incident, e.Type, last[e.Incident])
		}
		last[e.Incident] = e.Sequence
	}
}

// runs lets one detector after another work up to its minute, and tells how often a detector found the log to say otherwise than its replay.
func runs(t *testing.T, tl *memory.Timeline, turns []turn) int {
	t.Helper()
	fed := t0
	var said bytes.Buffer
	for i, x := range turns {
		u := &upgraded{Timeline: tl.Again(), garbled: x.garbled}
		_, stop := start(t, u, x.rules, func(c *detect.LoopConfig) { c.CheckpointEvery, c.Logger = 7, slog.New(slog.NewTextHandler(&said, nil)) })
		for m := fed; m.Before(x.until); m = m.Add(time.Minute) {
			failing(tl, m, m.Add(time.Minute))
			tl.SetProgress(m.Add(time.Minute), m.Add(time.Minute))
			time.Sleep(10 * time.Second) //nolint:forbidigo // in a bubble, which waits for nothing else
			synctest.Wait()
		}
		fed = x.until
		u.dead = x.killed
		if err := stop(); err != nil {
			t.Fatalf("turn %d: %v", i, err)
		}
	}
	return strings.Count(said.String(), "the log says otherwise")
}

type turn struct {
	rules           *rule.Set
	until           time.Time
	garbled, killed bool
}

const patient = `groups:
  - name: test
    rules:
      - {alert: WritesFailing, kind: failure_rate, match: {access: write}, above: 10%, for: 90s, window: 30s, keep_firing_for: 40s}
      - {alert: HighImpact, kind: high_impact, accounts: 1000, services: 1, recovered: 2m}
`

// An upgrade, a crash or both at any minute: what was open goes on under its id and is resolved when it is over, nothing
// is told twice, and no finding changes its mind because of it.
func TestWhatIsOpenGoesOnInTheNextVersion(t *testing.T) {
	set := parseRules(t, patient)
	whole := func(turns ...turn) (out []string) {
		synctest.Test(t, func(t *testing.T) {
			tl := memory.New()
			if n := runs(t, tl, turns); n > 0 && !turns[len(turns)-1].garbled {
				t.Errorf("a faithful replay was corrected %d times", n)
			}
			sequences(t, tl)
			out = history(tl)
		})
		return out
	}
	end := at(18 * time.Minute)
	want := whole(turn{rules: set, until: end})
	if n := len(want); n < 8 || !strings.Contains(strings.Join(want, "\n"), "resolved") {
		t.Fatalf("the log of one run:\n%s", strings.Join(want, "\n"))
	}
	for m := 2; m < 16; m++ {
		for _, how := range []turn{{garbled: true}, {killed: true}, {garbled: true, killed: true}} {
			first, second := turn{rules: set, until: at(time.Duration(m) * time.Minute), killed: how.killed}, turn{rules: set, until: end, garbled: how.garbled}
			got := whole(first, second)
			if !slices.Equal(got, want) {
				t.Errorf("minute %d, %+v:\n%s\nwant\n%s", m, how, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
}

// After kill -9 the next start has rules under which what is open was never abnormal. It is ended, not forgotten.
func TestOtherRulesAfterACrashEndWhatTheyDoNotKnow(t *testing.T) {
	strict, lax := parseRules(t, someRules), parseRules(t, strings.Replace(someRules, "above: 10%", "above: 90%", 1))
	lax.Revision = "lax"
	gone := parseRules(t, strings.Replace(someRules, "WritesFailing", "Renamed", 1))
	gone.Revision = "gone"
	for name, next := range map[string]*rule.Set{"lax": lax, "gone": gone} {
		for _, garbled := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				tl := memory.New()
				runs(t, tl, []turn{{rules: strict, until: at(5 * time.Minute), killed: true}, {rules: next, until: at(16 * time.Minute), garbled: garbled}})
				sequences(t, tl)
				last := map[string]incident.Event{}
				for _, e := range tl.EventsAfter(0) {
					last[e.Incident] = e
				}
				if len(last) != 1 {
					t.Errorf("%s, garbled %v: incidents %v", name, garbled, log(tl))
				}
				for id, e := range last {
					if e.After.State != incident.Resolved {
						t.Errorf("%s, garbled %v: %s is %s for ever:\n%s", name, garbled, id, e.After.State, strings.Join(log(tl), "\n"))
					}
				}
			})
		}
	}
}

// What the replay alone concludes is told to nobody, so it must not count as told.
func TestWhatOnlyAReplayConcludesIsConcludedAgain(t *testing.T) {
	strict, lax := parseRules(t, someRules), parseRules(t, strings.Replace(someRules, "above: 10%", "above: 90%", 1))
	lax.Revision = "lax"
	synctest.Test(t, func(t *testing.T) {
		tl := memory.New()
		runs(t, tl, []turn{{rules: lax, until: at(5 * time.Minute), killed: true}, {rules: strict, until: at(7 * time.Minute)}})
		sequences(t, tl)
		got := strings.Join(log(tl), "\n")
		if !strings.Contains(got, " 1 suspected ") || !strings.Contains(got, " declared declared ") {
			t.Errorf("the log with the stricter rule:\n%s", got)
		}
	})
}
