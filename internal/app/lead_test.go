package app

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/respond/selfpage"
)

func TestCatchingUpIsNoTrouble(t *testing.T) {
	var c catchingUp
	now := time.Now()
	lag := 7 * 24 * time.Hour
	for range 100 {
		if !c.gains(lag, now) {
			t.Fatal("a backlog that shrinks was called trouble")
		}
		lag, now = lag-time.Hour, now.Add(time.Second)
	}
	for range 59 {
		lag, now = lag+time.Second, now.Add(time.Second)
		c.gains(lag, now)
	}
	if c.gains(lag+time.Minute, now.Add(time.Minute)) {
		t.Error("lag that only grows was called catching up")
	}
}

func newTestLead(p *selfpage.Pager) *lead { return &lead{cfg: &Config{}, health: p.From("lead")} }

func trouble(p *selfpage.Pager) []selfpage.Cause { _, bad := p.Healthy(); return bad }

// A process that loses the lead in the middle of trouble would otherwise page about it for ever, and withhold its
// heartbeat: only who leads says how things are.
func TestWhoLosesTheLeadRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := selfpage.New(selfpage.Options{})
		l := newTestLead(p)
		l.judge(detect.Health{BlockedSince: time.Now(), LastError: "code 516"}, &catchingUp{}, time.Now())
		l.respondHealth("clickhouse_unreachable", false, "code 516")
		l.respondHealth("respond_stalled", true, "")
		time.Sleep(2 * respondWithin)
		want := []selfpage.Cause{selfpage.ClickHouseUnreachable, selfpage.DetectorStalled, selfpage.RespondStalled}
		if got := trouble(p); !slices.Equal(got, want) {
			t.Fatalf("in trouble: %v, want %v", got, want)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_ = l.watch(ctx)
		l.rest(respondCauses)
		if got := trouble(p); len(got) > 0 {
			t.Errorf("still speaks of %v", got)
		}
	})
}

// A loop that hangs cannot say so, and the database under it may be well.
func TestLoopsThatHangAreMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := selfpage.New(selfpage.Options{})
		l := newTestLead(p)
		l.respondHealth("respond_stalled", true, "")
		looked := time.Now()
		l.judge(detect.Health{LookedAt: looked}, &catchingUp{}, time.Now())
		if got := trouble(p); len(got) > 0 {
			t.Fatalf("in trouble while all is well: %v", got)
		}
		time.Sleep(lookWithin + time.Minute)
		l.judge(detect.Health{LookedAt: looked}, &catchingUp{}, time.Now())
		if got := trouble(p); !slices.Equal(got, []selfpage.Cause{selfpage.DetectorStalled, selfpage.RespondStalled}) {
			t.Errorf("in trouble: %v", got)
		}
	})
}

// What is gone stays gone, but a page about it must end, or it comes back every five minutes until the next start.
func TestAGapSpeaksForAWhile(t *testing.T) {
	g, now := &gaps{}, time.Now()
	if lately, _ := g.lately(now); lately {
		t.Error("speaks of a gap that nobody found")
	}
	g.found("7 records", now)
	if lately, text := g.lately(now.Add(time.Minute)); !lately || text != "7 records" {
		t.Errorf("a minute later: %v %q", lately, text)
	}
	if lately, _ := g.lately(now.Add(gapSpeaks)); lately {
		t.Error("does not end")
	}
}

// A process that waits for the lead for days reads no more commands than it can keep, and loses none.
func TestNoCommandIsDropped(t *testing.T) {
	s := &commands{}
	for i := range maxCommands + 10 {
		s.add(incident.Command{ID: fmt.Sprint(i)})
	}
	if !s.full() {
		t.Error("reads on")
	}
	for n := 0; ; n += 100 {
		batch := s.Pending(100)
		if len(batch) == 0 {
			break
		}
		if batch[0].ID != fmt.Sprint(n) {
			t.Fatalf("command %d is %s", n, batch[0].ID)
		}
		s.Done(batch)
		if n > maxCommands+10 {
			t.Fatal("gives more than there are")
		}
	}
	if got := len(s.waiting); got != 0 || s.full() {
		t.Errorf("%d are left", got)
	}
}
