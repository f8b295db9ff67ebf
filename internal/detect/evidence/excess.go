package evidence

import "math"

// Excess is what a key has more than it may have in one window that ends now.
type Excess struct {
	Minutes  int
	N, F     uint64
	Beyond   float64 // F less what is tolerated
	AtLeast  float64 // the same less two standard deviations of chance
	Expected float64 // what would be usual
}

// Excess looks at the windows of 1 to 120 minutes and returns the one that certainly has most.
func (k *Key) Excess() Excess {
	var best Excess
	best.AtLeast = math.Inf(-1)
	n, f := k.n, k.f
	open := 0 // the open minute is one once it has counts
	if n > 0 {
		open = 1
	}
	for back := 0; back < keep; back++ {
		if back > 0 {
			m := k.minute - int64(back)
			if m < k.born {
				break
			}
			n += uint64(k.ns[slot(m)])
			f += uint64(k.fs[slot(m)])
		}
		mean := float64(n) * k.null.p0
		sd := math.Sqrt(mean + mean*mean/(k.null.k*float64(back+1)))
		beyond := float64(f) - mean
		if low := beyond - 2*sd; low > best.AtLeast {
			best = Excess{max(1, back+open), n, f, beyond, low, float64(n) * k.null.level}
		}
	}
	return best
}

// Beyond tells whether there is evidence and, in the window that certainly has most, at least floor bad ones more than tolerated.
// Evidence alone makes a finding; the floor is what makes one worth waking somebody.
func (k *Key) Beyond(floor float64) bool {
	return k.Score() >= 0 && k.Excess().Beyond >= floor
}
