package console

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// Pages that are open ask again every two seconds, and an incident's whole log can be megabytes; incidents change with
// ticks only. What was read is kept for its tick, and rememberFor at most, because a process that does not lead learns of
// ticks later.
const (
	rememberFor = 5 * time.Second
	rememberMax = 64
)

// remembering is a Reader for pages. Callers must not change what it returns.
type remembering struct {
	Reader
	tick func() uint64
	now  func() time.Time

	mu   sync.Mutex
	kept map[string]kept
}

var _ Reader = (*remembering)(nil)

type kept struct {
	tick uint64
	at   time.Time
	what any
}

func (r *remembering) Incidents(ctx context.Context, openOnly bool, limit int) ([]incident.Incident, error) {
	return remember(r, fmt.Sprintf("list %t %d", openOnly, limit), func() ([]incident.Incident, error) {
		return r.Reader.Incidents(ctx, openOnly, limit)
	})
}

func (r *remembering) Events(ctx context.Context, id string) ([]incident.Event, error) {
	return remember(r, "log "+id, func() ([]incident.Event, error) { return r.Reader.Events(ctx, id) })
}

func remember[T any](r *remembering, key string, read func() (T, error)) (T, error) {
	tick, now := r.tick(), r.now()
	r.mu.Lock()
	k, ok := r.kept[key]
	r.mu.Unlock()
	if ok && tick > 0 && k.tick == tick && now.Sub(k.at) < rememberFor {
		return k.what.(T), nil
	}
	what, err := read()
	if err != nil {
		return what, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.kept) >= rememberMax {
		clear(r.kept)
	}
	r.kept[key] = kept{tick, now, what}
	return what, nil
}
