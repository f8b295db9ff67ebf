package respond

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tocsin-project/tocsin/internal/respond/route"
)

// cursorKey is where the store keeps the place in the incident log. Keys of records contain a slash, this does not.
const cursorKey = "cursor"

const (
	readLimit   = 500
	maxReads    = 10_000 // rounds of one drain; a log that never ends must not keep us from sending
	stopTimeout = 3 * time.Second
)

// Options is what the loop needs. Log, Routes, Places and Store are required.
type Options struct {
	Log      IncidentLog
	Routes   *route.Config
	Places   []Place
	Store    Store
	Settings Settings
	Poll     time.Duration    // between looks at the log, 500ms
	Now      func() time.Time // the wall clock
	// Lead tells right before each message whether this process may still send; nil means always.
	Lead func() bool
	// Health hears whether the loop's own needs are met: causes "clickhouse_unreachable" and "outbox_failing", and after
	// each turn that "respond_stalled" is not so; who watches takes its silence for trouble. It must not block.
	Health  func(cause string, healthy bool, detail string)
	Logger  *slog.Logger
	Metrics *Metrics
}

// Loop is the respond loop. Run owns all its goroutines and returns when they have ended.
type Loop struct {
	Options
	mu      sync.Mutex // guards planner
	planner *Planner
	saving  sync.Mutex // keeps writes of one key in order
	cursor  Cursor     // of the reading goroutine, as are the next four
	saved   Cursor
	midway  bool                     // the log has not been read to its end
	blind   bool                     // the last read failed
	unsaved bool                     // the last write failed
	kicks   map[string]chan struct{} // of each place that has or had a worker, guarded by mu
	staff   chan struct{}            // asks for workers of new places
}

// New checks the options. The store stays the caller's.
func New(o Options) (*Loop, error) {
	if o.Log == nil || o.Routes == nil || o.Store == nil {
		return nil, errors.New("respond: log, routes and store are required")
	}
	if o.Poll <= 0 {
		o.Poll = 500 * time.Millisecond
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	if o.Health == nil {
		o.Health = func(string, bool, string) {}
	}
	o.Settings = o.Settings.withDefaults()
	l := &Loop{Options: o, planner: NewPlanner(o.Routes, o.Places, o.Settings), kicks: map[string]chan struct{}{}, staff: make(chan struct{}, 1)}
	if err := sendable(o.Places); err != nil {
		return nil, err
	}
	o.Metrics.prepare(o.Places)
	return l, nil
}

func sendable(places []Place) error {
	for _, p := range places {
		if p.Sender == nil {
			return fmt.Errorf("respond: place %s has no sender", p.ID)
		}
	}
	return nil
}

// SetRoutes takes another routes file and its places from now on. What was said stays said, and only what differs is sent;
// places that are gone are still told the end of what they were told. It may be called from any goroutine.
func (l *Loop) SetRoutes(cfg *route.Config, places []Place) error {
	if err := sendable(places); err != nil {
		return err
	}
	l.Metrics.prepare(places)
	l.mu.Lock()
	l.planner.SetRoutes(cfg, places)
	l.mu.Unlock()
	select {
	case l.staff <- struct{}{}:
	default: // it has been asked for
	}
	l.kick(context.Background())
	return nil
}

// employ starts a worker for each place that has none, until ctx ends.
func (l *Loop) employ(ctx context.Context, g *errgroup.Group) {
	for {
		l.mu.Lock()
		for _, id := range slices.Sorted(maps.Keys(l.planner.places)) {
			if l.kicks[id] == nil {
				kicked := make(chan struct{}, 1)
				l.kicks[id] = kicked
				g.Go(func() error { l.work(ctx, id, kicked); return nil })
			}
		}
		l.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-l.staff:
		}
	}
}

// Run restores what was decided before, then reads, plans, saves and delivers until ctx ends. It returns nil then, and
// an error only if the outbox cannot be read at the start: sending without it could page twice.
func (l *Loop) Run(ctx context.Context) error {
	if err := l.restore(ctx); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { l.employ(ctx, g); return nil })
	g.Go(func() error { l.read(ctx); return nil })
	return g.Wait()
}

