package scenario

import (
	"math"
	"time"
)

// curve is a driver as the generator asks it: its value at any time since midnight.
type curve struct {
	name   string
	points []pointFile
	shift  time.Duration // drawn for the seed
}

// approachRate makes an exponential approach 95% complete at its point; the rest is scaled so that it arrives.
const approachRate = 3

func (c *curve) at(t time.Duration) float64 {
	t -= c.shift
	ps := c.points
	if t < time.Duration(ps[0].At) {
		return ps[0].Value
	}
	for i := 1; i < len(ps); i++ {
		from, to := ps[i-1], ps[i]
		if t >= time.Duration(to.At) {
			continue
		}
		x := float64(t-time.Duration(from.At)) / float64(to.At-from.At)
		switch to.Shape {
		case Linear, "":
		case Step:
			x = 0
		case Approach:
			x = (1 - math.Exp(-approachRate*x)) / (1 - math.Exp(-approachRate))
		}
		return from.Value + (to.Value-from.Value)*x
	}
	return ps[len(ps)-1].Value
}
