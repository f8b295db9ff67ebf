package ingest

import (
	"context"
	"time"
)

// On the records clock a heartbeat is due when the clock has advanced this far, but not more often than that.
const (
	recordsBeat    = 10 * time.Second
	recordsBeatMin = 250 * time.Millisecond
	// idleCommit is how long a partition is idle before it says that its last batch is done; until then the next
	// reservation says it.
	idleCommit = 2 * time.Second
)

// idle does what is due when there was nothing to read.
func (p *partition) idle(ctx context.Context) error {
	if p.batch != nil || len(p.records) > 0 || p.emptySince.IsZero() && !p.caughtUp {
		return nil
	}
	if p.open && time.Since(p.lastBatch) >= idleCommit {
		if err := p.commit(ctx, p.end, reservation{Incarnation: p.incarnation}); err != nil {
			return err
		}
	}
	if p.emptySince.IsZero() || !p.beatDue(p.emptySince) {
		return nil
	}
	return p.heartbeat(ctx, p.emptySince)
}

func (p *partition) beatDue(clock time.Time) bool {
	since := time.Since(p.beat)
	if p.loop.clock.Kind() == ClockRecords {
		return !clock.Before(p.beatClock.Add(recordsBeat)) && since >= recordsBeatMin
	}
	return since >= p.loop.cfg.Heartbeat.Std()
}

// signOfLife counts a stored batch as a heartbeat if it brings the watermark as far.
func (p *partition) signOfLife(watermark time.Time) {
	if now := p.loop.clock.Now(); !watermark.Before(now.Add(-p.loop.cfg.IdleGrace.Std())) {
		p.beat, p.beatClock = time.Now(), now
	}
}

// heartbeat says that everything before clock is read. It is not reserved: a late one of a predecessor is as true as it
// was, covers no offsets, and has a token of its own.
func (p *partition) heartbeat(ctx context.Context, clock time.Time) error {
	watermark := clock.Add(-p.loop.cfg.IdleGrace.Std())
	if watermark.Before(p.watermark) {
		watermark = p.watermark
	}
	b := &Batch{Range: p.span(p.end), Stream: p.src.Pipeline.Stream, Time: clock,
		Marker: Marker{Heartbeat: true, Clock: clock, Watermark: watermark, RecordTime: p.recordTime, Revision: p.src.Pipeline.Revision}}
	if err := p.attempt(ctx, b); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p.blocked(doingIdle, err)
		pause(ctx, p.loop.cfg.RetryMin.Std())
		return nil
	}
	p.unblocked()
	p.loop.metrics.heartbeats.Inc()
	p.watermark, p.beat, p.beatClock = watermark, time.Now(), clock
	p.update(func(h *PartitionHealth) { h.LastStored = p.loop.now().UTC() })
	return nil
}
