package ingest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/nth"
)

const (
	// heldMax is how far a partition's events may usually be behind their records and still hold its watermark. What is
	// later than that comes late, and is counted where it belongs, but nobody waits for it.
	heldMax = 2 * time.Minute
	// replayAge is a max_age from which on a pipeline is for replays, whose events are as old as they are.
	replayAge = 7 * 24 * time.Hour
	// delaysPerRecord bounds how many events of one record say how late its events are.
	delaysPerRecord = 16
)

// delay notes how late events of a record are, some of many. from is where its events begin in times.
func (b *batch) delay(recordTime time.Time, from int) {
	if recordTime.UnixMilli() <= 0 || recordTime.After(b.readAt.Add(clockSlack)) {
		return
	}
	events := b.times[from:]
	for i := 0; i < len(events); i += 1 + len(events)/delaysPerRecord {
		b.delays = append(b.delays, recordTime.UnixMilli()-events[i])
	}
}

// newWatermark is the 99th percentile of the event times, so that a fast clock among many closes nobody's bucket; never
// above the records' own timestamps, so that one alone does not either, less what events are usually late, so that a part
// with fast clocks does not; never more than heldMax behind them, so that services which are very late do not hold up all
// others; never back.
func (b *batch) newWatermark() time.Time {
	n := len(b.times)
	if n == 0 || b.maxRecord.IsZero() {
		return b.watermark
	}
	w := nth.Of(b.times, int(math.Ceil(0.99*float64(n)))-1)
	newest := b.maxRecord.UnixMilli()
	usual := int64(0)
	if len(b.delays) > 0 {
		usual = max(nth.Of(b.delays, len(b.delays)*2/5), 0) // a little less than the median, in favour of going on
	}
	w = min(w, newest-usual)
	if !b.replays {
		w = max(w, newest-heldMax.Milliseconds())
	}
	if t := time.UnixMilli(w).UTC(); t.After(b.watermark) {
		return t
	}
	return b.watermark
}

// lateness remembers which services are usually late, to say so. It is no part of what is stored.
type lateness struct {
	services map[string]*lateService
}

type lateService struct {
	since time.Time // of the ingest clock; on time before
	delay time.Duration
	told  time.Time
}

const (
	lateAfter    = 2 * time.Minute // of being late without being on time once
	lateAgain    = 6 * time.Hour   // until it is told again
	lateMax      = 30 * time.Minute
	maxLateNamed = 1000
)

// look finds the services of a stored batch that are later than grace. What is in the batch is compared with its newest
// record, so batches of a catch-up, which span long times, say nothing.
func (l *lateness) look(b *batch, grace time.Duration) (late []string) {
	if b.maxRecord.IsZero() || b.maxRecord.Sub(b.firstRecord) > grace || len(b.cells)+len(b.points) == 0 {
		return nil
	}
	newest := map[string]int64{} // ends of buckets, Unix seconds
	for i := range b.cells {
		s := b.cells[i].key.Service
		newest[s] = max(newest[s], b.cells[i].bucket+bucketSeconds)
	}
	for i := range b.points {
		s := b.points[i].Path.Service
		newest[s] = max(newest[s], b.points[i].Time.Unix())
	}
	now := b.maxRecord
	for s, at := range newest {
		delay := now.Sub(time.Unix(at, 0))
		known := l.services[s]
		switch {
		case delay <= grace:
			delete(l.services, s)
		case known == nil && len(l.services) < maxLateNamed:
			if l.services == nil {
				l.services = map[string]*lateService{}
			}
			l.services[strings.Clone(s)] = &lateService{since: now, delay: delay}
		case known != nil:
			known.delay = delay
			if now.Sub(known.since) >= lateAfter && (known.told.IsZero() || now.Sub(known.told) >= lateAgain) {
				known.told = now
				late = append(late, s)
			}
		}
	}
	slices.Sort(late)
	return late
}

// lookForLate tells of services whose events usually come later than anybody waits.
func (p *partition) lookForLate(b *batch) {
	for _, s := range p.late.look(b, p.loop.cfg.IdleGrace.Std()) {
		delay := p.late.services[s].delay.Round(time.Second)
		text := fmt.Sprintf("service %q is usually %s late: it is counted where it belongs, but nobody waits for it", s, delay)
		if delay > lateMax {
			text += "; what is that old may be judged no more"
		}
		p.loop.notice(p.tp, NoticeLate, text)
	}
	p.update(func(h *PartitionHealth) { h.LateServices = p.late.told() })
}

// told are the services that are late by now, sorted.
func (l *lateness) told() (names []string) {
	for s, known := range l.services {
		if !known.told.IsZero() {
			names = append(names, s)
		}
	}
	slices.Sort(names)
	return names
}
