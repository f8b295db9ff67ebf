package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errReopen makes the partition look again where it is: the log is not the one it was.
var errReopen = errors.New("the log changed")

// knowledge is all that is known of a partition when it is taken over.
type knowledge struct {
	ledger      Position
	committed   int64 // -1 where nothing was committed
	reservation *reservation
	start, end  int64     // of the log
	differs     bool      // the record before the ledger's end has another timestamp than it had
	foreign     bool      // somebody else committed
	lostAt      time.Time // since when a lost lock is waited out
}

// beginning is where a partition goes on.
type beginning struct {
	incarnation uint32
	offset      int64
	replay      *reservation // store [offset, End) first, if it is not stored
	first       bool         // never read: the configuration decides
	short       bool         // the log ends before what is known of it
	lost        bool         // what is being inserted is not known
	kind        NoticeKind
	notice      string
}

// decide is the rule of ledger and lock.
func decide(k knowledge) beginning {
	b := beginning{incarnation: k.ledger.Incarnation}
	r := k.reservation
	if r != nil && k.ledger.Found && r.Incarnation < k.ledger.Incarnation {
		r = nil // of an earlier life of the topic
	}
	newer := r != nil && (!k.ledger.Found || r.Incarnation > k.ledger.Incarnation)
	if newer {
		b.incarnation = r.Incarnation // somebody began it and stored nothing yet
	}
	b.short = k.ledger.Found && !newer && k.end < k.ledger.End || r != nil && k.end < r.End
	switch {
	case newer && b.short, !newer && k.ledger.Found && (k.end < k.ledger.End || k.differs):
		b.incarnation++
		b.offset, b.kind = k.start, NoticeAnew
		b.notice = fmt.Sprintf("the topic was made anew: its log ends at %d, stored is up to %d; reading its life %d from %d", k.end, k.ledger.End, b.incarnation, k.start)
	case newer:
		b.offset, b.replay = k.committed, r
	case b.short:
		// The log lost its end, but nothing that is stored: the reserved range cannot be replayed as it was.
		b.offset, b.kind, b.lost = k.ledger.End, NoticeMoved, true
		b.notice = fmt.Sprintf("reserved is up to %d, the log ends at %d: its end was lost, going on at %d, which is stored", r.End, k.end, k.ledger.End)
	case !k.ledger.Found && k.committed >= 0:
		b.offset = k.committed
	case !k.ledger.Found:
		b.first = true
	case r != nil && k.ledger.End == k.committed:
		b.offset, b.replay = k.committed, r
	case r != nil && k.ledger.End == r.End:
		// Stored, and not yet said so. Whether it is stored as this range is looked at all the same.
		b.offset, b.replay = k.committed, r
	default:
		b.offset = k.ledger.End
		b.lost = k.committed != k.ledger.End || k.foreign || !k.lostAt.IsZero()
		if k.committed != k.ledger.End {
			b.kind = NoticeMoved
			b.notice = fmt.Sprintf("Kafka's commit says %d, stored is up to %d: going on at what is stored", k.committed, k.ledger.End)
		}
	}
	return b
}

// begin finds where the partition is, reserves anew what a predecessor reserved, and skips it where it is stored.
func (p *partition) begin(ctx context.Context) error {
	k, err := p.learn(ctx)
	if err != nil {
		return err
	}
	b := decide(k)
	if b.notice != "" {
		p.loop.notice(p.tp, b.kind, b.notice)
	}
	if b.lost {
		if k, b, err = p.settle(ctx, k, b); err != nil {
			return err
		}
	}
	if b.first {
		if b.offset, err = p.firstStart(ctx, k); err != nil {
			return err
		}
	}
	p.incarnation, p.end, p.next, p.fetchNext, p.high = b.incarnation, b.offset, b.offset, b.offset, k.end
	p.records, p.release, p.batch, p.open, p.caughtUp = nil, nil, nil, false, false
	p.watermark, p.recordTime, p.fetchFailed, p.lookedAt = time.Time{}, time.Time{}, 0, time.Now()
	if k.ledger.Found && k.ledger.Incarnation == b.incarnation {
		p.watermark, p.recordTime = k.ledger.Watermark, k.ledger.RecordTime
		p.loop.clock.Observe(k.ledger.RecordTime)
	}
	p.report()
	if b.replay != nil {
		return p.takeOver(ctx, *b.replay, k.ledger)
	}
	p.log.Info("partition begins", "offset", p.end, "incarnation", p.incarnation)
	// The position is committed at once: a successor that finds nothing stored must not decide on another one.
	if err := p.commit(ctx, p.end, reservation{Incarnation: p.incarnation}); err != nil {
		return err
	}
	if k.ledger.Found && k.ledger.Incarnation == p.incarnation {
		return nil
	}
	return p.enter(ctx)
}

