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
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/detect/memory"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const asking = `groups:
  - name: asked
    interval: 1m
    query_offset: 30s
    rules:
      - alert: Stuck
        kind: sql
        query: "SELECT service, value FROM t WHERE time >= {from:DateTime64(3)} AND time < {to:DateTime64(3)}"
        window: 5m
        timeout: 17s
  - name: test
    rules:
      - {alert: WritesFailing, kind: failure_rate, match: {access: write}, above: 10%}
`

// oracle answers questions by a function of when they are about.
type oracle struct {
	mu    sync.Mutex
	asked []detect.Question
	reply func(ctx context.Context, q detect.Question) ([]detect.AnswerRow, error)
}

func (o *oracle) Query(ctx context.Context, q detect.Question) ([]detect.AnswerRow, error) {
	o.mu.Lock()
	o.asked = append(o.asked, q)
	o.mu.Unlock()
	return o.reply(ctx, q)
}

func stuck(services ...string) (out []detect.AnswerRow) {
	for i, s := range services {
		out = append(out, detect.AnswerRow{Labels: map[string]string{"service": s}, Value: detect.Number(i + 1)})
	}
	return out
}

// minutes lets event time go on with the clock for a while.
func minutes(tl *memory.Timeline, from, n int) {
	for s := from * 6; s < (from+n)*6; s++ {
		b := at(time.Duration(s) * signal.BucketSize)
		tl.AddCells([]signal.Cell{traffic(b, "shop", 40, 0)})
		tl.SetProgress(b.Add(2*signal.BucketSize), b.Add(2*signal.BucketSize))
		time.Sleep(signal.BucketSize)
	}
	synctest.Wait()
}

// states are the changes of one rule's findings.
func states(tl *memory.Timeline, alert string) (out []string) {
	for _, t := range tl.Transitions() {
		if t.Finding.Rule == alert {
			out = append(out, fmt.Sprintf("%s %s %s", t.At.Format("15:04:05"), t.Finding.Key.Service, t.Finding.State))
		}
	}
	return out
}

// counts reads a counter by its only label.
func counts(t *testing.T, reg *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				out[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	return out
}

func TestAnswersCountFromTheTickThatCarriesThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tl := memory.New()
		o := &oracle{reply: func(_ context.Context, q detect.Question) ([]detect.AnswerRow, error) {
			time.Sleep(3 * time.Second)
			if q.At.Before(at(3 * time.Minute)) {
				return stuck("shop"), nil
			}
			return nil, nil
		}}
		_, stop := start(t, tl, parseRules(t, asking), func(c *detect.LoopConfig) { c.Querier = o })
		minutes(tl, 0, 6)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		for _, q := range o.asked {
			if q.To.Sub(q.From) != 5*time.Minute || q.At.Sub(q.To) != 30*time.Second || q.At.Unix()%60 != 0 || q.Timeout != 17*time.Second {
				t.Errorf("asked %+v", q)
			}
		}
		if n := len(o.asked); n < 6 || n > 7 {
			t.Errorf("asked %d times in 6 minutes", n)
		}
		want := []string{"08:00:20 shop firing", "08:03:10 shop inactive"}
		if diff := cmp.Diff(want, states(tl, "Stuck")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// What answers wait for, nothing else waits for: a query that never returns leaves ticks and other rules alone, is cut off, and makes
// what was found unknown. It is asked again.
func TestSlowQueriesHoldNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tl := memory.New()
		o := &oracle{reply: func(ctx context.Context, q detect.Question) ([]detect.AnswerRow, error) {
			if m := q.At.Sub(t0); m >= 2*time.Minute && m < 4*time.Minute {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return stuck("shop"), nil
		}}
		reg := prometheus.NewRegistry()
		l, stop := start(t, tl, parseRules(t, asking), func(c *detect.LoopConfig) { c.Querier, c.Metrics = o, detect.NewMetrics(reg) })
		minutes(tl, 0, 2)
		for s := 12; s < 36; s++ {
			b := at(time.Duration(s) * signal.BucketSize)
			tl.AddCells([]signal.Cell{traffic(b, "shop", 20, 20)})
			tl.SetProgress(b.Add(2*signal.BucketSize), b.Add(2*signal.BucketSize))
			time.Sleep(signal.BucketSize)
			synctest.Wait()
			if h := l.Health(); !h.To.Equal(b.Add(signal.BucketSize)) {
				t.Fatalf("at %s the detector is at %s", b, h.To)
			}
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if s := states(tl, "WritesFailing"); len(s) != 1 || s[0] != "08:02:30 shop firing" {
			t.Errorf("the other rule: %v", s)
		}
		want := []string{"08:00:20 shop firing", "08:02:20 shop unknown", "08:04:10 shop firing"}
		if diff := cmp.Diff(want, states(tl, "Stuck")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		explained := ""
		for _, x := range tl.Transitions() {
			if x.Finding.State.String() == "unknown" {
				explained = x.Finding.Explain
			}
		}
		if want := "Stuck: its query failed: no answer within 17s"; explained != want {
			t.Errorf("explained by %q, want %q", explained, want)
		}
		if got := counts(t, reg, "tocsin_detect_queries_total"); got["answered"] != 5 || got["timeout"] != 2 || got["failed"] != 0 {
			t.Errorf("metrics: %v", got)
		}
	})
}

// taped keeps what detectors were given.
type taped struct {
	detect.Timeline
	tape *[]detect.Inputs
}

func (f taped) Claim(ctx context.Context, t detect.Tick) (detect.Inputs, error) {
	in, err := f.Timeline.Claim(ctx, t)
	if err == nil {
		*f.tape = append(*f.tape, in)
	}
	return in, err
}

// Ticks carry answers, so whoever evaluates them again comes to the same, with restarts between, though the database would answer
// otherwise now; and a restarted detector does not ask again what a tick carries.
func TestRestartsAndReplaysTakeAnswersFromTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tl := memory.New()
		var tape []detect.Inputs
		n := 0
		o := &oracle{reply: func(_ context.Context, q detect.Question) ([]detect.AnswerRow, error) {
			if n++; q.At.Sub(t0)%(2*time.Minute) == 0 {
				return stuck("shop", fmt.Sprintf("s%d", n)), nil // never the same twice
			}
			return nil, errors.New("away")
		}}
		edit := func(c *detect.LoopConfig) { c.Querier, c.CheckpointEvery = o, 7 }
		for m := range 12 {
			_, end := start(t, taped{tl, &tape}, parseRules(t, asking), edit)
			minutes(tl, m, 1)
			if err := end(); err != nil {
				t.Fatal(err)
			}
			tl = tl.Again()
		}
		live := states(tl, "Stuck")
		if len(live) < 10 || len(o.asked) > 2*12 {
			t.Fatalf("asked %d times: %v", len(o.asked), live)
		}
		d := detect.New(detect.Config{Rules: parseRules(t, asking)})
		again := memory.New()
		for _, in := range tape {
			out := d.Tick(in)
			if err := again.Commit(t.Context(), in.Tick, out); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(tl.Transitions(), again.Transitions()); diff != "" {
			t.Errorf("(-live +replayed):\n%s", diff)
		}
	})
}

// An answer to what a rule asked before it was changed is none, and a changed query begins anew.
func TestReloadedQueriesAreAskedAnew(t *testing.T) {
	before := parseRules(t, asking)
	after := parseRules(t, strings.Replace(asking, "SELECT service, value", "SELECT area AS service, value", 1))
	after.Revision = "after"
	d := detect.New(detect.Config{Rules: before})
	step := func(n int, answers ...detect.Answer) detect.Outputs {
		return d.Tick(detect.Inputs{Tick: detect.Tick{Number: uint64(n), From: at(time.Duration(n-1) * signal.BucketSize), To: at(time.Duration(n) * signal.BucketSize), Answers: answers}})
	}
	q, _ := detect.QuestionAt(&before.Groups[0], &before.Groups[0].Rules[0], t0)
	old, _ := q.Answered(stuck("shop"), nil)
	if out := step(1, old); len(out.Transitions) != 1 {
		t.Fatalf("%+v", out.Transitions)
	}
	var err error
	if d, err = d.Reload(detect.Config{Rules: after}); err != nil {
		t.Fatal(err)
	}
	old.At = old.At.Add(time.Minute)
	out := step(2, old)
	if len(out.Transitions) != 1 || out.Transitions[0].Finding.Explain != "its rule judges otherwise now" {
		t.Errorf("after the reload: %+v", out.Transitions)
	}
}

// A query that was asked while a part of the rows was missing finds too little for that alone, and what it no longer finds may be
// there: neither is a finding, nor the end of one, even where the rows have come before the answer is judged.
func TestAnswersOfPartialDataAreNoGoodNewsAndNoBad(t *testing.T) {
	rules := parseRules(t, `groups:
  - name: asked
    interval: 10s
    rules:
      - {alert: Few, kind: sql, below: 10, no_data: zero, query: "SELECT service, value FROM t WHERE time >= {from:DateTime64(3)} AND time < {to:DateTime64(3)}"}
      - {alert: Many, kind: sql, above: 10, no_data: ok, query: "SELECT service, value FROM t WHERE time >= {from:DateTime64(3)} AND time < {to:DateTime64(3)}"}
      - {alert: Any, kind: sql, query: "SELECT service, value FROM t WHERE time >= {from:DateTime64(3)} AND time < {to:DateTime64(3)}"}
