package evidence

import "math"

// sure is how far below a bound has to be, because of rounding.
const sure = 0.999

// Below tells quickly that Score is below 0; false says nothing.
func (k *Key) Below() bool { return k.atMost() < sure }

// GainAtMost is no less than Gain, but for rounding, and quickly told.
func (k *Key) GainAtMost(minute int64) float64 { return k.atMost() / k.share * k.Fade(minute) }

// atMost bounds the sum over all alternatives. None of them explains f of n better than the level f/n itself does, so one likelihood
// ratio bounds them all; and where no more is bad than is tolerated, all of them are at most 1.
func (k *Key) atMost() float64 {
	proven := sum(&k.capped)
	if k.n == 0 || !k.Ready() {
		return proven
	}
	proven += k.share
	if n, f := float64(k.n), float64(k.f); f > n*k.null.p0 {
		p0, shape := k.null.p0, k.null.k
		proven *= math.Exp(f*math.Log(f/(n*p0)) + (f+shape)*math.Log((shape+n*p0)/(shape+f)))
	}
	return proven
}
