package respond

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// MemoryLog is an incident log for drills and tests. It is safe for concurrent use.
type MemoryLog struct {
	mu     sync.Mutex
	events []incident.Event
	head   Head
	err    error
}

var _ IncidentLog = (*MemoryLog)(nil)

// Append adds events and moves the head to the last one.
func (m *MemoryLog) Append(events ...incident.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range events {
		m.events = append(m.events, e)
		m.head = Head{Tick: e.Tick, To: e.At, Clock: e.Clock}
	}
}

// SetHead moves the head alone.
func (m *MemoryLog) SetHead(h Head) { m.mu.Lock(); m.head = h; m.mu.Unlock() }

// Fail makes every read fail until it is called with nil.
func (m *MemoryLog) Fail(err error) { m.mu.Lock(); m.err = err; m.mu.Unlock() }

// After implements IncidentLog.
func (m *MemoryLog) After(_ context.Context, c Cursor, limit int) ([]incident.Event, Cursor, Head, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return nil, c, Head{}, m.err
	}
	var out []incident.Event
	for _, e := range m.events {
		if e.Tick <= c.Tick {
			continue
		}
		if len(out) >= limit && e.Tick != out[len(out)-1].Tick {
			return out, Cursor{Tick: out[len(out)-1].Tick}, m.head, nil
		}
		out = append(out, e)
	}
	return out, Cursor{Tick: max(c.Tick, m.head.Tick)}, m.head, nil
}

// Open implements IncidentLog.
func (m *MemoryLog) Open(_ context.Context, since time.Time) ([]incident.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return nil, m.err
	}
	newest := map[string]incident.Event{}
	for _, e := range m.events {
		newest[e.Incident] = e
	}
	var out []incident.Event
	for _, id := range slices.Sorted(maps.Keys(newest)) {
		if e := newest[id]; e.After.State.Open() || e.At.After(since) {
			out = append(out, e)
		}
	}
	return out, nil
}
