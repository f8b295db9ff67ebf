package clickhouse

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/respond"
)

// IncidentLog reads what the detector wrote. It is safe for use by many goroutines.
type IncidentLog struct{ db *DB }

var _ respond.IncidentLog = (*IncidentLog)(nil)

// NewIncidentLog makes a reader over an open database, which stays the caller's.
func NewIncidentLog(db *DB) *IncidentLog { return &IncidentLog{db: db} }

// After reads whole ticks that are done. It asks for the head first: what is below it is complete and stays so.
func (l *IncidentLog) After(ctx context.Context, c respond.Cursor, limit int) ([]incident.Event, respond.Cursor, respond.Head, error) {
	head, err := l.head(ctx)
	if err != nil || head.Tick <= c.Tick {
		return nil, c, head, err
	}
	limit = max(limit, 1)
	events, err := l.events(ctx, render("events_after.sql", nil), ch.Named("after", c.Tick), ch.Named("head", head.Tick), ch.Named("limit", limit))
	if err != nil {
		return nil, c, head, err
	}
	next := respond.Cursor{Tick: head.Tick}
	if len(events) >= limit {
		next.Tick = events[len(events)-1].Tick
	}
	return events, next, head, nil
}

// Open returns the newest event of each incident that is open or ended after since.
func (l *IncidentLog) Open(ctx context.Context, since time.Time) ([]incident.Event, error) {
	head, err := l.head(ctx)
	if err != nil {
		return nil, err
	}
	return l.events(ctx, render("events_newest.sql", nil), ch.Named("head", head.Tick), ch.Named("open", openStates()),
		ch.Named("since", toDB(since).UnixMilli()))
}

func openStates() (open []string) {
	for s := incident.Suspected; s <= incident.Dismissed; s++ {
		if s.Open() {
			open = append(open, s.String())
		}
	}
	return open
}

func (l *IncidentLog) head(ctx context.Context) (h respond.Head, err error) {
	err = l.db.query(ctx, "read head", queryText("head.sql"), func(r driver.Rows) error {
		var to, clock int64
		if err := r.Scan(&h.Tick, &to, &clock); err != nil {
			return err
		}
		h.To, h.Clock = fromMillis(to), fromMillis(clock)
		return nil
	})
	return h, err
}

// events reads incident events, in the order of ticks and of what each tick concluded.
func (l *IncidentLog) events(ctx context.Context, sql string, args ...any) ([]incident.Event, error) {
	type placed struct {
		position uint32
		event    incident.Event
	}
	var rows []placed
	err := l.db.query(ctx, "read incident log", sql, func(r driver.Rows) error {
		var p placed
		var err error
		p.position, p.event, err = scanEvent(r)
		rows = append(rows, p)
		return err
	}, args...)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b placed) int {
		if a.event.Tick != b.event.Tick {
			return int(int64(a.event.Tick) - int64(b.event.Tick))
		}
		return int(int64(a.position) - int64(b.position))
	})
	events := make([]incident.Event, len(rows))
	for i := range rows {
		events[i] = rows[i].event
	}
	return events, nil
}

func scanEvent(r driver.Rows) (position uint32, e incident.Event, err error) {
	var at, clock int64
	var kind, after string
	if err := r.Scan(&e.Tick, &position, &e.Incident, &e.Sequence, &at, &clock, &kind, &e.By, &e.Reason, &after); err != nil {
		return 0, e, err
	}
	e.At, e.Clock, e.Type = fromMillis(at), fromMillis(clock), incident.EventType(kind)
	if err := json.Unmarshal([]byte(after), &e.After); err != nil {
		return 0, e, fmt.Errorf("incident %s after event %d: %w", e.Incident, e.Sequence, err)
	}
	return position, e, nil
}
