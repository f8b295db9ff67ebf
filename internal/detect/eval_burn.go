package detect

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	burnBuckets  = int64(rule.BurnStep / signal.BucketSize)
	burnSteps    = 72 // of BurnStep: six hours
	burnHours    = int64(rule.MaxLong / time.Hour)
	stepsAnHour  = int64(time.Hour / rule.BurnStep)
	burnSettles  = keepBuckets / 2 // a step is summed up when it is this old: until then late rows still count
	maxHistories = 200_000         // of paths and slices that one rule keeps
)

// histories are what one burn-rate rule keeps of its paths beyond the hour of which all is kept. It is nil where no window asks for
// more.
type histories struct {
	by     map[signal.Key]*history
	hourly bool // some window is longer than the steps reach
}

// history are sums of requests and bad ones, by five minutes for six hours and by hours for three days. A place is told by its
// number modulo the ring's length; Step is the newest one that is summed up.
type history struct {
	step  int64
	steps [burnSteps]tallied
	hours []tallied // burnHours of them, or none where no window needs them
	bads  uint64    // bad ones in all of them
	known []settledSum
}

// settledSum is what the summed up part of a window was, and up to which step it is that.
type settledSum struct {
	window, until int64
	n, bad        uint64
}

type tallied struct{ n, bad uint32 }

func newHistories(rates []rule.BurnRate, objective rule.Share) recall {
	longest := time.Duration(0)
	for _, b := range rates {
		longest = max(longest, b.Long, b.Short)
	}
	if objective <= 0 || longest <= rule.MaxWindow {
		return nil
	}
	return &histories{by: map[signal.Key]*history{}, hourly: buckets(longest) > burnSteps*burnBuckets}
}

func (hs *histories) make(step int64) *history {
	h := &history{step: step}
	if hs.hourly {
		h.hours = make([]tallied, burnHours)
	}
	return h
}

// settle sums up the steps that are old enough. h is what is kept of the series, if the caller knows.
func (hs *histories) settle(s *series, t int64, h *history, sum func(from, to int64) (n, bad uint64)) *history {
	if h == nil {
		h = hs.by[s.key]
	}
	upTo := floorDiv(t-burnSettles, burnBuckets) - 1
	if h == nil {
		if len(hs.by) >= maxHistories {
			return nil
		}
		h = hs.make(floorDiv(t-keepBuckets, burnBuckets))
		hs.by[s.key] = h
	}
	if h.step < upTo-burnHours*stepsAnHour {
		clear(h.hours) // all that was known is too old
		*h = history{step: upTo - keepBuckets/burnBuckets, hours: h.hours, known: h.known[:0]}
	}
	if h.step < upTo {
		defer h.settled()
	}
	for h.step < upTo {
		h.step++
		n, bad := sum(h.step*burnBuckets, (h.step+1)*burnBuckets)
		*h.at(h.step) = tallied{clip32(n), clip32(bad)}
		if h.hours == nil {
			continue
		}
		hour := h.hour(floorDiv(h.step, stepsAnHour))
		if h.step%stepsAnHour == 0 {
			*hour = tallied{}
		}
		hour.n, hour.bad = clip32(uint64(hour.n)+n), clip32(uint64(hour.bad)+bad)
	}
	return h
}

func (h *history) at(step int64) *tallied   { return &h.steps[((step%burnSteps)+burnSteps)%burnSteps] }
func (h *history) hour(hour int64) *tallied { return &h.hours[((hour%burnHours)+burnHours)%burnHours] }

func clip32(n uint64) uint32 { return uint32(min(n, math.MaxUint32)) }

// settled notes what follows from the sums.
func (h *history) settled() {
	h.bads, h.known = 0, h.known[:0]
	longest := h.hours
	if longest == nil {
		longest = h.steps[:]
	}
	for i := range longest {
		h.bads += uint64(longest[i].bad)
	}
}

// sum adds up the window that ends at t: the newest part as it is, before that by steps, and beyond six hours by whole hours, the
// oldest of which may begin up to an hour early.
func (h *history) sum(t, window int64, exact func(from, to int64) (n, bad uint64)) (n, bad uint64) {
	n, bad = exact(max(t-window, (h.step+1)*burnBuckets), t)
	sn, sbad := h.settledSum(t, window)
	return n + sn, bad + sbad
}

// settledSum is the part of the window that ends at t which is summed up. It changes when a step or an hour leaves the window, and is
// remembered until then.
func (h *history) settledSum(t, window int64) (n, bad uint64) {
	for i := range h.known {
		k := &h.known[i]
		if k.window == window {
			if t > k.until || t < k.until-burnBuckets {
				k.n, k.bad = h.sumSettled(t-window, window)
				k.until = sameUntil(t-window) + window
			}
			return k.n, k.bad
		}
	}
	n, bad = h.sumSettled(t-window, window)
	h.known = append(h.known, settledSum{window, sameUntil(t-window) + window, n, bad})
	return n, bad
}

