package silence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/respond/outbox"
)

var start = time.Date(2026, 9, 13, 8, 0, 0, 0, time.UTC)

func store(t *testing.T, durable respond.Store, now *time.Time) *Store {
	t.Helper()
	s, err := New(t.Context(), durable, func() time.Time { return *now })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func one(matchers ...string) Silence {
	return Silence{Matchers: matchers, EndsAt: start.Add(time.Hour), CreatedBy: "ada", Comment: "known"}
}

func TestWhatNobodyCouldUseIsRefused(t *testing.T) {
	now := start
	s := store(t, &outbox.Memory{}, &now)
	for text, c := range map[string]func(*Silence){
		"needs a matcher":         func(x *Silence) { x.Matchers = nil },
		"match everything":        func(x *Silence) { x.Matchers = []string{`service!="x"`} },
		"matcher \"nonsense\"":    func(x *Silence) { x.Matchers = []string{"nonsense"} },
		"cannot be read":          func(x *Silence) { x.Matchers = []string{`service=~"("`} },
		"say who you are":         func(x *Silence) { x.CreatedBy = " " },
		"say why":                 func(x *Silence) { x.Comment = "\n" },
		"in the future":           func(x *Silence) { x.StartsAt, x.EndsAt = start.Add(-2*time.Hour), start.Add(-time.Hour) },
		"end after it starts":     func(x *Silence) { x.StartsAt = start.Add(2 * time.Hour) },
		"400 days":                func(x *Silence) { x.EndsAt = start.Add(500 * 24 * time.Hour) },
		"200 and 2000 characters": func(x *Silence) { x.Comment = strings.Repeat("ü", 2001) },
		"32 matchers": func(x *Silence) {
			x.Matchers = make([]string, 0)
			for i := range 33 {
				x.Matchers = append(x.Matchers, fmt.Sprintf(`a%d="b"`, i))
			}
		},
	} {
		x := one(`service="issues"`)
		c(&x)
		_, err := s.Add(t.Context(), x)
		var refused *Refused
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %q", err, text)
		}
		if q := strconv.Quote(strings.Join(x.Matchers, ",")); strings.Contains(err.Error(), q+": "+q) {
			t.Errorf("the matcher is quoted twice: %v", err)
		}
	}
	if n := len(s.List()); n > 0 {
		t.Errorf("%d were stored", n)
	}
}

// alertmanager#3457: what has ended never comes back, whatever copy of it arrives late, and says who made and who ended it.
func TestAnExpiredSilenceNeverReturns(t *testing.T) {
	now := start
	kept := &outbox.Memory{}
	s := store(t, kept, &now)
	var told []respond.Silence
	s.OnChange(func(list []respond.Silence) { told = list })
	x, err := s.Add(t.Context(), one(`service="issues"`, `severity=~"major|critical"`))
	if err != nil {
		t.Fatal(err)
	}
	old, _ := json.Marshal(x)
	labels := map[string]string{"service": "issues", "severity": "critical"}
	if len(told) != 1 || !told[0].Holds(labels, now) || told[0].Holds(map[string]string{"service": "issues", "severity": "minor"}, now) {
		t.Fatalf("in force: %+v", told)
	}
	now = now.Add(10 * time.Minute)
	if _, err := s.Expire(t.Context(), x.ID, "grace"); err != nil {
		t.Fatal(err)
	}
	s.Take(x.ID, old) // late
	for name, s := range map[string]*Store{"now": s, "after a restart": store(t, kept, &now)} {
		s.Take(x.ID, old)
		if list := s.InForce(); len(list) > 0 {
			t.Errorf("%s: %+v is back", name, list)
		}
		if l := s.List(); len(l) != 1 || l[0].Status(now) != Expired || l[0].CreatedBy != "ada" || l[0].ExpiredBy != "grace" || !l[0].ExpiredAt.Equal(now) {
			t.Errorf("%s: %+v", name, l)
		}
	}
	if len(told) > 0 {
		t.Errorf("told %+v", told)
	}
	var refused *Refused
	if _, err := s.Expire(t.Context(), x.ID, "grace"); !errors.As(err, &refused) {
		t.Errorf("ended twice: %v", err)
	}
	if _, err := s.Expire(t.Context(), "nope", "grace"); !errors.Is(err, ErrUnknown) {
		t.Errorf("got %v", err)
	}
	if !Newer(mustJSON(s.List()[0]), old) || Newer(old, mustJSON(s.List()[0])) {
		t.Error("the later copy would count")
	}
}

