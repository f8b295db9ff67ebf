package evidencebench

import (
	"math"

	"github.com/tocsin-project/tocsin/internal/detect/evidence"
)

// BudgetDays is the budget at nominal settings: one false page in so many days.
const BudgetDays = 30

const fastBurn, slowBurn = 14.4, 6

var windows = [...]int64{1, 5, 15, 30, 60, 360}

// sinceFor is how far back `for` has to look, in evaluations: ten minutes of one every ten seconds, and the one now.
const sinceFor = 10*6 + 1

// moments of the shares in one window over the trailing day.
type moments struct{ mean, variance float64 }

// reading is what one rival's rule saw at one evaluation.
type reading struct {
	level    int16
	failures uint32
}

// watcher runs all methods on one key. The rivals see the same learned rate as the evidence.
type watcher struct {
	g      *grid
	tocsin chain
	ring   [360]counts
	sums   [len(windows)]counts // of the closed minutes, one fewer than the window has: the open one is the last
	at     int64
	trail  [3]moments
	seen   float64
	since  [sinceFor][rivalBases]reading
	pos    int
	run    [rivalBases]int32 // for how many evaluations in a row a rule has been over its lowest level
}

// newWatcher gives a key the share that the detector would give it: half of the budget is for paths, half for slices.
func newWatcher(g *grid, place int) *watcher {
	return &watcher{g: g, tocsin: newChain(g, evidence.Share(place)/2/(BudgetDays*day))}
}

// end closes the minute, whose counts were c.
func (w *watcher) end(c counts, rivals bool) {
	if rivals {
		w.remember(c)
	}
	w.at++
	w.tocsin.advance(w.at)
}

func (w *watcher) remember(c counts) {
	const rate = 1.0 / day
	a := max(rate, 1/(w.seen+1))
	for i := range w.trail {
		m, share := &w.trail[i], w.share(i, c)
		if w.seen < 1 {
			m.mean, m.variance = share, 1e-6
		}
		d := share - m.mean
		m.mean += a * d
		m.variance = (1 - a) * (m.variance + a*d*d)
	}
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
}

func (w *watcher) share(i int, open counts) float64 {
	return float64(w.sums[i].f+open.f) / max(1, float64(w.sums[i].n+open.n))
}

// rivals evaluates all rules of the rivals, `per` times a minute, and raises what the service has reached. Open are the counts of
// the open minute so far.
func (w *watcher) rivals(open counts, per int, reached []int16) {
	w.pos = (w.pos + 1) % sinceFor
	now := &w.since[w.pos]
	w.read(open, now)
	for b := range now {
		if now[b].level < 0 {
			w.run[b] = 0
			continue
		}
		w.run[b]++
		w.hold(b, per, reached[b*len(floors)*len(fors):])
	}
}

// hold finds the level that was held, with the failures needed, for each length of `for`.
func (w *watcher) hold(b, per int, reached []int16) {
	least := w.since[w.pos][b]
	back := 0
	for fi, d := range fors {
		if int(w.run[b]) <= d*per {
			return
		}
		for back < d*per {
			back++
			r := &w.since[(w.pos+sinceFor-back)%sinceFor][b]
			least.level, least.failures = min(least.level, r.level), min(least.failures, r.failures)
		}
		for gi, fl := range floors {
			if uint64(least.failures) < fl {
				break
			}
			if at := &reached[gi*len(fors)+fi]; *at < least.level {
				*at = least.level
			}
		}
	}
}

// read says how far each rule is over its nominal threshold.
func (w *watcher) read(open counts, out *[rivalBases]reading) {
	*out = [rivalBases]reading{}
	for b := range out {
		out[b].level = none
	}
	var share [len(windows)]float64
	if w.sums[5].f+open.f == 0 {
		return
	}
	for i := range share {
		share[i] = w.share(i, open)
	}
	hourly := clip(w.sums[4].f + open.f)
	fast, slow := min(share[1], share[4])/fastBurn, min(share[3], share[5])/slowBurn
	usual := max(w.tocsin.level(), 1e-4)
	for i, burn := range [...]float64{max(fast, slow), fast, slow} {
		out[i] = reading{rivalLevels.at(math.Log10(burn / bases[i].nominal)), hourly}
		out[3+i] = reading{rivalLevels.at(math.Log10(burn / usual)), hourly}
	}
	for i := range w.trail {
		f := clip(w.sums[i].f + open.f)
		if f == 0 {
			continue
		}
		out[6+i] = reading{rivalLevels.at(math.Log10(share[i] / bases[6+i].nominal)), f}
		if z := (share[i] - w.trail[i].mean) / math.Sqrt(w.trail[i].variance+1e-10); z > 0 {
			out[9+i] = reading{rivalLevels.at(math.Log10(z / bases[9+i].nominal)), f}
		}
	}
}

func clip(n uint64) uint32 { return uint32(min(n, math.MaxUint32)) }
