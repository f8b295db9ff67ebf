package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
)

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
	release   func()   // gives their memory back, nil if nobody wants it
	fetchNext int64    // where to go on after them
	batch     *batch   // being gathered, nil between batches
	spare     *batch   // its memory
	batches   uint32   // begun

	reservedAt  time.Time // when the batch was reserved, monotonic
	open        bool      // the last reservation is stored, the commit does not say so yet
	caughtUp    bool
	emptySince  time.Time // the clock before the last fetch, which came back empty; zero if it did not
	lastBatch   time.Time // stored, monotonic; guarded by loop.mu, written by the owner only
	beat        time.Time // last heartbeat, monotonic
	beatClock   time.Time // and on the ingest clock
	fetchFailed int
	late        lateness
	lookedAt    time.Time // when the log was last seen to be the one that it was, monotonic
}

func (l *Loop) newPartition(tp TopicPartition, gen Generation, known bool, of int) *partition {
	src := l.sources[tp.Topic]
	p := &partition{loop: l, tp: tp, src: src, gen: gen, known: known, reader: src.Reader(),
		log:      l.log.With("topic", tp.Topic, "partition", tp.Partition),
		maxBytes: int(min(l.cfg.MaxBatch, max(l.cfg.MaxMemory/pipeline.Size(max(of, 1)), 1<<20)))}
	if src.Pipeline.Stream != signal.Requests {
		p.maxBytes = min(p.maxBytes, maxTexts)
	}
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
