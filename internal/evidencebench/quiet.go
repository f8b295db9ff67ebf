package evidencebench

import (
	"slices"

	"github.com/tocsin-project/tocsin/internal/detect/evidence"
)

// interesting is from which score on alarms are remembered: those that a budget of 1 per 7 days would have given, and those at the
// nominal thresholds of the rivals.
var interesting = [methods]float64{evidenceBare: -0.7, evidenceFloor: -0.7}

// quietAfter is after how many minutes a service's next alarm is another one. Alarms of a service's paths and slices at
// one time are one: correlation makes one page of them.
const quietAfter = 60

// Alarms are the heights of all alarms of one method that quiet worlds gave.
type Alarms []float64

// Over counts those at or above a score.
func (a Alarms) Over(score float64) (n int) {
	for _, v := range a {
		if v >= score {
			n++
		}
	}
	return n
}

// Raised is by how much the threshold must be raised, at least 0, so that no more than n alarms are left.
func (a Alarms) Raised(n int) float64 {
	s := slices.Clone(a)
	slices.Sort(s)
	if len(s) <= n {
		return 0
	}
	return max(0, s[len(s)-1-n]+1e-6)
}

// episode follows one service under one method.
type episode struct {
	last int64
	top  float64
}

// Quiet runs all methods over quiet days and returns their alarms. A month of one world takes about ten seconds.
func Quiet(kind Kind, m *evidence.Model, seed uint64, days int) (alarms [methods]Alarms) {
	w := newWorld(kind, seed)
	watchers := make([]*watcher, 0, Keys)
	owner := make([]int, 0, Keys)
	slice := 0
	for i, p := range w.paths {
		for range p.weights {
			watchers = append(watchers, newWatcher(m, slice))
			owner = append(owner, i/perService)
			slice++
		}
		watchers = append(watchers, newWatcher(m, i))
		owner = append(owner, i/perService)
	}
	var open [services][methods]episode
	split := newRandom(seed, 3) // its own, so that what a method asks for does not change the world
	var buf []counts
	var scores [methods]float64
	for t := range int64(days * day) {
		w.happen(t)
		next := 0
		for _, p := range w.paths {
			buf = w.minute(p, t, buf[:0])
			for _, c := range buf {
				x, s := watchers[next], owner[next]
				next++
				x.quietMinute(split, c, &scores)
				for i, v := range scores {
					if v >= interesting[i] {
						open[s][i].see(t, v, &alarms[i])
					}
				}
			}
		}
	}
	for s := range open {
		for i := range open[s] {
			open[s][i].end(&alarms[i])
		}
	}
	return alarms
}

// quietMinute gives each method's highest score of a minute. The rivals are asked once, at its end, which flatters them; evidence
// every ten seconds where that can matter: a minute cannot add more than four decades.
func (w *watcher) quietMinute(r random, c counts, scores *[methods]float64) {
	w.rivals(c, scores)
	scores[evidenceBare], scores[evidenceFloor] = never, never
	before := w.key.Score()
	if c.f == 0 || before < -4.7 {
		w.add(c.n, c.f)
		if c.f > 0 || before > -1 {
			w.evidence(scores)
		}
		w.end(c)
		return
	}
	var now [methods]float64
	rest := c
	for i := range 6 {
		part := counts{r.binomial(rest.n-rest.f, 1/float64(6-i)), r.binomial(rest.f, 1/float64(6-i))}
		part.n += part.f
		rest.n, rest.f = rest.n-part.n, rest.f-part.f
		w.add(part.n, part.f)
		w.evidence(&now)
		scores[evidenceBare] = max(scores[evidenceBare], now[evidenceBare])
		scores[evidenceFloor] = max(scores[evidenceFloor], now[evidenceFloor])
	}
	w.end(c)
}

func (e *episode) see(t int64, v float64, done *Alarms) {
	if e.last > 0 && t-e.last > quietAfter {
		e.end(done)
	}
	if e.last == 0 || v > e.top {
		e.top = v
	}
	e.last = max(t, 1)
}

func (e *episode) end(done *Alarms) {
	if e.last > 0 {
		*done = append(*done, e.top)
	}
	*e = episode{}
}
