package detect_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/detect/memory"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// What users of other systems complained of when data is late: each with its source, and with its kind.

const lagRules = `groups:
  - name: test
    rules:
      - {alert: WritesFailing, kind: failure_rate, match: {access: write}, above: 10%, for: 20s}
      - {alert: Silent, kind: absence, silent_for: 2m, expected: 30}
`

// flow feeds one service's buckets from one minute to another; every part of the minutes it fails it fails by half.
func flow(tl *memory.Timeline, from, to time.Duration, failing bool) {
	for b := from; b < to; b += signal.BucketSize {
		bad := uint64(0)
		if failing {
			bad = 20
		}
		tl.AddCells([]signal.Cell{traffic(at(b), "shop", 40-bad, bad)})
	}
}

// advance raises watermarks and the clock, and lets the loop see it.
func advance(tl *memory.Timeline, requests, others, clock time.Duration) {
	for _, s := range signal.Streams {
		if s == signal.Requests {
			tl.SetWatermark(s, at(requests))
		} else {
			tl.SetWatermark(s, at(others))
		}
	}
	tl.SetProgress(time.Time{}, at(clock))
	time.Sleep(5 * time.Second)
	synctest.Wait()
}

// VictoriaMetrics#865: a lag of 30 to 120 s in the middle of an incident cleared the alert and raised it again. Here event time stands
// still while Kafka lags, whether requests lag alone or everything does, and goes on as if nothing had been.
func TestCaseLagHoldsWhatIsKnown(t *testing.T) {
	for _, lag := range []time.Duration{30 * time.Second, 90 * time.Second, 119 * time.Second} {
		for name, alone := range map[string]bool{"requests": true, "everything": false} {
			t.Run(name+" "+lag.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					tl := memory.New()
					_, stop := start(t, tl, parseRules(t, lagRules), nil)
					flow(tl, 0, 3*time.Minute, false)
					flow(tl, 3*time.Minute, 5*time.Minute, true)
					for m := time.Minute; m <= 5*time.Minute; m += time.Minute {
						advance(tl, m, m, m)
					}
					before := states(tl, "WritesFailing")
					if len(before) != 2 || !strings.HasSuffix(before[1], "shop firing") {
						t.Fatalf("before the lag: %v", before)
					}
					for d := 10 * time.Second; d <= lag; d += 10 * time.Second {
						others := 5 * time.Minute
						if alone {
							others += d
						}
						advance(tl, 5*time.Minute, others, 5*time.Minute+d)
					}
					if diff := cmp.Diff(before, states(tl, "WritesFailing")); diff != "" {
						t.Errorf("while it lags (-before +after):\n%s", diff)
					}
					flow(tl, 5*time.Minute, 8*time.Minute, true)
					for m := 5 * time.Minute; m <= 8*time.Minute; m += time.Minute {
						advance(tl, m, max(m, 5*time.Minute+lag), max(m, 5*time.Minute+lag))
					}
					if diff := cmp.Diff(before, states(tl, "WritesFailing")); diff != "" {
						t.Errorf("after it has caught up (-before +after):\n%s", diff)
					}
					if err := stop(); err != nil {
						t.Fatal(err)
					}
				})
			})
		}
	}
}

