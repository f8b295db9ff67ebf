package detect

import (
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
	by map[signal.Key]*history
}

// history are sums of requests and bad ones, by five minutes for six hours and by hours for three days. A place is told by its
// number modulo the ring's length; Step is the newest one that is summed up.
type history struct {
	step  int64
	steps [burnSteps]tallied
	hours [burnHours]tallied
}

type tallied struct{ n, bad uint32 }

func newHistories(rates []rule.BurnRate, objective rule.Share) recall {
	for _, b := range rates {
		if objective > 0 && b.Long > rule.MaxWindow {
			return &histories{by: map[signal.Key]*history{}}
		}
	}
	return nil
}

// settle sums up the steps that are old enough.
func (hs *histories) settle(s *series, t int64, sum func(from, to int64) (n, bad uint64)) *history {
	h := hs.by[s.key]
	upTo := floorDiv(t-burnSettles, burnBuckets) - 1
	if h == nil {
		if len(hs.by) >= maxHistories {
			return nil
		}
		h = &history{step: floorDiv(t-keepBuckets, burnBuckets)}
		hs.by[s.key] = h
	}
	if h.step < upTo-burnHours*stepsAnHour {
		*h = history{step: upTo - keepBuckets/burnBuckets} // all that was known is too old
	}
	for h.step < upTo {
		h.step++
		n, bad := sum(h.step*burnBuckets, (h.step+1)*burnBuckets)
		*h.at(h.step) = tallied{clip32(n), clip32(bad)}
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

// sum adds up the window that ends at t: the newest part as it is, before that by steps, and beyond six hours by whole hours, the
// oldest of which may begin up to an hour early.
func (h *history) sum(t, window int64, exact func(from, to int64) (n, bad uint64)) (n, bad uint64) {
	from := t - window
	n, bad = exact(max(from, (h.step+1)*burnBuckets), t)
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
		h = b.history.settle(s, t, exact)
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
	for _, k := range keys {
		h := hs.by[k]
		w.key(k)
		w.int(h.step)
		for _, ring := range [][]tallied{h.steps[:], h.hours[:]} {
			for _, x := range ring {
				w.uint(uint64(x.n))
				w.uint(uint64(x.bad))
			}
		}
	}
	return w.b, nil
}

func (hs *histories) load(data []byte) error {
	r := unpacker{b: data}
	for range r.len() {
		h := &history{}
		k := r.key()
		h.step = r.int()
		for _, ring := range [][]tallied{h.steps[:], h.hours[:]} {
			for i := range ring {
				ring[i] = tallied{clip32(r.uint()), clip32(r.uint())}
			}
		}
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
