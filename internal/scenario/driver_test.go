package scenario

import (
	"math"
	"testing"
	"time"
)

func TestShapes(t *testing.T) {
	h := func(x float64) time.Duration { return time.Duration(x * float64(time.Hour)) }
	point := func(at, value float64, s Shape) pointFile { return pointFile{At: Clock(h(at)), Value: value, Shape: s} }
	c := curve{points: []pointFile{point(1, 0.1, ""), point(2, 1.1, ""), point(3, 2, Step), point(4, 4, Approach)}}
	for _, tt := range []struct{ at, want float64 }{
		{0, 0.1}, {1, 0.1}, {1.5, 0.6}, {2, 1.1}, {2.99, 1.1}, {3, 2}, {4, 4}, {9, 4},
	} {
		if got := c.at(h(tt.at)); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("at %v: %v, want %v", tt.at, got, tt.want)
		}
	}
	if half := c.at(h(3.5)); half < 3.3 || half > 3.9 {
		t.Errorf("an approach is most of the way there at half time, not at %v", half)
	}
	c.shift = h(1)
	if got := c.at(h(2.5)); math.Abs(got-0.6) > 1e-9 {
		t.Errorf("shifted: %v", got)
	}
}

func TestPoissonHasItsMean(t *testing.T) {
	r := newRand(1, "test")
	for _, mean := range []float64{0, 0.2, 4, 45} {
		sum, squares := 0.0, 0.0
		const n = 20000
		for range n {
			x := float64(poisson(r, mean))
			sum += x
			squares += x * x
		}
		m := sum / n
		v := squares/n - m*m
		if math.Abs(m-mean) > 0.05*mean || math.Abs(v-mean) > 0.08*mean {
			t.Errorf("mean %v, variance %v, want %v for both", m, v, mean)
		}
	}
}
