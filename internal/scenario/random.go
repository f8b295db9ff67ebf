package scenario

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// newRand gives every part of a world its own source, so that one more draw here does not change what happens there.
func newRand(seed int64, part string) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(seed), xxhash.Sum64String(part)))
}

// poisson draws a count with the given mean. Means here are requests of one path in a second: small, but for the
// largest paths.
func poisson(r *rand.Rand, mean float64) int {
	if mean <= 0 {
		return 0
	}
	if mean > 30 {
		return max(0, int(math.Round(mean+math.Sqrt(mean)*r.NormFloat64())))
	}
	n, p, limit := 0, r.Float64(), math.Exp(-mean)
	for p > limit {
		n++
		p *= r.Float64()
	}
	return n
}

// wander is a value that strays around 0 and comes back, with the given standard deviation and memory per step.
type wander struct{ value, memory, fresh float64 }

func newWander(deviation, memory float64) wander {
	return wander{memory: memory, fresh: deviation * math.Sqrt(1-memory*memory)}
}

func (w *wander) step(r *rand.Rand) float64 {
	w.value = w.memory*w.value + w.fresh*r.NormFloat64()
	return w.value
}

// shares draws an index in proportion to weights.
type shares []float64 // running sums, the last is 1

func newShares(weights []float64) shares {
	s := make(shares, len(weights))
	var sum float64
	for i, w := range weights {
		sum += w
		s[i] = sum
	}
	for i := range s {
		s[i] /= sum
	}
	return s
}

func (s shares) draw(r *rand.Rand) int {
	if len(s) <= 1 {
		return 0
	}
	i, _ := slices.BinarySearch(s, r.Float64())
	return min(i, len(s)-1)
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }
