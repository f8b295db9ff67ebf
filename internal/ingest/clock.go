package ingest

import (
	"sync/atomic"
	"time"
)

// Clock is the ingest clock: what heartbeats tell. It is safe for concurrent use.
type Clock interface {
	// Now is the zero time while nothing is known.
	Now() time.Time
	// Observe is told the timestamp of each record that was read.
	Observe(recordTime time.Time)
	// Kind says when a heartbeat is due.
	Kind() ClockKind
}

// NewClock makes the clock of a kind. now is the wall clock, nil for the real one.
func NewClock(kind ClockKind, now func() time.Time) Clock {
	if now == nil {
		now = time.Now
	}
	if kind == ClockRecords {
		return &recordsClock{wall: now}
	}
	return wallClock{now}
}

type wallClock struct{ now func() time.Time }

var _ Clock = wallClock{}

func (c wallClock) Now() time.Time    { return c.now().UTC().Truncate(time.Millisecond) }
func (c wallClock) Observe(time.Time) {}
func (c wallClock) Kind() ClockKind   { return ClockWall }

// recordsClock is the latest record timestamp seen, for replays of the past: time goes on as fast as records come.
type recordsClock struct {
	wall   func() time.Time
	latest atomic.Int64 // Unix milliseconds, 0 for none
}

var _ Clock = (*recordsClock)(nil)

func (c *recordsClock) Now() time.Time {
	if ms := c.latest.Load(); ms != 0 {
		return time.UnixMilli(ms).UTC()
	}
	return time.Time{}
}

// Observe leaves out timestamps of the future: one of them would end all replays.
func (c *recordsClock) Observe(t time.Time) {
	if t.IsZero() || t.After(c.wall().Add(5*time.Minute)) {
		return
	}
	ms := t.UnixMilli()
	for {
		old := c.latest.Load()
		if ms <= old || c.latest.CompareAndSwap(old, ms) {
			return
		}
	}
}

func (c *recordsClock) Kind() ClockKind { return ClockRecords }
