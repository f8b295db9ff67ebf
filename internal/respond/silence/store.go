package silence

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tocsin-project/tocsin/internal/respond"
)

const (
	// keepExpired is how long ended silences can be looked up.
	keepExpired = 30 * 24 * time.Hour
	// maxSilences bounds what is kept.
	maxSilences = 10_000
)

// ErrUnknown says that there is no such silence.
var ErrUnknown = errors.New("there is no such silence")

// Store holds all silences of an installation. Every process has one and can write to it; they hear of each other's writes
// through Take. It is safe for concurrent use. The durable store below it stays the caller's.
type Store struct {
	durable respond.Store
	now     func() time.Time

	writing sync.Mutex // the durable store takes one write at a time
	telling sync.Mutex // of two changes the later list is heard last
	mu      sync.Mutex
	all     map[string]Silence
	heard   []func([]respond.Silence)
}

// New makes a store with what the durable one has.
func New(ctx context.Context, durable respond.Store, now func() time.Time) (*Store, error) {
	s := &Store{durable: durable, now: now, all: map[string]Silence{}}
	values, err := durable.Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the silences: %w", err)
	}
	for key, value := range values {
		s.take(key, value)
	}
	return s, nil
}

// Write makes another durable store take writes from now on. It holds at least what the first one does.
func (s *Store) Write(durable respond.Store) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.durable = durable
}

// OnChange calls f with the silences that have not ended, now and after each change. f must not block.
func (s *Store) OnChange(f func([]respond.Silence)) {
	s.telling.Lock()
	defer s.telling.Unlock()
	s.mu.Lock()
	s.heard = append(s.heard, f)
	s.mu.Unlock()
	f(s.InForce())
}

// Take hears of a write of another process. A nil value forgets.
func (s *Store) Take(key string, value []byte) {
	if s.take(key, value) {
		s.tell()
	}
}

func (s *Store) take(key string, value []byte) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, known := s.all[key]
	if value == nil {
		if known && old.Status(s.now()) != Expired {
			return false // what is in force is forgotten by nobody
		}
		delete(s.all, key)
		return known
	}
	var x Silence
	if json.Unmarshal(value, &x) != nil || x.ID != key {
		return false
	}
	if known {
		x = merge(old, x)
	}
	s.all[key] = x
	return !known || !x.EndsAt.Equal(old.EndsAt)
}

// tell passes the list on. A list that was made before another one must not be heard after it: what it lacks would not hold
// until the next change.
func (s *Store) tell() {
	s.telling.Lock()
	defer s.telling.Unlock()
	s.mu.Lock()
	heard := slices.Clone(s.heard)
	s.mu.Unlock()
	list := s.InForce()
	for _, f := range heard {
		f(list)
	}
}

// InForce are the silences that have not ended, those that have not begun among them.
func (s *Store) InForce() (out []respond.Silence) {
	now := s.now()
	for _, x := range s.List() {
		if x.Status(now) == Expired {
			continue
		}
		if r, err := x.ForPlanner(); err == nil { // what another version wrote and we cannot read silences nothing
			out = append(out, r)
		}
	}
	return out
}

// List gives all, those that end last first.
func (s *Store) List() []Silence {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Silence, 0, len(s.all))
	for _, x := range s.all {
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b Silence) int {
		if c := b.EndsAt.Compare(a.EndsAt); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out
}

// Add checks and stores a new silence and gives its id. It is in force when Add returns.
func (s *Store) Add(ctx context.Context, x Silence) (Silence, error) {
	now := s.now().UTC().Truncate(time.Second)
	if x.StartsAt.IsZero() {
		x.StartsAt = now
	}
	x.ID, x.CreatedAt, x.ExpiredBy, x.ExpiredAt = rand.Text(), now, "", time.Time{}
	x.StartsAt, x.EndsAt = x.StartsAt.UTC(), x.EndsAt.UTC()
	if err := x.Check(now); err != nil {
		return x, &Refused{err}
	}
	s.prune(ctx, now)
	s.mu.Lock()
	full := len(s.all) >= maxSilences
	s.mu.Unlock()
	if full {
		return x, &Refused{fmt.Errorf("there are %d silences already, which is the most; let some end", maxSilences)}
	}
	return x, s.put(ctx, x)
}

// Expire ends a silence now.
func (s *Store) Expire(ctx context.Context, id, by string) (Silence, error) {
	now := s.now().UTC()
	if by = strings.TrimSpace(by); by == "" {
		return Silence{}, &Refused{errors.New("say who ends the silence")}
	}
	s.mu.Lock()
	x, ok := s.all[id]
	s.mu.Unlock()
	switch {
	case !ok:
		return x, ErrUnknown
	case x.Status(now) == Expired:
		return x, &Refused{fmt.Errorf("it ended at %s UTC already", x.EndsAt.UTC().Format("2006-01-02 15:04:05"))}
	}
	x.EndsAt, x.ExpiredAt, x.ExpiredBy = now, now, by
	return x, s.put(ctx, x)
}

// Refused is a mistake of whoever asked.
type Refused struct{ error }

func (r *Refused) Unwrap() error { return r.error }

func (s *Store) put(ctx context.Context, x Silence) error {
	value, err := json.Marshal(x)
	if err != nil {
		return fmt.Errorf("store a silence: %w", err)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.durable.Put(ctx, x.ID, value); err != nil {
		return fmt.Errorf("store a silence: %w", err)
	}
	s.Take(x.ID, value)
	return nil
}

// prune forgets what ended long ago. What cannot be forgotten now is forgotten with the next one.
func (s *Store) prune(ctx context.Context, now time.Time) {
	for _, x := range s.List() {
		if now.Sub(x.EndsAt) <= keepExpired {
			continue
		}
		s.writing.Lock()
		err := s.durable.Put(ctx, x.ID, nil)
		s.writing.Unlock()
		if err != nil {
			return
		}
		s.take(x.ID, nil)
	}
}
