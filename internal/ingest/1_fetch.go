package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// trickle is how long to wait between fetches of a log that has just been read to its end: a topic with a few records a
// second needs no thousand fetches a second.
const trickle = 20 * time.Millisecond

// fetch gets the next records, or none. It waits no longer than the batch may.
func (p *partition) fetch(ctx context.Context) error {
	if len(p.records) > 0 {
		return nil // of the last fetch, the batch was full
	}
	wait := p.loop.cfg.FetchWait.Std()
	if p.loop.clock.Kind() == ClockRecords {
		wait = min(wait, recordsBeatMin) // a heartbeat is as old as the fetch before it
	}
	if p.batch != nil && p.batch.until == 0 {
		left := p.batch.linger - time.Since(p.batch.began)
		if p.caughtUp && left > 0 {
			pause(ctx, min(trickle, left))
			left -= trickle
		}
		wait = max(min(wait, left), 0)
	}
	// Taken before the fetch: if it comes back empty, everything that was written before is read.
	clock := p.loop.clock.Now()
	p.emptySince = time.Time{}
	f, err := p.loop.kafka.Fetch(ctx, p.tp, p.next, int(p.loop.cfg.FetchBytes), wait)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ErrOutOfRange):
		return p.outOfRange(ctx)
	case err != nil:
		return p.fetchFails(ctx, err)
	}
	if p.fetchFailed > 0 {
		p.fetchFailed = 0
		p.unblocked()
	}
	if f.HighWatermark < p.end || p.batch != nil && f.HighWatermark < p.batch.until {
		return errReopen // begin looks whether it stays like that
	}
	p.records, p.release, p.fetchNext, p.high = f.Records, f.Release, max(f.Next, p.next), f.HighWatermark
	p.caughtUp = p.fetchNext >= f.HighWatermark
	if p.caughtUp && len(f.Records) == 0 {
		p.emptySince = clock // zero while the clock knows nothing
	}
	return nil
}

// fetchFails waits before the next try. The batch that is being gathered goes its way meanwhile.
func (p *partition) fetchFails(ctx context.Context, err error) error {
	p.caughtUp = false
	p.blocked(doingFetch, err)
	wait := min(p.loop.cfg.RetryMin.Std()<<min(p.fetchFailed, 10), p.loop.cfg.RetryMax.Std())
	if p.batch != nil && p.batch.until == 0 {
		wait = min(wait, max(p.batch.linger-time.Since(p.batch.began), p.loop.cfg.RetryMin.Std()))
	}
	p.fetchFailed++
	pause(ctx, wait)
	return nil
}

// outOfRange is a gap where the log now begins later, else a log that is not the one it was.
func (p *partition) outOfRange(ctx context.Context) error {
	var start, end int64
	err := p.insist(ctx, func() (err error) {
		start, end, err = p.loop.kafka.Bounds(ctx, p.tp)
		return err
	})
	if err != nil {
		return err
	}
	if p.next >= start {
		if p.next <= end {
			pause(ctx, p.loop.cfg.RetryMin.Std()) // the bounds moved since
			return nil
		}
		return errReopen
	}
	if p.batch == nil {
		p.batch = p.newBatch(p.loop.now(), p.watermark)
	}
	to := start
	if u := p.batch.until; u != 0 {
		to = min(to, u)
	}
	text := fmt.Sprintf("offsets %d to %d were deleted from the log before they were read", p.next, to-1)
	p.loop.notice(p.tp, NoticeGap, text)
	p.batch.gap(p.next, to, text)
	p.next, p.fetchNext = to, to
	return nil
}
