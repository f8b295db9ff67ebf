package detect_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/detect/memory"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
)

// ruleFiles is a set with a revision of its own.
func ruleFiles(t testing.TB, text string) *rule.Set {
	t.Helper()
	set, err := rule.FromFiles(map[string]string{"rules.yaml": text})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// act is what happens at a minute of a run: other rules, a restart, a crash.
type act struct {
	at      time.Duration
	reload  *rule.Set
	cat     *catalogue.Catalogue
	restart bool
	killed  bool
	garbled bool // with the restart, the program is another version
	silent  int  // minutes for which no detector runs before the restart
}

// enact runs detectors over 18 minutes in which the middle fails, and does the acts.
func enact(t *testing.T, set *rule.Set, acts []act) *memory.Timeline {
	t.Helper()
	tl := memory.New()
	cfg := detect.Config{Rules: set}
	var u *upgraded
	var l *detect.Loop
	var stop func() error
	begin := func(garbled bool) {
		u = &upgraded{Timeline: tl.Again(), garbled: garbled}
		l, stop = start(t, u, cfg.Rules, func(c *detect.LoopConfig) { c.CheckpointEvery, c.Detector = 7, cfg })
	}
	begin(false)
	down := 0
	var after act
	for m := range 18 {
		now := time.Duration(m) * time.Minute
		if stop == nil {
			if down--; down < 0 {
				begin(after.garbled)
			}
		}
		for _, a := range acts {
			if a.at/time.Minute != time.Duration(m) {
				continue
			}
			if a.cat != nil {
				cfg.Catalogue = a.cat
			}
			if a.reload != nil {
				cfg.Rules = a.reload
			}
			if !a.restart {
				l.Reload(cfg)
				continue
			}
			u.dead = a.killed
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if stop = nil; a.silent == 0 {
				begin(a.garbled)
			}
			down, after = a.silent, a
		}
		failing(tl, at(now), at(now+time.Minute))
		tl.SetProgress(at(now+time.Minute), at(now+time.Minute))
		time.Sleep(10 * time.Second) //nolint:forbidigo // in a bubble, which waits for nothing else
		synctest.Wait()
	}
	if stop == nil {
		begin(after.garbled)
	}
	time.Sleep(time.Minute) //nolint:forbidigo // in a bubble, which waits for nothing else
	synctest.Wait()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	sequences(t, tl)
	return tl
}

func played(t *testing.T, set *rule.Set, acts ...act) (out []string) {
	synctest.Test(t, func(t *testing.T) { out = history(enact(t, set, acts)) })
	return out
}

const retold = `groups:
  - name: other
    rules:
      - {alert: ReadsSlow, kind: latency, slower_than: 2s, above: 20%, min_requests: 20}
  - name: renamed
    rules:
      - {alert: HighImpact, kind: high_impact, accounts: 1000, services: 1, recovered: 2m, annotations: {summary: said otherwise}}
      - {alert: WritesFailing, kind: failure_rate, match: {access: write}, above: 10%, for: 90s, window: 30s, keep_firing_for: 40s, labels: {team: web}}
`

// alertmanager#4347, prometheus PR#19166, VictoriaMetrics#6030: restart, crash, reload, another version, another leader and ten
// minutes without any detector, at every minute of a finding's life, most of all while it is pending: no transition and no
// event is lost, none is new.
func TestNothingIsLostOrNewWhateverHappens(t *testing.T) {
	set, other := ruleFiles(t, patient), ruleFiles(t, retold)
	want := played(t, set)
	if s := strings.Join(want, "\n"); strings.Count(s, "WritesFailing") != 3 || !strings.Contains(s, "resolved") {
		t.Fatalf("one run:\n%s", s)
	}
	for m := 1; m < 17; m++ {
		now := time.Duration(m) * time.Minute
		for name, acts := range map[string][]act{
			"reload":                   {{at: now, reload: other}},
			"reload of the same":       {{at: now, reload: set}},
			"there and back":           {{at: now, reload: other}, {at: now + time.Minute, reload: set}},
			"restart":                  {{at: now, restart: true}},
			"kill":                     {{at: now, restart: true, killed: true}},
			"kill with other rules":    {{at: now, restart: true, killed: true, reload: other}},
			"kill after a reload":      {{at: now, reload: other}, {at: now + time.Minute, restart: true, killed: true}},
			"upgrade":                  {{at: now, restart: true, garbled: true}},
			"kill and upgrade":         {{at: now, restart: true, garbled: true, killed: true}},
			"ten minutes without":      {{at: now, restart: true, silent: 10}},
			"ten minutes after a kill": {{at: now, restart: true, killed: true, silent: 10}},
		} {
			if m > 7 && strings.HasPrefix(name, "ten") {
				continue
			}
			if got := played(t, set, acts...); !slices.Equal(got, want) {
				t.Errorf("%s at minute %d (−want +got):\n%s", name, m, cmp.Diff(want, got))
			}
		}
	}
}

// A rule that is gone, or judges otherwise, ends what it has found, and the incident is resolved in time.
func TestWhatARuleFoundEndsWithIt(t *testing.T) {
	set := ruleFiles(t, patient)
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"removed": {strings.Replace(patient, "WritesFailing", "Other", 1), []string{
			"08:04:40 WritesFailing pending→firing", "08:05:00 WritesFailing firing→inactive", "08:05:00 Other inactive→pending", "08:06:30 Other pending→inactive",
		}},
		"laxer": {strings.Replace(patient, "above: 10%", "above: 90%", 1), []string{"08:04:40 WritesFailing pending→firing", "08:05:00 WritesFailing firing→inactive"}},
		"stricter": {strings.Replace(patient, "above: 10%", "above: 9%", 1), []string{
			"08:04:40 WritesFailing pending→firing", "08:05:00 WritesFailing firing→inactive", "08:05:00 WritesFailing inactive→pending", "08:06:30 WritesFailing pending→inactive",
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			tl := enact(t, set, []act{{at: 5 * time.Minute, reload: ruleFiles(t, c.text)}})
			var got, why []string
			for _, x := range tl.Transitions() {
				if x.Finding.Kind != "high_impact" && x.At.After(at(4*time.Minute)) {
					got = append(got, fmt.Sprintf("%s %s %s→%s", x.At.Format("15:04:05"), x.Finding.Rule, x.From, x.Finding.State))
				}
				if strings.HasPrefix(x.Finding.Explain, "its rule") {
					why = append(why, x.Finding.Explain)
				}
			}
			if len(why) != 1 {
				t.Errorf("%s: reasons %v", name, why)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s (−want +got):\n%s", name, d)
			}
			last := map[string]incident.Event{}
			for _, e := range tl.EventsAfter(0) {
				last[e.Incident] = e
			}
			for id, e := range last {
				if e.After.State != incident.Resolved {
					t.Errorf("%s: %s is %s:\n%s", name, id, e.After.State, strings.Join(log(tl), "\n"))
				}
			}
			if len(last) != 1 {
				t.Errorf("%s: %d incidents", name, len(last))
			}
		})
	}
}