// turn is one round of the loop. This list is the loop.
func (l *Loop) turn(ctx context.Context) {
	for _, stage := range []func(context.Context) bool{
		l.observe,  // read the incident log to its end
		l.plan,     // what should each place have been told by now?
		l.commit,   // write it down before anything is sent
		l.remember, // and how far the log has been read
		l.kick,     // wake the workers, one for each place
	} {
		if !stage(ctx) {
			return
		}
	}
	l.Health("respond_stalled", true, "")
}

func (l *Loop) restore(ctx context.Context) error {
	values, err := l.Store.Load(ctx)
	if err != nil {
		return fmt.Errorf("read the outbox: %w", err)
	}
	if raw, ok := values[cursorKey]; ok {
		if err := json.Unmarshal(raw, &l.cursor); err != nil {
			return fmt.Errorf("read the outbox: cursor: %w", err)
		}
		l.saved = l.cursor
	}
	l.mu.Lock()
	unreadable := l.planner.Restore(values, l.Now())
	l.mu.Unlock()
	if len(unreadable) > 0 {
		l.Logger.Error("records of the outbox cannot be read; what they opened must be closed by hand", "records", strings.Join(unreadable, " "))
	}
	return nil
}

func (l *Loop) plan(context.Context) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.Now()
	l.planner.Plan(now)
	for _, r := range l.planner.abandoned {
		l.Metrics.abandoned.WithLabelValues(r.Place, r.Kind).Inc()
		l.Logger.Error("a close was given up: close it by hand", "incident", r.Incident, "place", r.Place, "receiver", r.Receiver, "key", r.Key,
			"over_since", r.ClosedAt, "reason", string(r.Failure))
	}
	l.planner.abandoned = nil
	l.Metrics.gauge(l.planner, now)
	return true
}

// commit saves and goes on even if that fails: a page that could be doubled after a crash is better than none. The
// cursor then stays where it was.
func (l *Loop) commit(ctx context.Context) bool {
	l.unsaved = !l.save(ctx)
	return true
}

// save writes what changed.
func (l *Loop) save(ctx context.Context) bool {
	l.saving.Lock()
	defer l.saving.Unlock()
	l.mu.Lock()
	changed := l.planner.Dirty()
	l.mu.Unlock()
	failed := l.put(ctx, changed)
	if failed != nil {
		l.Logger.Error("write the outbox", "err", failed)
		l.Health("outbox_failing", false, failed.Error())
	} else if len(changed) > 0 {
		l.Health("outbox_failing", true, "")
	}
	return failed == nil
}

func (l *Loop) put(ctx context.Context, changed map[string][]byte) (failed error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	for key, value := range changed {
		if err := l.Store.Put(ctx, key, value); err != nil {
			failed = err
			l.Metrics.storeErr.Inc()
			l.mu.Lock()
			l.planner.dirty[key] = true
			l.mu.Unlock()
		}
	}
	return failed
}

// remember writes the cursor once all that followed from the events before it is safe. While behind nothing was
// concluded from them yet, so they have to be read again after a restart.
func (l *Loop) remember(ctx context.Context) bool {
	l.mu.Lock()
	behind := l.planner.Behind()
	l.mu.Unlock()
	if behind || l.unsaved || l.cursor == l.saved {
		return true
	}
	value, err := json.Marshal(l.cursor)
	if err == nil {
		l.saving.Lock()
		defer l.saving.Unlock()
		err = l.put(ctx, map[string][]byte{cursorKey: value})
	}
	if err == nil {
		l.saved = l.cursor
	}
	return true
}

func (l *Loop) kick(context.Context) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.kicks {
		select {
		case c <- struct{}{}:
		default:
		}
	}
	return true
}

// SetSilences takes the silences in force from now on; they are checked again right before each first message.
func (l *Loop) SetSilences(s []Silence) {
	l.mu.Lock()
	l.planner.SetSilences(slices.Clone(s))
	l.mu.Unlock()
	l.kick(context.Background())
}

// Records copies what the outbox knows of one incident, or of all for an empty id: what each place should have been told,
// what it has been told, and how the attempts went. It is for pages and commands that show this.
func (l *Loop) Records(incidentID string) []Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Record
	for _, r := range l.planner.records {
		if incidentID == "" || r.Incident == incidentID || slices.Contains(r.Members, incidentID) {
			out = append(out, *r)
		}
	}
	slices.SortFunc(out, func(a, b Record) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.key(), b.key()))
	})
	return out
}
