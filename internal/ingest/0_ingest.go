package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tocsin-project/tocsin/internal/pipeline"
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
	onNotice func(Notice)
	now      func() time.Time

	mu           sync.Mutex
	partitions   map[*partition]struct{}
	notices      []Notice
	generations  uint64
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
	l := &Loop{cfg: cfg, kafka: d.Log, group: d.Group, store: d.Store, clock: d.Clock, log: d.Logger, metrics: d.Metrics,
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
	l.mu.Lock()
	l.generations++
	l.mu.Unlock()
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

// partition is one assigned partition in one generation. It belongs to one goroutine, except for health.
type partition struct {
	loop   *Loop
	tp     TopicPartition
	src    Source
	gen    Generation
	known  bool // the topic was read before
	reader *Reader
	log    *slog.Logger
	health PartitionHealth // guarded by loop.mu

	maxBytes int // of a batch

	// Where it is.
	incarnation uint32
	end         int64 // first offset not stored
	next        int64 // first offset not in the batch
	watermark   time.Time
	recordTime  time.Time // of the record before end
	high        int64     // end of the log as last seen

	// What the stages hand on.
	records   []Record // fetched, not decoded yet
	fetchNext int64    // where to go on after them
	batch     *batch   // being gathered, nil between batches
	spare     *batch   // its memory

	reservedAt  time.Time // when the batch was reserved, monotonic
	open        bool      // the last reservation is stored, the commit does not say so yet
	caughtUp    bool
	emptySince  time.Time // the clock before the last fetch, which came back empty; zero if it did not
	lastBatch   time.Time // stored, monotonic; guarded by loop.mu, written by the owner only
	beat        time.Time // last heartbeat, monotonic
	beatClock   time.Time // and on the ingest clock
	fetchFailed int
}

func (l *Loop) newPartition(tp TopicPartition, gen Generation, known bool, of int) *partition {
	src := l.sources[tp.Topic]
	p := &partition{loop: l, tp: tp, src: src, gen: gen, known: known, reader: src.Reader(),
		log:      l.log.With("topic", tp.Topic, "partition", tp.Partition),
		maxBytes: int(min(l.cfg.MaxBatch, max(l.cfg.MaxMemory/pipeline.Size(max(of, 1)), 1<<20)))}
	p.health = PartitionHealth{Topic: tp.Topic, Partition: tp.Partition, Stream: src.Pipeline.Stream}
	return p
}

// run works until ctx ends, or the generation refuses a commit.
func (p *partition) run(ctx context.Context) error {
	p.loop.mu.Lock()
	p.loop.partitions[p] = struct{}{}
	p.loop.mu.Unlock()
	defer p.leave()
	err := p.work(ctx)
	if ctx.Err() != nil && !errors.Is(err, ErrPoisoned) {
		err = nil
	}
	if err == nil {
		err = p.farewell(ctx)
	}
	return err
}

func (p *partition) work(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := p.begin(ctx); err != nil {
			return err
		}
		err := p.turns(ctx)
		if !errors.Is(err, errReopen) {
			return err
		}
		pause(ctx, p.loop.cfg.RetryMin.Std())
	}
	return nil
}

func (p *partition) turns(ctx context.Context) error {
	for ctx.Err() == nil {
		for _, s := range stages {
			if err := s.run(p, ctx); err != nil {
				return fmt.Errorf("%s %s/%d: %w", s.name, p.tp.Topic, p.tp.Partition, err)
			}
		}
		p.report()
	}
	return nil
}

// report brings health and gauges up to date.
func (p *partition) report() {
	lag := max(p.high-p.next, 0)
	if p.batch != nil {
		lag = max(p.high-p.end, 0)
	}
	number := strconv.Itoa(int(p.tp.Partition))
	p.loop.metrics.lag.WithLabelValues(p.tp.Topic, number).Set(float64(lag))
	if !p.watermark.IsZero() {
		p.loop.metrics.watermark.WithLabelValues(p.tp.Topic, number).Set(float64(p.watermark.UnixMilli()) / 1000)
	}
	p.update(func(h *PartitionHealth) {
		h.Incarnation, h.Position, h.Lag, h.CaughtUp, h.Watermark = p.incarnation, p.end, lag, p.caughtUp && p.batch == nil, p.watermark
	})
}

func (p *partition) leave() {
	p.loop.mu.Lock()
	if !p.health.BlockedSince.IsZero() {
		p.loop.metrics.blocked.Dec()
	}
	delete(p.loop.partitions, p)
	p.loop.mu.Unlock()
	number := strconv.Itoa(int(p.tp.Partition))
	p.loop.metrics.lag.DeleteLabelValues(p.tp.Topic, number)
	p.loop.metrics.watermark.DeleteLabelValues(p.tp.Topic, number)
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
