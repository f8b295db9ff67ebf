package evidencebench

import "math"

// Oracle is after how many minutes an observer would notice a class who knows the usual rate, that it does not drift, and how the
// incident goes on, and who may be wrong once in 30 days among all keys of a world: when the expected log likelihood ratio reaches
// the logarithm of the number of key-minutes. No rule that learns can be faster in the median, but for luck; a promise below
// it cannot be kept by anything.
func (c *Class) Oracle() float64 {
	need := math.Log(Keys * BudgetDays * day)
	n := c.volume
	if c.slices > 0 {
		n /= float64(c.slices)
	}
	const steps = 60 // a minute
	sum := 0.0
	for i := 0; float64(i) < c.within*steps; i++ {
		t := (float64(i) + 0.5) / steps
		q := c.share
		if c.ramp > 0 {
			q *= min(1, t/c.ramp)
		}
		usual, now := n*c.rate/steps, n*(c.rate+q*(1-c.rate))/steps
		sum += now*math.Log(now/usual) - (now - usual)
		if sum >= need {
			return float64(i+1) / steps
		}
	}
	return math.Inf(1)
}

// oracle is that of a row, where it is one class.
func oracle(c *Claim) string {
	for i := range Classes {
		if Classes[i].Name == c.Name {
			return figure(Classes[i].Oracle())
		}
	}
	return ""
}
