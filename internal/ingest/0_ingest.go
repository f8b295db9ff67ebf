package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// stages are one turn of a partition, over and over. Each returns soon and leaves its result in the partition.
var stages = []struct {
	name string
	run  func(*partition, context.Context) error
}{
	{"fetch", (*partition).fetch},   // 1_fetch.go: the next records
	{"decode", (*partition).decode}, // 2_decode.go, 3_cells.go: into events, and these into the batch
	{"store", (*partition).store},   // 4_store.go: reserve and insert the batch once it is due
	{"idle", (*partition).idle},     // 5_idle.go: a sign of life when there is nothing to read
}

// Deps are what the loop works with. All but OnNotice and Now are required.
type Deps struct {
	Log     Log
	Group   Group
	Store   Store
	Sources []Source
	Clock   Clock
	Logger  *slog.Logger
	Metrics *Metrics
	// Values keeps limits of attributes and operations; without it there are none.
	Values Values
	// OnNotice is told of what people should know; it must return at once.
	OnNotice func(Notice)
	// Now is the wall clock, for bounds and health; time.Now if nil.
	Now func() time.Time
}

// Loop reads all partitions that the group assigns to this process.
type Loop struct {
	cfg      Config
	kafka    Log
	group    Group
	store    Store
	sources  map[string]Source // by topic
	clock    Clock
	log      *slog.Logger
	metrics  *Metrics
	values   Values
	onNotice func(Notice)
	now      func() time.Time

	mu           sync.Mutex
	partitions   map[*partition]struct{}
	dictionaries map[string]*dictionary // by pipeline
	notices      []Notice
	generations  uint64
	withoutSince time.Time // since when there is no assignment; zero while there is one
	blockedSince time.Time
	lastError    string

	// Tests break rules to see that they are needed.
	withoutReservation, trustUnknown bool
}

// New checks the configuration. Nothing is read before Run.
func New(cfg Config, d Deps) (*Loop, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("ingest: %w", err)
	}
	l := &Loop{cfg: cfg, kafka: d.Log, group: d.Group, store: d.Store, clock: d.Clock, log: d.Logger, metrics: d.Metrics, values: d.Values, dictionaries: map[string]*dictionary{},
		onNotice: d.OnNotice, now: d.Now, sources: map[string]Source{}, partitions: map[*partition]struct{}{}}
	if l.now == nil {
		l.now = time.Now
	}
	for _, s := range d.Sources {
		for _, topic := range s.Pipeline.AllTopics() {
			if _, dup := l.sources[topic]; dup {
				return nil, fmt.Errorf("ingest: topic %q has two pipelines", topic)
			}
			l.sources[topic] = s
		}
	}
	return l, nil
}

// Topics are what the group must read, sorted.
func (l *Loop) Topics() []string { return slices.Sorted(maps.Keys(l.sources)) }

// Run works until ctx ends, and returns nil then. It is called once. It returns an error only where the group does,
// which means that trying on is of no use.
func (l *Loop) Run(ctx context.Context) error {
	l.assigned(false)
	err := l.group.Run(ctx, l.generation)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read as a member of the group: %w", err)
	}
	return nil
}

// generation works on the partitions of one assignment. One that is fenced or poisoned ends it for all.
func (l *Loop) generation(ctx context.Context, gen Generation) error {
	l.assigned(true)
	defer l.assigned(false)
	l.metrics.generations.Inc()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	assigned := l.readable(gen.Assigned())
	known, err := l.knownTopics(ctx, assigned)
	if err != nil {
		return nil //nolint:nilerr // ctx ended
	}
	var wg sync.WaitGroup
	errs := make([]error, len(assigned))
	for i, tp := range assigned {
		p := l.newPartition(tp, gen, known[tp.Topic], len(assigned))
		wg.Go(func() {
			if errs[i] = p.run(ctx); errs[i] != nil {
				cancel()
			}
		})
	}
	if len(assigned) == 0 {
		<-ctx.Done()
	}
	wg.Wait()
	return outcome(errs)
}

// assigned notes whether the group has given this process a share, be it an empty one.
func (l *Loop) assigned(yes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.withoutSince = l.now().UTC(); yes {
		l.withoutSince = time.Time{}
		l.generations++
	}
}

// outcome is ErrPoisoned if any partition says so: the group must hear of it. Having been fenced is no failure.
func outcome(errs []error) error {
	var other error
	for _, err := range errs {
		switch {
		case errors.Is(err, ErrPoisoned):
			return err
		case err != nil && !errors.Is(err, ErrFenced):
			other = err
		}
	}
	return other
}

func (l *Loop) readable(assigned []TopicPartition) []TopicPartition {
	var out []TopicPartition
	for _, tp := range assigned {
		if _, ok := l.sources[tp.Topic]; !ok {
			l.log.Error("assigned a topic that no pipeline reads", "topic", tp.Topic, "partition", tp.Partition)
			continue
		}
		out = append(out, tp)
	}
	return out
}

// knownTopics tells which topics were read before: a new partition of theirs is read from its first record. It asks
// before any partition begins, so that a first start does not take its own first marker for an old acquaintance.
func (l *Loop) knownTopics(ctx context.Context, assigned []TopicPartition) (map[string]bool, error) {
	known := map[string]bool{}
	failed := false
	for i := 0; i < len(assigned); {
		topic := assigned[i].Topic
		if _, asked := known[topic]; asked {
			i++
			continue
		}
		pos, err := l.store.Position(ctx, l.sources[topic].Pipeline.Stream, topic, 0)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			l.stuck(err)
			failed = true
			pause(ctx, l.cfg.RetryMax.Std())
			continue
		}
		known[topic] = pos.Found
	}
	if failed {
		l.stuck(nil)
	}
	return known, nil
}

// stuck notes that the loop cannot begin, nil that it can again.
func (l *Loop) stuck(err error) {
	l.mu.Lock()
	first := err != nil && l.blockedSince.IsZero()
	switch {
	case err == nil:
		l.blockedSince = time.Time{}
	case first:
		l.blockedSince = l.now().UTC()
		fallthrough
	default:
		l.lastError = err.Error()
	}
	l.mu.Unlock()
	if err != nil {
		l.metrics.failures.WithLabelValues(doingOpen).Inc()
	}
	if first {
		l.log.Warn("cannot read the ledger, trying on", "err", err)
	}
}

// pause waits, or less if ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
