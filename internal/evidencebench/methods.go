package evidencebench

import (
	"math"

	"github.com/tocsin-project/tocsin/internal/detect/evidence"
)

// Methods that are compared, by place.
const (
	burnFixed = iota
	burnLearned
	burnFloor
	fixedShare
	trailing
	evidenceBare
	evidenceFloor
	methods
)

// Names of the methods.
var Names = [methods]string{
	"burn rate, objective 99.9%", "burn rate, learned rate", "the same, ≥ 30 failures an hour",
	"share over 5% for 5 min, ≥ 10 failures", "4 sd above the trailing day", "evidence, no floor", "evidence, floor 30",
}

// BudgetDays is the budget at nominal settings: one false page in so many days.
const BudgetDays = 30

const (
	objective = 0.001
	floor     = 30
	// Of the SRE workbook, chapter 5: 14.4 times the budget over an hour and 5 minutes, or 6 times over 6 hours and 30 minutes.
	fastBurn, slowBurn = 14.4, 6
	never              = -99.0
)

var windows = [...]int64{5, 30, 60, 360}

// watcher runs all methods on one key. The rivals see the same learned rate as the evidence.
type watcher struct {
	key  *evidence.Key
	ring [360]counts
	sums [len(windows)]counts // of the closed minutes, one fewer than the window has: the open one is the last
	at   int64
	// Mean and variance of five-minute shares over the trailing day.
	mean, variance, seen float64
}

// newWatcher gives a key the share that the detector would give it: half of the budget is for paths, half for slices.
func newWatcher(m *evidence.Model, place int) *watcher {
	return &watcher{key: evidence.New(m, evidence.Share(place)/2/(BudgetDays*day), 0, nil)}
}

// add puts part of the open minute in.
func (w *watcher) add(n, f uint64) { w.key.Observe(w.at, n, f) }

// end closes the minute, whose counts were c.
func (w *watcher) end(c counts) {
	share := w.share(0, c)
	if w.seen < 1 {
		w.mean, w.variance = share, 1e-6
	}
	const rate = 1.0 / day
	a := max(rate, 1/(w.seen+1))
	d := share - w.mean
	w.mean += a * d
	w.variance = (1 - a) * (w.variance + a*d*d)
	w.seen++

	w.ring[w.at%int64(len(w.ring))] = c
	for i, length := range windows {
		w.sums[i].n += c.n
		w.sums[i].f += c.f
		if old := w.at - length + 1; old >= 0 {
			o := w.ring[old%int64(len(w.ring))]
			w.sums[i].n -= o.n
			w.sums[i].f -= o.f
		}
	}
	w.at++
	w.key.Advance(w.at)
}

func (w *watcher) share(i int, open counts) float64 {
	return float64(w.sums[i].f+open.f) / max(1, float64(w.sums[i].n+open.n))
}

// scores are log₁₀ of how far each method is over its nominal threshold; open are the counts of the open minute so far.
func (w *watcher) scores(open counts, out *[methods]float64) {
	w.rivals(open, out)
	w.evidence(out)
}

func (w *watcher) evidence(out *[methods]float64) {
	s := w.key.Score()
	out[evidenceBare], out[evidenceFloor] = s, never
	if s >= interesting[evidenceFloor] && w.key.Excess().Beyond >= floor {
		out[evidenceFloor] = s
	}
}

func (w *watcher) rivals(open counts, out *[methods]float64) {
	for i := range out[:evidenceBare] {
		out[i] = never
	}
	f5, f60 := w.sums[0].f+open.f, w.sums[2].f+open.f
	if f60 == 0 {
		return
	}
	s5, s30, s60, s360 := w.share(0, open), w.share(1, open), w.share(2, open), w.share(3, open)
	burn := max(min(s5, s60)/fastBurn, min(s30, s360)/slowBurn)
	if burn > 0 {
		out[burnFixed] = math.Log10(burn / objective)
		out[burnLearned] = math.Log10(burn / max(w.key.Level(), 1e-4))
		if f60 >= floor {
			out[burnFloor] = out[burnLearned]
		}
	}
	if f5 >= 10 {
		out[fixedShare] = math.Log10(s5 / 0.05)
		if z := (s5 - w.mean) / math.Sqrt(w.variance+1e-10); z > 0 {
			out[trailing] = math.Log10(z / 4)
		}
	}
}
