package scenario

import (
	"iter"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// SliceSize is the piece of the day that a generator makes at a time.
const SliceSize = signal.BucketSize

// Slice is everything that happened from From up to, not including, To; each list is in order of time. It belongs to
// whoever asked for it.
type Slice struct {
	From, To time.Time
	Requests []signal.Request
	Gauges   []signal.Gauge
	Tickets  []signal.Ticket
	Changes  []signal.Change
}

// Len is the number of events.
func (s *Slice) Len() int { return len(s.Requests) + len(s.Gauges) + len(s.Tickets) + len(s.Changes) }

// Events yields all events in order of time; at the same instant changes come first, then gauges, requests, tickets.
func (s *Slice) Events() iter.Seq[signal.Event] {
	return func(yield func(signal.Event) bool) {
		var c, g, r, t int
		for range s.Len() {
			var next signal.Event
			var advance *int
			take := func(e signal.Event, i *int) {
				if next == nil || e.At().Before(next.At()) {
					next, advance = e, i
				}
			}
			if c < len(s.Changes) {
				take(&s.Changes[c], &c)
			}
			if g < len(s.Gauges) {
				take(&s.Gauges[g], &g)
			}
			if r < len(s.Requests) {
				take(&s.Requests[r], &r)
			}
			if t < len(s.Tickets) {
				take(&s.Tickets[t], &t)
			}
			*advance++
			if !yield(next) {
				return
			}
		}
	}
}