// enter tells the ledger where a life of the partition begins, before anything of it is reserved. Else a successor that
// finds neither a commit nor a batch could not tell a lock that was lost from a partition that nobody has read.
func (p *partition) enter(ctx context.Context) error {
	b := &Batch{Range: p.span(p.end), Stream: p.src.Pipeline.Stream, Time: p.loop.now(),
		Marker: Marker{Heartbeat: true, Clock: p.loop.clock.Now(), Revision: p.src.Pipeline.Revision}}
	return p.insist(ctx, func() error {
		if err := p.attempt(ctx, b); err != nil {
			return fmt.Errorf("enter the partition into the ledger: %w", err)
		}
		return nil
	})
}

// learn reads lock, ledger and log, in this order: a predecessor commits after it has stored, so what the lock says is in
// the ledger by the time that the ledger is read. (Read the other way round, a range that becomes stored and done in
// between would look like a commit ahead of the ledger.)
func (p *partition) learn(ctx context.Context) (k knowledge, err error) {
	stream := p.src.Pipeline.Stream
	err = p.insist(ctx, func() (err error) {
		var metadata string
		if k.committed, metadata, err = p.gen.Committed(ctx, p.tp); err != nil {
			return fmt.Errorf("read the commit: %w", err)
		}
		k.reservation = nil
		if r, ok := parseReservation(k.committed, metadata); ok {
			k.reservation = &r
		}
		k.foreign, k.lostAt = whose(k.committed, metadata)
		if k.ledger, err = p.loop.store.Position(ctx, stream, p.tp.Topic, p.tp.Partition); err != nil {
			return fmt.Errorf("read the ledger: %w", err)
		}
		if k.start, k.end, err = p.loop.kafka.Bounds(ctx, p.tp); err != nil {
			return fmt.Errorf("read the log's bounds: %w", err)
		}
		k.differs, err = p.differs(ctx, k)
		return err
	})
	if err != nil {
		return k, err
	}
	// A broker that has just become leader may tell an old end for a moment; believing it would read everything twice.
	for since := time.Now(); decide(k).short && !k.differs && ctx.Err() == nil && time.Since(since) < p.loop.cfg.AnewAfter.Std(); {
		pause(ctx, min(time.Second, p.loop.cfg.AnewAfter.Std()))
		err = p.insist(ctx, func() (err error) {
			if k.start, k.end, err = p.loop.kafka.Bounds(ctx, p.tp); err != nil {
				return err
			}
			k.differs, err = p.differs(ctx, k) // a log made anew may have grown beyond the old one by now
			return err
		})
		if err != nil {
			return k, err
		}
	}
	return k, nil
}

// differs looks whether the record before the ledger's end is the one that was stored.
func (p *partition) differs(ctx context.Context, k knowledge) (bool, error) {
	last := k.ledger.End - 1
	if !k.ledger.Found || k.ledger.RecordTime.IsZero() || last < k.start || last >= k.end {
		return false, nil
	}
	f, err := p.loop.kafka.Fetch(ctx, p.tp, last, 1, 0)
	if errors.Is(err, ErrOutOfRange) {
		return false, nil // the bounds moved since
	}
	if err != nil {
		return false, fmt.Errorf("fetch the last stored record: %w", err)
	}
	// The last offset of a batch may hold a transaction's end, which is no record.
	if len(f.Records) == 0 || f.Records[0].Offset != last {
		return false, nil
	}
	return f.Records[0].Time.UnixMilli() != k.ledger.RecordTime.UnixMilli(), nil
}