`)
	for _, c := range []struct {
		name           string
		askedOf, ticks []signal.Stream
		few, gone      string // of what is low, and of what was found before
	}{
		{"whole", nil, nil, "firing", "inactive"},
		{"missing, and still is", []signal.Stream{signal.Requests}, []signal.Stream{signal.Requests}, "", "unknown"},
		{"missing when it was asked", []signal.Stream{signal.Requests}, nil, "", "unknown"},
		{"missing when it is judged", nil, []signal.Stream{signal.Requests}, "", "unknown"},
	} {
		d := detect.New(detect.Config{Rules: rules})
		state := map[string]string{}
		step := func(n int, partial []signal.Stream, rows ...detect.AnswerRow) {
			to := at(time.Duration(n) * signal.BucketSize)
			in := detect.Inputs{Tick: detect.Tick{Number: uint64(n), From: to.Add(-signal.BucketSize), To: to, Partial: partial}}
			for i := range rules.Groups[0].Rules {
				if q, _ := detect.QuestionAt(&rules.Groups[0], &rules.Groups[0].Rules[i], to.Add(-signal.BucketSize)); len(rows) > 0 {
					if len(c.askedOf) > 0 && n == 3 {
						q.Partial = c.askedOf[0]
					}
					a, _ := q.Answered(rows, nil)
					in.Tick.Answers = append(in.Tick.Answers, a)
				}
			}
			for _, x := range d.Tick(in).Transitions {
				state[x.Finding.Rule+" "+x.Finding.Key.Service] = x.Finding.State.String()
			}
		}
		row := func(s string, v float64) detect.AnswerRow {
			return detect.AnswerRow{Labels: map[string]string{"service": s}, Value: detect.Number(v)}
		}
		step(1, nil, row("shop", 20), row("chat", 20))
		step(2, nil, row("shop", 20), row("chat", 20))
		step(3, c.ticks, row("shop", 4))
		want := map[string]string{"Many shop": c.gone, "Many chat": c.gone, "Any shop": "firing", "Any chat": c.gone}
		if c.few != "" {
			want["Few shop"] = c.few
		}
		if diff := cmp.Diff(want, state); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
