// Package respond is the third loop: it compares, for every incident and receiver, what should have been said with
// what has been delivered, and delivers the difference.
package respond

import (
	"context"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// Cursor is a place in the incident log: events of ticks up to Tick have been read.
type Cursor struct {
	Tick uint64 `json:"tick"`
}

// Head is how far the detector has come: event time To, at ingest clock Clock.
type Head struct {
	Tick  uint64
	To    time.Time
	Clock time.Time
}

// Lag is how far event time is behind the clock.
func (h Head) Lag() time.Duration { return h.Clock.Sub(h.To) }

// IncidentLog is the append-only log that the detector writes. internal/clickhouse implements it.
type IncidentLog interface {
	// After returns the events of whole ticks after the cursor in order (tick, then as concluded), at most about limit of
	// them, with the cursor to go on from and the detector's head.
	After(ctx context.Context, c Cursor, limit int) (events []incident.Event, next Cursor, head Head, err error)
	// Open returns the newest event of each incident that is open, or ended after since.
	Open(ctx context.Context, since time.Time) ([]incident.Event, error)
}