// firstStart is where a partition begins that nobody has read.
func (p *partition) firstStart(ctx context.Context, k knowledge) (offset int64, err error) {
	start := p.loop.cfg.Start
	switch {
	case p.known || start.Beginning:
		return k.start, nil
	case start.End:
		return k.end, nil
	}
	err = p.insist(ctx, func() error {
		offset, err = p.loop.kafka.OffsetAt(ctx, p.tp, p.loop.now().Add(-start.Back))
		return err
	})
	return offset, err
}

// takeOver finishes what a predecessor reserved. The reservation is made again first: from then on the predecessor's
// commits are refused, and what it still inserts goes under the same token.
func (p *partition) takeOver(ctx context.Context, r reservation, ledger Position) error {
	if was, is := r.Revision, p.src.Pipeline.Revision; was != is && was != "" {
		p.log.Warn("a reserved range is decoded by another revision of the pipeline than it was reserved for", "was", was, "is", is)
	}
	p.batch = p.newBatch(fromMillis(r.ReadAt), fromMillis(r.Watermark))
	p.batch.until, p.batch.again, p.batch.values = r.End, r.Again, r.Values
	if err := p.reserve(ctx, r.End); err != nil {
		return err
	}
	var stored bool
	err := p.insist(ctx, func() (err error) {
		stored, err = p.loop.store.Stored(ctx, p.src.Pipeline.Stream, p.span(r.End))
		return err
	})
	if err != nil {
		return err
	}
	if !stored && ledger.Found && ledger.Incarnation == p.incarnation && ledger.End > p.end {
		// Stored in other pieces than was reserved: only a lost rule can do that. The ledger is right.
		p.loop.notice(p.tp, NoticeMoved, fmt.Sprintf("reserved is %d to %d, stored in other pieces up to %d: going on at what is stored", p.end, r.End, ledger.End))
		p.batch = nil
		if err := p.commit(ctx, ledger.End, reservation{Incarnation: p.incarnation, LostAt: millis(p.loop.now())}); err != nil {
			return err
		}
		return errReopen
	}
	if !stored {
		p.log.Info("replaying a reserved range", "start", p.end, "end", r.End, "incarnation", p.incarnation)
		p.loop.metrics.replays.WithLabelValues("replayed").Inc()
		return nil
	}
	p.log.Info("a reserved range is stored already", "start", p.end, "end", r.End, "incarnation", p.incarnation)
	p.loop.metrics.replays.WithLabelValues("stored").Inc()
	p.spare, p.batch = p.batch, nil
	p.end, p.next, p.fetchNext, p.open = r.End, r.End, r.End, true
	return p.catchUp(ctx)
}

// catchUp reads the ledger again: a range that a predecessor's insert stored just now has moved the record before the end,
// by which the log is recognised, and the watermark.
func (p *partition) catchUp(ctx context.Context) error {
	return p.insist(ctx, func() error {
		pos, err := p.loop.store.Position(ctx, p.src.Pipeline.Stream, p.tp.Topic, p.tp.Partition)
		if err == nil && pos.Found && pos.Incarnation == p.incarnation && pos.End == p.end {
			p.recordTime = pos.RecordTime
			if pos.Watermark.After(p.watermark) {
				p.watermark = pos.Watermark
			}
		}
		return err
	})
}

// insist repeats a step until it works, ctx ends, or the generation is over.
func (p *partition) insist(ctx context.Context, step func() error) error {
	for wait := p.loop.cfg.RetryMin.Std(); ; wait = min(2*wait, p.loop.cfg.RetryMax.Std()) {
		err := step()
		switch {
		case err == nil:
			p.unblocked()
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrFenced), errors.Is(err, ErrPoisoned):
			return err
		}
		p.blocked(doingOpen, err)
		pause(ctx, wait)
	}
}
