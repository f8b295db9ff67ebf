package evidencebench

import (
	"math"
	"slices"
)

// Group is a set of classes that one figure is given for.
type Group int

// Groups.
const (
	All Group = iota
	Sudden
	Creeping
	groups
)

func (g Group) has(c *Class) bool { return g == All || c.Creeps() == (g == Creeping) }

// Point is one setting at one threshold: what it costs in false pages, and how long it takes.
type Point struct {
	Setting, Level int
	False          float64   // pages in 30 quiet days
	Median         []float64 // minutes, of each class; +Inf where half of them are missed
	// Mean is the geometric mean of the medians of a group; what is missed counts as long as the incident was watched.
	Mean [groups]float64
}

// delaysOf gives, for one setting, the median delay of each class at each level.
func delaysOf(traces [][]Trace, setting, n int) [][]float64 {
	out := make([][]float64, len(traces))
	for c, seeds := range traces {
		at := make([][]float64, len(seeds))
		for i, t := range seeds {
			at[i] = reachedAt(t[setting], n)
		}
		out[c] = make([]float64, n)
		d := make([]float64, len(seeds))
		for level := range n {
			changed := level == 0
			for i := range at {
				d[i] = at[i][level]
				changed = changed || d[i] != at[i][level-1]
			}
			if !changed {
				out[c][level] = out[c][level-1]
				continue
			}
			out[c][level] = median(d)
		}
	}
	return out
}

func reachedAt(steps []Step, n int) []float64 {
	out := make([]float64, n)
	level := 0
	for _, s := range steps {
		for ; level <= int(s.Level); level++ {
			out[level] = float64(s.Minutes)
		}
	}
	for ; level < n; level++ {
		out[level] = math.Inf(1)
	}
	return out
}

// median sorts d.
func median(d []float64) float64 {
	slices.Sort(d)
	n := len(d)
	if n == 0 {
		return math.NaN()
	}
	return (d[(n-1)/2] + d[n/2]) / 2
}

// points gives all thresholds of the settings that are wanted, by the pages of a tally and the delays of traces.
func (m *Measured) points(pages Tally, months float64, traces [][]Trace, want func(Setting) bool) (out []Point) {
	for i, s := range m.g.settings {
		if !want(s) {
			continue
		}
		ls := m.g.levels(i)
		delays := delaysOf(traces, i, ls.n)
		for level := range ls.n {
			// Of neighbours with equal pages and equal delays one is enough.
			p := Point{Setting: i, Level: level, False: float64(pages[i][level]) / months, Median: make([]float64, len(delays))}
			same := level > 0 && pages[i][level] == pages[i][level-1]
			for c := range delays {
				p.Median[c] = delays[c][level]
				same = same && delays[c][level] == delays[c][level-1]
			}
			if same {
				continue
			}
			p.means()
			out = append(out, p)
		}
	}
	return out
}

func (p *Point) means() {
	for g := range groups {
		sum, n := 0.0, 0.0
		for c := range p.Median {
			if g.has(&Classes[c]) {
				sum += math.Log(min(p.Median[c], Classes[c].within))
				n++
			}
		}
		p.Mean[g] = math.Exp(sum / n)
	}
}

// of gives the point of one setting at one level.
func (m *Measured) of(pages Tally, months float64, traces [][]Trace, setting, level int) Point {
	p := Point{Setting: setting, Level: level, False: float64(pages[setting][level]) / months}
	for _, seeds := range traces {
		var d []float64
		for _, t := range seeds {
			d = append(d, t.Delay(setting, level))
		}
		p.Median = append(p.Median, median(d))
	}
	p.means()
	return p
}

// least is the allowed point with the least value; of equal ones that with fewer false pages, and of those the first. Nil without any.
func least(ps []Point, allowed func(*Point) bool, value func(*Point) float64) (best *Point) {
	for i := range ps {
		p := &ps[i]
		if !allowed(p) || math.IsInf(value(p), 1) {
			continue
		}
		if best == nil || value(p) < value(best) || value(p) == value(best) && p.False < best.False {
			best = p
		}
	}
	return best
}
