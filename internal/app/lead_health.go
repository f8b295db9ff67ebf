package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/respond/selfpage"
)

// Causes that only the process which leads can speak of. It rests when it no longer does: its last word would stand for
// ever, and be paged for as long.
var (
	detectCauses  = []selfpage.Cause{selfpage.DetectorStalled, selfpage.Partial, selfpage.Lag}
	respondCauses = []selfpage.Cause{selfpage.ClickHouseUnreachable, selfpage.OutboxFailing, selfpage.RespondStalled}
)

const (
	// respondWithin is how long a turn of the respond loop may take; each one says that it came to its end.
	respondWithin = 2 * time.Minute
	// lookWithin is the same for the detector. A tick that catches up may be long.
	lookWithin = 5 * time.Minute
)

func (l *lead) rest(causes []selfpage.Cause) {
	for _, c := range causes {
		l.health.Rest(c)
	}
}

// respondHealth takes what the respond loop says of itself. Its first turn begins the watch over the others.
func (l *lead) respondHealth(cause string, healthy bool, detail string) {
	if c := selfpage.Cause(cause); c == selfpage.RespondStalled {
		l.health.Watch(c, respondWithin)
	} else {
		l.health.Report(c, healthy, brief(errors.New(detail)))
	}
}

// watch turns the detector's health into the self-page's causes.
func (l *lead) watch(ctx context.Context) error {
	var c catchingUp
	for ctx.Err() == nil {
		l.mu.Lock()
		loop := l.loop
		l.mu.Unlock()
		if loop == nil {
			l.rest(detectCauses)
		} else {
			l.judge(loop.Health(), &c, time.Now())
		}
		pause(ctx, time.Second)
	}
	return nil
}

func (l *lead) judge(h detect.Health, c *catchingUp, now time.Time) {
	silent := time.Duration(0)
	if !h.LookedAt.IsZero() {
		silent = now.Sub(h.LookedAt)
	}
	why := h.LastError
	if h.BlockedSince.IsZero() && silent > lookWithin {
		why = fmt.Sprintf("it has not looked at the ledger for %s", silent.Round(time.Second))
	}
	l.health.Report(selfpage.DetectorStalled, h.BlockedSince.IsZero() && silent <= lookWithin, why)
	l.health.Report(selfpage.Partial, len(h.Partial) == 0, fmt.Sprint(h.Partial))
	behind := l.cfg.Respond.BehindAfter.Std()
	if behind <= 0 {
		behind = 15 * time.Minute
	}
	late := !h.To.IsZero() && h.Lag > behind && !c.gains(h.Lag, now)
	l.health.Report(selfpage.Lag, !late, "behind by "+h.Lag.Round(time.Second).String())
}

// catchingUp tells a backlog that shrinks, as after a first start that reads a topic from its beginning, from lag that
// somebody must look at.
type catchingUp struct {
	least time.Duration
	at    time.Time
}

// gainWithin is how long lag may stand still before it is no longer catching up.
const gainWithin = time.Minute

func (c *catchingUp) gains(lag time.Duration, now time.Time) bool {
	if c.at.IsZero() || lag < c.least || lag > 2*c.least {
		c.least, c.at = lag, now
	}
	return now.Sub(c.at) < gainWithin
}
