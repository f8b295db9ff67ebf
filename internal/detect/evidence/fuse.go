package evidence

import "math"

// Source is one kind of evidence about one area: the gains of its keys, averaged. Keys of one kind depend on each other, the
// paths of a service on the same machines, a slice on its path; an average of e-values is one however they depend. Each key
// weighs as its share of the budget does.
type Source struct{ sum, weight float64 }

// Add takes in one key by its share of the budget.
func (s *Source) Add(share, gain float64) {
	s.sum += share * gain
	s.weight += share
}

// Gain is the average; 0 without keys.
func (s *Source) Gain() float64 {
	if s.weight == 0 {
		return 0
	}
	return s.sum / s.weight
}

// Mean averages the gains of sources that depend on each other. Those without keys do not count.
func Mean(sources ...Source) (gain float64, ok bool) {
	n := 0.0
	for i := range sources {
		if sources[i].weight > 0 {
			gain += sources[i].Gain()
			n++
		}
	}
	return gain / max(1, n), n > 0
}

// Fuse is the evidence, in decades against a share of a budget, of two sources that are independent given the past: a half of the
// share is for both at once, a quarter for each alone. Given the past the product of their ratios of any minute has a mean of at most
// one, because each has. Trouble need not begin in both at the same time, tickets come later; the product of two sums is the
// sum over all pairs of beginnings, and those that are d minutes apart weigh e^(−d/memory) at most, as both fade. Divided by the sum of
// these weights, Lags, it is an e-detector like each of the two. docs/evidence.md has the proof.
func Fuse(share, lags, a, b float64) float64 {
	return math.Log10(max(share*(a/4+b/4+a*b/lags/2), 1e-30))
}

// Lags is the sum of e^(−|d|/memory) over all distances d.
func (m *Model) Lags() float64 {
	by := m.fade(1)
	return (1 + by) / (1 - by)
}

// Decades is what a gain is worth against a share of a budget.
func Decades(share, gain float64) float64 { return math.Log10(max(share*gain, 1e-30)) }
