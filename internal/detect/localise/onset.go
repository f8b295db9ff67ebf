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
	// newest is how many blocks an onset is looked for in: half an hour of minutes, more where data comes rarely.
	newest = 30
)

// Onset finds the block since which the share of bad ones is higher than before, to the end: the change point among the
// newest blocks that explains the series best by a binomial likelihood ratio. ok is false where no block begins a rise. What
// rose and fell again is no onset: every part of what follows must be about as bad as the whole of it, but for the newest,
// where it may just be ending.
//
// The evidence is that ratio over the scatter of the blocks before (a quasi-likelihood, McCullagh and Nelder, "Generalized
// linear models", chapter 9). The choice of the block does without: the scatter of a past that ends just before its first bad
// block is small, and would draw the onset there.
func Onset(blocks []Block) (Change, bool) {
	var all Block
	for _, x := range blocks {
		all = all.plus(x)
	}
	before, most, best := Block{}, 0.0, -1
	for at, x := range blocks {
		since := Block{all.Total - before.Total, all.Bad - before.Bad}
		if at >= max(fewestBefore, len(blocks)-newest) && before.Total > 0 && since.Total > 0 && since.share() > before.share() && lasts(blocks[at:], since) {
			if l := twoShares(before, since); l > most {
				best, most = at, l
			}
		}
		before = before.plus(x)
	}
	return Since(blocks, best)
}

// lasts tells whether every quarter of the blocks but the last is at least a third as bad as all of them.
func lasts(blocks []Block, all Block) bool {
	parts := min(4, len(blocks))
	for q := range parts - 1 {
		var part Block
		for _, x := range blocks[q*len(blocks)/parts : (q+1)*len(blocks)/parts] {
			part = part.plus(x)
		}
		if part.Total > 0 && part.share() < all.share()/3 {
			return false
		}
	}
	return true
}

func (b Block) plus(o Block) Block { return Block{b.Total + o.Total, b.Bad + o.Bad} }
func (b Block) share() float64     { return b.Bad / math.Max(b.Total, 1) }

// Since is the change at a block that is known.
func Since(blocks []Block, at int) (Change, bool) {
	if at <= 0 || at >= len(blocks) {
		return Change{}, false
	}
	var past, since Block
	for i, x := range blocks {
		if i < at {
			past = past.plus(x)
		} else {
			since = since.plus(x)
		}
	}
	if past.Total == 0 || since.Total == 0 {
		return Change{}, false
	}
	c := Change{At: at, Before: past.share(), Since: since.share()}
	if c.Since <= c.Before {
		return c, false
	}
	c.Evidence = twoShares(past, since) / scatter(blocks[:at], (past.Bad+0.5)/(past.Total+1)) / math.Ln10
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
func twoShares(x, y Block) float64 {
	all := (x.Bad + y.Bad + 0.5) / (x.Total + y.Total + 1)
	return likelihood(x, all) + likelihood(y, all)
}

// likelihood of a block's own share against another.
func likelihood(x Block, q float64) float64 {
	p := (x.Bad + 0.5) / (x.Total + 1)
	return x.Bad*math.Log(p/q) + (x.Total-x.Bad)*math.Log((1-p)/(1-q))
}
