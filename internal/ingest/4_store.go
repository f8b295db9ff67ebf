package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// store reserves and inserts the batch once it is due.
func (p *partition) store(ctx context.Context) error {
	b := p.batch
	if b == nil || !p.due() {
		return nil
	}
	end := p.next
	if err := p.admit(ctx, b); err != nil {
		return err
	}
	batch := b.finish(p.span(end), p.recordTime, p.src.Pipeline.Revision, p.loop.clock.Now())
	batch.Again = b.again
	if b.until == 0 {
		if err := p.reserve(ctx, end); err != nil {
			return err
		}
	}
	if err := p.insert(ctx, batch); err != nil {
		return err
	}
	p.end, p.recordTime = end, batch.Marker.RecordTime
	if batch.Marker.Watermark.After(p.watermark) { // a replayed range may be behind later heartbeats
		p.watermark = batch.Marker.Watermark
	}
	p.lookForLate(b)
	b.release()
	p.open, p.spare, p.batch = true, b, nil
	p.signOfLife(batch.Marker.Watermark)
	if p.loop.withoutReservation {
		return p.commit(ctx, p.end, reservation{Incarnation: p.incarnation})
	}
	return nil
}

// due tells whether the batch must not wait for more.
func (p *partition) due() bool {
	b := p.batch
	switch {
	case b.until != 0:
		return p.next >= b.until
	case len(p.records) > 0: // it was full before they were read
		return true
	}
	switch age := time.Since(b.began); {
	case age >= p.loop.cfg.MaxLinger.Std(), b.full():
		return true
	default:
		// Who is behind gathers as long as any may: what waits in the log has waited longer, and larger batches have fewer
		// rows, each of which costs more than a request.
		return age >= b.linger && p.caughtUp
	}
}

// span is the range from the partition's end.
func (p *partition) span(end int64) Range {
	return Range{Topic: p.tp.Topic, Incarnation: p.incarnation, Partition: p.tp.Partition, Start: p.end, End: end}
}

// reserve commits the range of the batch. Only after it may the batch be inserted.
func (p *partition) reserve(ctx context.Context, end int64) error {
	b := p.batch
	if p.loop.withoutReservation {
		p.reservedAt = time.Now()
		return nil
	}
	// The age counts from before the request: the broker may have applied it long before the answer came.
	at := time.Now()
	err := p.commit(ctx, p.end, reservation{End: end, Incarnation: p.incarnation, Revision: p.src.Pipeline.Revision,
		Watermark: millis(b.watermark), ReadAt: millis(b.readAt), Again: b.again, Values: b.values})
	if err != nil {
		return fmt.Errorf("reserve up to %d: %w", end, err)
	}
	p.reservedAt = at
	return nil
}

// commit writes the lock. Its outcome is known, or the member is poisoned.
func (p *partition) commit(ctx context.Context, offset int64, r reservation) error {
	err := p.gen.Commit(ctx, p.tp, offset, r.String())
	m := p.loop.metrics.reserved
	switch {
	case err == nil:
		m.WithLabelValues(outcomeOK).Inc()
		p.open = false
		return nil
	case errors.Is(err, ErrFenced):
		m.WithLabelValues(outcomeFenced).Inc()
		return fmt.Errorf("commit %d: %w", offset, err)
	case p.loop.trustUnknown:
		return nil
	}
	m.WithLabelValues(outcomeWhat).Inc()
	return fmt.Errorf("commit %d: %w: %w", offset, ErrPoisoned, err)
}

// insert stores the batch, however long it takes; meanwhile the partition fetches nothing. Each try has the same token.
// A reservation that has become old is made again before: a process that slept must learn that it lost the partition.
func (p *partition) insert(ctx context.Context, b *Batch) error {
	hopeless := 0
	for wait := p.loop.cfg.RetryMin.Std(); ; wait = min(2*wait, p.loop.cfg.RetryMax.Std()) {
		if time.Since(p.reservedAt) > reservationAge {
			if err := p.reserve(ctx, b.Range.End); err != nil {
				return err
			}
		}
		began := time.Now()
		err := p.attempt(ctx, b)
		switch {
		case err == nil:
			p.unblocked()
			p.loop.metrics.stored(b, time.Since(began))
			p.countLetters()
			p.update(func(h *PartitionHealth) { p.lastBatch, h.LastStored = time.Now(), p.loop.now().UTC() })
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		err = fmt.Errorf("insert %s: %w", b.Range.Token(), err)
		if hopeless = p.hopeless(hopeless, err); hopeless >= hopelessTries {
			err = fmt.Errorf("trying again will not help, %d times it was refused; the records wait in Kafka until it is mended: %w", hopeless, err)
			wait = p.loop.cfg.RetryMax.Std()
		}
		p.blocked(doingInsert, err)
		if hopeless == hopelessTries {
			p.log.Error("partition cannot be stored", "err", err)
		}
		pause(ctx, wait)
	}
}

// hopelessTries is how often an insert is refused for a reason that does not pass before that is told.
const hopelessTries = 3

// hopeless counts such refusals in a row. The store's errors say whether the same can succeed later without anybody
// changing something.
func (p *partition) hopeless(before int, err error) int {
	var says interface{ Retry() bool }
	if errors.As(err, &says) && !says.Retry() {
		return before + 1
	}
	return 0
}

func (p *partition) attempt(ctx context.Context, b *Batch) error {
	ctx, cancel := context.WithTimeout(ctx, p.loop.cfg.InsertTimeout.Std())
	defer cancel()
	return p.loop.store.Insert(ctx, b)
}

func (p *partition) countLetters() {
	for _, d := range p.batch.letters {
		p.loop.metrics.rejected.WithLabelValues(string(p.batch.stream), d.Reason).Inc()
	}
}

// lingerNow shares the inserts a second among the partitions that had data of late.
func (l *Loop) lingerNow() time.Duration {
	l.mu.Lock()
	active, now := 0, time.Now()
	for p := range l.partitions {
		if now.Sub(p.lastBatch) < 2*l.cfg.MaxLinger.Std() {
			active++
		}
	}
	l.mu.Unlock()
	d := time.Duration(float64(max(active, 1)) / l.cfg.InsertsPerSecond * float64(time.Second))
	d = min(max(d, l.cfg.MinLinger.Std()), l.cfg.MaxLinger.Std())
	l.metrics.linger.Set(d.Seconds())
	return d
}

// farewell says that the last batch is done, if the generation still lets us, so that a successor need not look it up.
func (p *partition) farewell(ctx context.Context) error {
	if !p.open {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	err := p.commit(ctx, p.end, reservation{Incarnation: p.incarnation})
	if errors.Is(err, ErrPoisoned) {
		return err
	}
	return nil
}
