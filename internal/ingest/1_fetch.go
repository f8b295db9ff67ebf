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

// trust is how long the log that answers is taken for the one that answered before. A topic can hardly be deleted, made
// anew and filled again within it without any fetch failing.
const trust = 2 * time.Second

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
	if p.fetchFailed > 0 || time.Since(p.lookedAt) > trust {
		switch same, err := p.sameLog(ctx); {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return p.fetchFails(ctx, err)
		case !same:
			return errReopen
		}
	}
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
	p.lookedAt = time.Now()
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

// sameLog looks, after a failure or a pause, whether the record before the end is still the one that was stored: a topic
// may have been made anew meanwhile, and its log be longer already than the old one was.
func (p *partition) sameLog(ctx context.Context) (bool, error) {
	last, at := p.end-1, p.recordTime
	if at.IsZero() { // nothing is stored: what was read last says it as well
		if p.batch == nil || p.batch.records == 0 {
			return p.next == p.end, nil
		}
		last, at = p.next-1, p.batch.lastRecord
	}
	f, err := p.loop.kafka.Fetch(ctx, p.tp, last, 1, 0)
	if errors.Is(err, ErrOutOfRange) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("fetch the last stored record: %w", err)
	}
	if f.Release != nil {
		defer f.Release()
	}
	// The last offset of a batch may hold a transaction's end, which is no record.
	return len(f.Records) == 0 || f.Records[0].Offset != last || f.Records[0].Time.UnixMilli() == at.UnixMilli(), nil
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
