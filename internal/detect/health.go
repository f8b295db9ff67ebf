package detect

import (
	"sync"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// Health is how the loop is doing, for self-pages and the console.
type Health struct {
	Leading bool
	Epoch   uint64
	Tick    uint64    // last committed
	To      time.Time // event time up to which all is judged
	Clock   time.Time // ingest clock of the last look
	// Lag is how far event time is behind the ingest clock.
	Lag     time.Duration
	Partial []signal.Stream // of the last tick
	// BlockedSince is the wall clock since when nothing could be read or stored; zero while all is well.
	BlockedSince time.Time
	// StalledSince is the wall clock since when event time has not advanced.
	StalledSince time.Time
	// LookedAt is the wall clock of the last look at the ledger: who hangs cannot say that it hangs.
	LookedAt  time.Time
	LastError string
}

type healthBox struct {
	mu sync.Mutex
	h  Health
}

// Health may be called from any goroutine.
func (l *Loop) Health() Health {
	l.health.mu.Lock()
	defer l.health.mu.Unlock()
	return l.health.h
}

func (b *healthBox) update(f func(*Health)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(&b.h)
}

func (b *healthBox) leads(epoch uint64) {
	b.update(func(h *Health) { h.Leading, h.Epoch = true, epoch })
}

func (b *healthBox) superseded(err error) {
	b.update(func(h *Health) { h.Leading, h.LastError = false, err.Error() })
}

func (b *healthBox) failed(err error, now time.Time) {
	b.update(func(h *Health) {
		h.LastError = err.Error()
		if h.BlockedSince.IsZero() {
			h.BlockedSince = now
		}
	})
}

func (b *healthBox) recovered() {
	b.update(func(h *Health) { h.BlockedSince, h.LastError = time.Time{}, "" })
}

func (b *healthBox) judged(clock, position time.Time, idle bool, now time.Time) {
	b.update(func(h *Health) {
		h.Clock, h.To, h.LookedAt = clock, position, now
		if !position.IsZero() {
			h.Lag = clock.Sub(position)
		}
		switch {
		case !idle:
			h.StalledSince = time.Time{}
		case h.StalledSince.IsZero():
			h.StalledSince = now
		}
	})
}

// committed takes the position from the detector: a first tick ends where judging has not begun.
func (b *healthBox) committed(t *Tick, position time.Time) {
	b.update(func(h *Health) {
		h.Tick, h.To, h.Partial, h.Clock = t.Number, position, t.Partial, t.Clock
		h.Lag = t.Clock.Sub(position)
	})
}
