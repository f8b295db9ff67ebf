package localise

import "math"

// Block is what one stretch of time counted: blocks of one series are equally long and follow each other.
type Block struct{ Total, Bad float64 }

// Change is where a series departed from what it was.
type Change struct {
	At int // index of the first block since
	// Before and Since are the shares of bad ones.
	Before, Since float64
	// Evidence is how strongly the blocks speak for it, in decades: a log₁₀ likelihood ratio, divided by how much more the
	// blocks before scatter than chance alone would make them.
	Evidence float64
}

const (
	// scatterPrior is the weight, in blocks, of the belief that blocks scatter scatterFirst times as much as chance.
	scatterPrior = 5
	scatterFirst = 2
	// fewestBefore is how many blocks a past needs.
	fewestBefore = 2
)

// Onset finds the block since which the share of bad ones is higher than before, to the end: the change point that
// explains the series best by a binomial likelihood ratio. ok is false where no block begins a rise.
//
// The evidence for it is that ratio over the scatter of the blocks before (a quasi-likelihood, McCullagh and Nelder,
// "Generalized linear models", chapter 9). The choice does without: the scatter of a past that ends just before its first bad
// block is small, and would draw the onset there.
func Onset(blocks []Block) (Change, bool) {
	var n, b float64
	for _, x := range blocks {
		n, b = n+x.Total, b+x.Bad
	}
	var n0, b0, most float64
	best := -1
	for at, x := range blocks {
		if at >= fewestBefore && n0 > 0 && n > n0 && (b-b0)/(n-n0) > b0/n0 {
			if l := twoShares(n0, b0, n-n0, b-b0); l > most {
				best, most = at, l
			}
		}
		n0, b0 = n0+x.Total, b0+x.Bad
	}
	return Since(blocks, best)
}

// Since is the change at a block that is known.
func Since(blocks []Block, at int) (Change, bool) {
	if at <= 0 || at >= len(blocks) {
		return Change{}, false
	}
	var n0, b0, n, b float64
	for i, x := range blocks {
		if i < at {
			n0, b0 = n0+x.Total, b0+x.Bad
		} else {
			n, b = n+x.Total, b+x.Bad
		}
	}
	if n0 == 0 || n == 0 {
		return Change{}, false
	}
	c := Change{At: at, Before: b0 / n0, Since: b / n}
	if c.Since <= c.Before {
		return c, false
	}
	c.Evidence = twoShares(n0, b0, n, b) / scatter(blocks[:at], (b0+0.5)/(n0+1)) / math.Ln10
	return c, c.Evidence > 0
}

// scatter is how much more than by chance blocks of one share vary, at least 1.
func scatter(blocks []Block, p float64) float64 {
	sum, weight := float64(scatterPrior*scatterFirst), float64(scatterPrior)
	for _, x := range blocks {
		if x.Total > 0 {
			e := x.Total * p
			sum += (x.Bad - e) * (x.Bad - e) / (e * (1 - p))
			weight++
		}
	}
	return math.Max(1, sum/weight)
}

// twoShares is the log likelihood ratio of two shares against one.
func twoShares(n0, b0, n, b float64) float64 {
	all := (b0 + b + 0.5) / (n0 + n + 1)
	return likelihood(n0, b0, (b0+0.5)/(n0+1), all) + likelihood(n, b, (b+0.5)/(n+1), all)
}

func likelihood(n, b, p, q float64) float64 {
	return b*math.Log(p/q) + (n-b)*math.Log((1-p)/(1-q))
}
