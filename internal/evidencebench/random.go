package evidencebench

import (
	"math"
	"math/rand/v2"
)

// random draws from the few distributions that a world needs.
type random struct{ *rand.Rand }

func newRandom(seed, stream uint64) random { return random{rand.New(rand.NewPCG(seed, stream))} }

// poisson is exact for small means; from 30 on the normal approximation is, beside the wobble that is put on every rate, close enough.
func (r random) poisson(mean float64) uint64 {
	switch {
	case mean <= 0:
		return 0
	case mean < 30:
		n, p, u := uint64(0), math.Exp(-mean), r.Float64()
		for c := p; u > c && n < 200; c += p {
			n++
			p *= mean / float64(n)
		}
		return n
	}
	return uint64(max(0, math.Round(mean+math.Sqrt(mean)*r.NormFloat64())))
}

func (r random) binomial(n uint64, p float64) uint64 {
	if p <= 0 || n == 0 {
		return 0
	}
	if p > 0.5 {
		return n - r.binomial(n, 1-p)
	}
	mean := float64(n) * p
	if n <= 12 {
		k := uint64(0)
		for range n {
			if r.Float64() < p {
				k++
			}
		}
		return k
	}
	if mean < 20 {
		// Inversion, by the recurrence of the binomial probabilities.
		q := p / (1 - p)
		k, c := uint64(0), math.Exp(float64(n)*math.Log1p(-p))
		for u := r.Float64() - c; u > 0 && k < n; u -= c {
			k++
			c *= q * float64(n-k+1) / float64(k)
			if c < 1e-18 && float64(k) > mean {
				break
			}
		}
		return k
	}
	return uint64(max(0, min(float64(n), math.Round(mean+math.Sqrt(mean*(1-p))*r.NormFloat64()))))
}

// gamma has mean 1 and the given variance (Marsaglia and Tsang, with the usual boost below shape 1).
func (r random) gamma(variance float64) float64 {
	if variance <= 0 {
		return 1
	}
	shape, boost := 1/variance, 1.0
	if shape < 1 {
		boost = math.Pow(r.Float64(), variance)
		shape++
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if u := r.Float64(); math.Log(u) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v * boost * variance
		}
	}
}

// lognormal has mean 1 and the given variance: a longer tail than gamma's.
func (r random) lognormal(variance float64) float64 {
	s2 := math.Log1p(variance)
	return math.Exp(math.Sqrt(s2)*r.NormFloat64() - s2/2)
}

// around is lognormal with a median.
func (r random) around(median, sigma float64) float64 {
	return median * math.Exp(sigma*r.NormFloat64())
}

func (r random) between(a, b float64) float64 { return a + (b-a)*r.Float64() }