func mustJSON(v any) []byte { b, _ := json.Marshal(v); return b }

// One that ends by itself is gone for the planner, can be looked up for a month, and is then forgotten. What is in force is
// forgotten by nobody.
func TestEndsByItselfAndIsForgottenLater(t *testing.T) {
	now := start
	kept := &outbox.Memory{}
	s := store(t, kept, &now)
	x, err := s.Add(t.Context(), one(`service="issues"`))
	if err != nil {
		t.Fatal(err)
	}
	s.Take(x.ID, nil)
	if len(s.InForce()) != 1 {
		t.Error("a tombstone ended a silence")
	}
	now = x.EndsAt
	if len(s.InForce()) != 0 || len(s.List()) != 1 {
		t.Errorf("at its end: %d in force, %d known", len(s.InForce()), len(s.List()))
	}
	now = now.Add(31 * 24 * time.Hour)
	y := one(`service="issues"`)
	y.EndsAt = now.Add(time.Hour)
	if _, err := s.Add(t.Context(), y); err != nil {
		t.Fatal(err)
	}
	values, _ := kept.Load(context.Background())
	if len(s.List()) != 1 || len(values) != 1 {
		t.Errorf("%d known, %d stored", len(s.List()), len(values))
	}
}

func TestConcerns(t *testing.T) {
	x := one(`service="issues"`)
	x.StartsAt = start
	labels := map[string]string{"service": "issues"}
	for _, c := range []struct {
		from, to time.Time
		labels   map[string]string
		want     bool
	}{
		{start.Add(-time.Hour), time.Time{}, labels, true},
		{start.Add(-time.Hour), start.Add(-time.Minute), labels, false},
		{start.Add(2 * time.Hour), time.Time{}, labels, false},
		{start.Add(30 * time.Minute), start.Add(3 * time.Hour), labels, true},
		{start.Add(-time.Hour), time.Time{}, map[string]string{"service": "wiki"}, false},
	} {
		if got := x.Concerns(c.labels, c.from, c.to); got != c.want {
			t.Errorf("%s to %s, %v: %v", c.from, c.to, c.labels, got)
		}
	}
}

// Two processes add silences at once: the list that lacks one must not be heard after the one that has both, or that silence
// would break until the next change.
func TestTheLaterListIsHeardLast(t *testing.T) {
	now := start
	s := store(t, &outbox.Memory{}, &now)
	copyOf := func(id string) []byte {
		x := one(`service="issues"`)
		x.ID, x.StartsAt = id, start
		value, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	second := make(chan struct{})
	var mu sync.Mutex
	heard, calls := 0, 0
	s.OnChange(func(list []respond.Silence) {
		mu.Lock()
		calls++
		first := calls == 2 // after the call that OnChange makes
		mu.Unlock()
		if first {
			go func() {
				s.Take("b", copyOf("b"))
				close(second)
			}()
			select { // it has to wait for us, so we do not wait for long
			case <-second:
			case <-time.After(20 * time.Millisecond):
			}
		}
		mu.Lock()
		heard = len(list)
		mu.Unlock()
	})
	s.Take("a", copyOf("a"))
	<-second
	if mu.Lock(); heard != 2 {
		t.Errorf("%d silences were heard of last, want 2", heard)
	}
	mu.Unlock()
}
