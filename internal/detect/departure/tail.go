package departure

import (
	"math"
	"slices"

	"github.com/tocsin-project/tocsin/internal/nth"
)

// rarity is the part of ordinary residuals that are as large: what was counted, or the tail where the past is too short to count.
func (s *state) rarity(m *Model, f int, size float64) float64 {
	b, above := bin(size), float32(0)
	for i := b + 1; i < bins; i++ {
		above += s.Bins[f][i]
	}
	counted := float64(above+s.Bins[f][b]/2) / float64(s.Seen[f])
	return max(counted, s.tail(m, f, size))
}

// tail is that of a stretched exponential through two quantiles.
func (s *state) tail(m *Model, f int, size float64) float64 {
	from, to := s.quantile(f, m.TailFrom), s.quantile(f, m.TailTo)
	if size <= to {
		return m.TailTo
	}
	power := m.Heaviest
	if to > from {
		power = min(power, math.Log(math.Log(m.TailTo)/math.Log(m.TailFrom))/math.Log(to/from))
	}
	return math.Exp(math.Log(m.TailTo) * math.Pow(size/to, power))
}

// quantile is the size that a part of residuals exceed.
func (s *state) quantile(f int, part float64) float64 {
	want, above := part*float64(s.Seen[f]), 0.0
	for i := bins - 1; i >= 0; i-- {
		n := float64(s.Bins[f][i])
		if above+n >= want && n > 0 {
			return math.Exp2((float64(i+1)-(want-above)/n)/perOctave + lowest)
		}
		above += n
	}
	return math.Exp2(lowest)
}

func bin(size float64) int {
	return max(0, min(bins-1, int(math.Floor((math.Log2(max(size, 1e-9))-lowest)*perOctave))))
}

func isNaN(v float32) bool { return v != v }

func medianOf(v []float32) float64 {
	if len(v) == 0 {
		return 0
	}
	var buf [maxScale]float32
	w := buf[:copy(buf[:], v)]
	hi := nth.Of(w, len(w)/2) // most of what a block costs
	if len(w)%2 == 1 {
		return float64(hi)
	}
	return (float64(hi) + float64(slices.Max(w[:len(w)/2]))) / 2
}
