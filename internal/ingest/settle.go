package ingest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// settle waits out a lock that was lost: committed offsets were deleted or set by hand, and with them went which range a
// predecessor was inserting. Its insert may still be on its way, under a token that nobody knows. Therefore the partition
// rests until it must have landed, looks at the ledger again, and goes on from there. The commit says since when, so
// that a successor does not wait from the beginning.
//
// Dead letters come before the block that they belong to. Those that are left of a range whose block never came are
// stored already, so the first batch covers them all and leaves them out.
func (p *partition) settle(ctx context.Context, k knowledge, b beginning) (knowledge, beginning, error) {
	since := k.lostAt
	if now := p.loop.now(); since.IsZero() || since.After(now) {
		since = now.UTC().Truncate(time.Millisecond)
		if err := p.commit(ctx, b.offset, reservation{Incarnation: b.incarnation, LostAt: millis(since)}); err != nil {
			return k, b, err
		}
	}
	if wait := p.loop.cfg.Settle.Std() - p.loop.now().Sub(since); wait > 0 {
		p.log.Info("waiting for inserts that may be on their way", "offset", b.offset, "wait", wait)
		pause(ctx, wait)
	}
	k, err := p.learn(ctx)
	if err != nil {
		return k, b, err
	}
	if b = decide(k); !b.lost {
		return k, b, nil // somebody else went on meanwhile, or the topic is another one
	}
	r := Range{Topic: p.tp.Topic, Incarnation: b.incarnation, Partition: p.tp.Partition, Start: b.offset, End: math.MaxInt64}
	var letters []int64
	err = p.insist(ctx, func() (err error) {
		if letters, err = p.loop.store.Letters(ctx, p.src.Pipeline.Stream, r); err != nil {
			return fmt.Errorf("look for dead letters: %w", err)
		}
		return nil
	})
	if err != nil || len(letters) == 0 {
		return k, b, err
	}
	if last := slices.Max(letters); last < k.end {
		b.replay = &reservation{End: last + 1, Incarnation: b.incarnation, Revision: p.src.Pipeline.Revision, Watermark: millis(k.ledger.Watermark),
			ReadAt: millis(p.loop.now()), Again: true}
	}
	return k, b, nil
}