// sameUntil is the last beginning of a window up to which as many steps and hours lie in it.
func sameUntil(from int64) int64 {
	const hour = stepsAnHour * burnBuckets
	return min(-floorDiv(-from, burnBuckets)*burnBuckets, floorDiv(from, hour)*hour+hour-1)
}

func (h *history) sumSettled(from, window int64) (n, bad uint64) {
	step := h.step
	for ; step > h.step-burnSteps && step*burnBuckets >= from; step-- {
		n, bad = n+uint64(h.at(step).n), bad+uint64(h.at(step).bad)
		if step%stepsAnHour == 0 && window > burnSteps*burnBuckets {
			step--
			break // whole hours from here on
		}
	}
	if window <= burnSteps*burnBuckets {
		return n, bad
	}
	for hour := floorDiv(step, stepsAnHour); step%stepsAnHour == stepsAnHour-1 && (hour+1)*stepsAnHour*burnBuckets > from && hour > floorDiv(h.step, stepsAnHour)-burnHours; hour-- {
		n, bad = n+uint64(h.hour(hour).n), bad+uint64(h.hour(hour).bad)
	}
	return n, bad
}

// burns judge a share by an objective: so many times what it allows, in a long window and in a short one.
type burns struct {
	rates     []rule.BurnRate
	allowed   float64 // share of bad requests
	objective float64
	history   *histories
	minBad    uint64
	minTotal  uint64
	verb      string
	sum       func(s *series, from, to int64) (n, bad uint64)
}

// assess gives the pair of windows that is exceeded most, or the first.
func (b *burns) assess(s *series, t int64) assessed {
	exact := func(from, to int64) (n, bad uint64) { return b.sum(s, from, to) }
	var h *history
	if b.history != nil {
		h = b.history.settle(s, t, nil, exact)
	}
	within := func(w time.Duration) (n, bad uint64) {
		if w > rule.MaxWindow && h != nil {
			return h.sum(t, buckets(w), exact)
		}
		return exact(t-buckets(w), t)
	}
	var a assessed
	worst := -1.0
	for _, r := range b.rates {
		n, bad := within(r.Long)
		share := float64(bad) / math.Max(float64(n), 1)
		limit := r.Factor * b.allowed
		over := share / limit
		hit := share > limit && bad >= max(b.minBad, 1) && n >= b.minTotal
		if hit {
			sn, sbad := within(r.Short)
			hit = float64(sbad) > limit*float64(sn)
		}
		if worst >= 0 && (a.abnormal && !hit || a.abnormal == hit && over <= worst) {
			continue
		}
		worst = over
		a = assessed{n: n, bad: bad, share: share, abnormal: hit, explain: func(what string) string {
			return fmt.Sprintf("%d of %d %s %s in %s (%s)%s, %.3g times what the objective of %.6g%% allows",
				bad, n, what, b.verb, shortDuration(r.Long), percent(share), where(s.key), share/b.allowed, b.objective*100)
		}}
	}
	return a
}

// forget drops what is kept of paths that are gone.
func (hs *histories) forget(d *Detector) {
	for k := range hs.by {
		if d.seriesOf(k) == nil {
			delete(hs.by, k)
		}
	}
}

func (hs *histories) save() ([]byte, error) {
	var w packer
	keys := make([]signal.Key, 0, len(hs.by))
	for k := range hs.by {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, signal.Key.Compare)
	w.uint(uint64(len(keys)))
	w.bool(hs.hourly)
	for _, k := range keys {
		h := hs.by[k]
		w.key(k)
		w.int(h.step)
		for _, ring := range [][]tallied{h.steps[:], h.hours} {
			for _, x := range ring {
				w.b = binary.LittleEndian.AppendUint32(w.b, x.n)
				w.b = binary.LittleEndian.AppendUint32(w.b, x.bad)
			}
		}
	}
	return w.b, nil
}

func (hs *histories) load(data []byte) error {
	r := unpacker{b: data}
	n, hourly := r.len(), r.bool()
	for range n {
		k := r.key()
		h := (&histories{hourly: hourly}).make(r.int())
		for _, ring := range [][]tallied{h.steps[:], h.hours} {
			b := r.bytes(8 * len(ring))
			for i := 0; i < len(ring) && r.err == nil; i++ {
				ring[i] = tallied{binary.LittleEndian.Uint32(b[8*i:]), binary.LittleEndian.Uint32(b[8*i+4:])}
			}
		}
		if hs.hourly && !hourly {
			return r.err // it looked less far back: what it knew is too little
		} else if !hs.hourly {
			h.hours = nil
		}
		h.settled()
		hs.by[k] = h
	}
	return r.err
}

func (w *packer) key(k signal.Key) {
	w.text(k.Service)
	w.text(k.Operation)
	w.uint(uint64(k.Access))
	w.text(string(k.Attributes))
}

func (r *unpacker) key() signal.Key {
	k := signal.Key{Path: signal.Path{Service: r.text(), Operation: r.text()}}
	k.Access = signal.Access(r.uint())
	k.Attributes = signal.Attributes(r.text())
	return k
}
