package evidence

import "math"

// Below tells quickly that Score is below 0; false says nothing. No alternative explains f of n better than the level f/n itself does, so
// one likelihood ratio bounds them all, and where no more is bad than is tolerated all of them are at most 1.
func (k *Key) Below() bool {
	const sure = 0.999 // of rounding
	proven := sum(&k.capped)
	if k.n == 0 || !k.Ready() {
		return proven < sure
	}
	proven += k.share
	if n, f := float64(k.n), float64(k.f); f > n*k.null.p0 {
		p0, shape := k.null.p0, k.null.k
		proven *= math.Exp(f*math.Log(f/(n*p0)) + (f+shape)*math.Log((shape+n*p0)/(shape+f)))
	}
	return proven < sure
}
