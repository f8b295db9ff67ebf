package detect

import (
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// hold decides up to when event time can be judged. One partition that lags holds all up, because what it will bring may
// change the answer, but for a limited time of the ingest clock only. A partition that is catching up, such as at the start
// with a backlog, is waited for as long as it gains on the clock: judging its past without it would be of no use to anybody.
type hold struct {
	gained map[place]gain
}

// place is a partition of a topic, over all its incarnations.
type place struct {
	topic     string
	partition int32
}

// gain is the least lag a partition has had, and when.
type gain struct {
	lag time.Duration
	at  time.Time // ingest clock
}

// gainMin is how much a lag has to shrink to count as catching up: less is jitter.
const gainMin = signal.BucketSize

// decide gives the end of the last bucket that is complete, or zero, and the streams that are not waited for any longer.
func (h *hold) decide(p *Progress, grace, patience time.Duration) (to time.Time, partial []signal.Stream) {
	if h.gained == nil {
		h.gained = map[place]gain{}
	}
	var waited, top time.Time
	var given []Mark
	for _, m := range newestLives(p.Marks) {
		if m.Watermark.After(top) {
			top = m.Watermark
		}
		if h.stuck(&m, p.Clock, patience) {
			given = append(given, m)
			continue
		}
		if m.Watermark.IsZero() {
			return time.Time{}, nil // it has said nothing yet
		}
		if waited.IsZero() || m.Watermark.Before(waited) {
			waited = m.Watermark
		}
	}
	if waited.IsZero() {
		waited = top // all are stuck alike: nobody is behind the others
	}
	if waited.IsZero() {
		return time.Time{}, nil
	}
	to = waited.Add(-grace).UTC().Truncate(signal.BucketSize)
	for _, m := range given {
		if m.Watermark.Add(-grace).Before(to) && !slices.Contains(partial, m.Stream) {
			partial = append(partial, m.Stream)
		}
	}
	slices.Sort(partial)
	return to, partial
}

// newestLives leaves out what a topic that was made anew says of its old life.
func newestLives(marks []Mark) (out []Mark) {
	at := map[place]int{}
	for _, m := range marks {
		k := place{m.Topic, m.Partition.Partition}
		i, ok := at[k]
		switch {
		case !ok:
			at[k] = len(out)
			out = append(out, m)
		case m.Incarnation > out[i].Incarnation:
			out[i] = m
		}
	}
	return out
}

// stuck tells that a partition is behind by more than the patience, and for as long has not gained on the clock.
func (h *hold) stuck(m *Mark, clock time.Time, patience time.Duration) bool {
	k := place{m.Topic, m.Partition.Partition}
	lag := clock.Sub(m.Watermark)
	g, known := h.gained[k]
	if !known || lag < patience || lag <= g.lag-gainMin {
		h.gained[k] = gain{lag, clock}
		return false
	}
	return clock.Sub(g.at) >= patience
}