// A live run with reloads, restarts and crashes, replayed from what is stored: the same findings and events, byte for byte.
func TestAReplayOfReloadsIsTheSame(t *testing.T) {
	set := ruleFiles(t, patient)
	lax := ruleFiles(t, strings.Replace(patient, "above: 10%", "above: 60%", 1))
	cat, err := catalogue.Parse("catalogue.yaml", []byte("services: [{name: shop, area: checkout, owner: web}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		tl := enact(t, set, []act{
			{at: 2 * time.Minute, restart: true, killed: true}, {at: 4 * time.Minute, reload: ruleFiles(t, retold)}, {at: 5 * time.Minute, restart: true, killed: true},
			{at: 6 * time.Minute, cat: cat}, {at: 7 * time.Minute, restart: true}, {at: 8 * time.Minute, reload: lax}, {at: 9 * time.Minute, restart: true, killed: true, reload: set},
		})
		r, err := tl.Recall(t.Context(), 24*time.Hour)
		if err != nil || r.CheckpointTick != 0 {
			t.Fatal(r.CheckpointTick, err)
		}
		d := detect.New(detect.Config{Rules: set})
		var transitions []incident.Transition
		var events []incident.Event
		revisions := map[string]bool{}
		for _, in := range r.Ticks {
			revisions[in.Tick.Rules+in.Tick.Catalogue] = true
			next, ok, err := d.Configured(context.Background(), tl, &in.Tick, detect.Config{Rules: set})
			if err != nil || !ok {
				t.Fatalf("tick %d: %v %v", in.Tick.Number, ok, err)
			}
			d = next
			out := d.Tick(in)
			transitions, events = append(transitions, out.Transitions...), append(events, out.Events...)
		}
		if len(revisions) != 5 {
			t.Errorf("%d configurations, want 5", len(revisions))
		}
		if d := cmp.Diff(tl.Transitions(), transitions); d != "" {
			t.Errorf("transitions (−live +replayed):\n%s", d)
		}
		if d := cmp.Diff(tl.EventsAfter(0), events); d != "" {
			t.Errorf("events (−live +replayed):\n%s", d)
		}
	})
}