// sentry#104860: lag of the pipeline looked like an outage. Ten minutes without requests that are late, not gone, are no silence: what
// counts traffic pauses, and what is wrong is told as lag or as a stream that is missing.
func TestCaseLagIsNoOutage(t *testing.T) {
	for name, alone := range map[string]bool{"requests": true, "everything": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tl := memory.New()
				l, stop := start(t, tl, parseRules(t, lagRules), nil)
				flow(tl, 0, 80*time.Minute, false)
				for m := 10 * time.Minute; m <= 80*time.Minute; m += 10 * time.Minute {
					advance(tl, m, m, m)
				}
				told := false
				for d := time.Duration(0); d <= 10*time.Minute; d += 10 * time.Second {
					others := 80 * time.Minute
					if alone {
						others += d
					}
					advance(tl, 80*time.Minute, others, 80*time.Minute+d)
					h := l.Health()
					told = told || len(h.Partial) == 1 && h.Partial[0] == signal.Requests || h.Lag >= 10*time.Minute
				}
				if s := states(tl, "Silent"); len(s) > 0 {
					t.Errorf("lag is taken for silence: %v", s)
				}
				if !told {
					t.Errorf("nobody is told of the lag: %+v", l.Health())
				}
				// What was late comes, and then it really falls silent.
				flow(tl, 80*time.Minute, 90*time.Minute, false)
				for m := 90 * time.Minute; m <= 96*time.Minute; m += 10 * time.Second {
					advance(tl, m, m, m)
				}
				if s := states(tl, "Silent"); len(s) != 1 || !strings.HasSuffix(s[0], "shop firing") || s[0] < at(92*time.Minute).Format("15:04:05") {
					t.Errorf("silence after the lag: %v", s)
				}
				if err := stop(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// halved shows a second partition of requests that stands still: its leader is gone, or the member that read it died while it seemed
// idle. Of both nothing is heard any more.
type halved struct {
	detect.Timeline
	until time.Time
}

func (h halved) Progress(ctx context.Context) (detect.Progress, error) {
	p, err := h.Timeline.Progress(ctx)
	if len(p.Marks) > 0 {
		p.Marks = append(p.Marks, detect.Mark{Partition: detect.Partition{Topic: "other", Stream: signal.Requests}, Watermark: h.until})
	}
	return p, err
}

func (h halved) Claim(ctx context.Context, t detect.Tick) (detect.Inputs, error) {
	all := t.Marks
	for i, m := range t.Marks {
		if m.Topic == "other" {
			t.Marks = append(t.Marks[:i:i], t.Marks[i+1:]...)
			break
		}
	}
	in, err := h.Timeline.Claim(ctx, t)
	in.Tick.Marks = all
	return in, err
}

// One partition leaderless, or a member dead with its partition "idle": half of the traffic is missing without a word. It is waited for,
// for two minutes; then what is there is judged, marked as partial: failures still fire, and less traffic is no silence.
func TestOneDeadPartitionHoldsNobodyForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tl := memory.New()
		flow(tl, 0, 80*time.Minute, false)
		advanceAll := func(to time.Duration) { tl.SetProgress(at(to), at(to)); time.Sleep(5 * time.Second); synctest.Wait() }
		tl.AddCells([]signal.Cell{})
		l, stop := start(t, halved{tl, at(80 * time.Minute)}, parseRules(t, lagRules), nil)
		for m := 10 * time.Minute; m <= 80*time.Minute; m += 10 * time.Minute {
			advanceAll(m)
		}
		advanceAll(81 * time.Minute)
		if h := l.Health(); h.To.After(at(80 * time.Minute)) {
			t.Errorf("judged up to %s without the partition, after one minute", h.To)
		}
		// The other partition's service fails, and the one whose requests came through the dead partition is not seen any more.
		for b := 81 * time.Minute; b < 90*time.Minute; b += signal.BucketSize {
			tl.AddCells([]signal.Cell{traffic(at(b), "chat", 20, 20)})
		}
		for m := 82 * time.Minute; m <= 90*time.Minute; m += 30 * time.Second {
			advanceAll(m)
		}
		h := l.Health()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if !h.To.Equal(at(90*time.Minute-10*time.Second)) || len(h.Partial) != 1 {
			t.Errorf("judged up to %s, partial %v", h.To, h.Partial)
		}
		if s := states(tl, "WritesFailing"); len(s) == 0 || !strings.HasSuffix(s[len(s)-1], "chat firing") {
			t.Errorf("failures that are seen: %v", s)
		}
		if s := states(tl, "Silent"); len(s) > 0 {
			t.Errorf("what is not seen is taken for silent: %v", s)
		}
	})
}
