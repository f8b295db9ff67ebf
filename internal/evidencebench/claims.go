package evidencebench

import "math"

// Claim is one row of the comparison: one class of incident, or a group of classes, in one world.
type Claim struct {
	Name     string
	Creeping bool // promised: half the delay; otherwise no more
	Group    bool
	Ours     float64 // minutes
	OursAt   *Point
	Equal    [Tocsin]Rival // of each family
}

// Rival is what one family does at its best for one row.
type Rival struct {
	// Single is the one setting that is best for all classes together, Own the one that is best for this row, of those with
	// no more false pages than allowed. Delays in minutes, +Inf where there is no such setting.
	Single, Own     float64
	SingleAt, OwnAt *Point
	// Same is the setting with the fewest false pages of those that are no slower here than Tocsin; nil without any.
	Same *Point
}

// AtEqualPages tells whether Tocsin is as fast as promised: half the delay on creeping failures, no more on others.
func (c *Claim) AtEqualPages(theirs float64) bool {
	if math.IsInf(c.Ours, 1) {
		return false
	}
	if c.Creeping {
		return c.Ours <= theirs/2
	}
	return c.Ours <= theirs
}

// AtEqualDelay tells whether Tocsin has at most a tenth of the rival's false pages. Ours are counted as the upper 95% bound
// of their rate, so that none in a few months does not pass for none at all.
func (c *Claim) AtEqualDelay(r *Rival, months float64) bool {
	return r.Same == nil || UpperRate(c.OursAt.False, months) <= r.Same.False/10
}

// Best is the family that is fastest here with a setting of its own, or with the single one.
func (c *Claim) Best(single bool) Family {
	best, value := Family(0), math.Inf(1)
	for f := range Tocsin {
		v := c.Equal[f].Own
		if single {
			v = c.Equal[f].Single
		}
		if v < value {
			best, value = f, v
		}
	}
	return best
}

// Fewest is the family with the fewest false pages of those that have a setting as fast as Tocsin here; Tocsin if none has.
func (c *Claim) Fewest() Family {
	best := Tocsin
	for f := range Tocsin {
		if s := c.Equal[f].Same; s != nil && (best == Tocsin || s.False < c.Equal[best].Same.False) {
			best = f
		}
	}
	return best
}

// row is a class or a group, with the delay that a point has in it.
type row struct {
	name     string
	creeping bool
	group    bool
	delay    func(*Point) float64
}

func rows() (out []row) {
	for i := range Classes {
		out = append(out, row{Classes[i].Name, Classes[i].Creeps(), false, func(p *Point) float64 { return p.Median[i] }})
	}
	for g, name := range [groups]string{"all eight: geometric mean of the medians", "the six sudden ones: geometric mean", "the two creeping ones: geometric mean"} {
		out = append(out, row{name, Group(g) == Creeping, true, func(p *Point) float64 { return p.Mean[g] }})
	}
	return out
}

// sweepAll gives the points of every family, for each of its settings and thresholds.
func (m *Measured) sweepAll(pages Tally, months float64, traces [][]Trace) (out [families][]Point) {
	var jobs []func() string
	for f := range families {
		jobs = append(jobs, func() string {
			out[f] = m.points(pages, months, traces, func(s Setting) bool { return s.Family == f })
			return ""
		})
	}
	parallel(jobs, nil)
	return out
}

// Compare works out the claims for one point of Tocsin's. Rivals may have as many false pages as it, or one in 30 days if that is more.
func Compare(rivals *[families][]Point, ours Point) []Claim {
	may := max(1, ours.False)
	allowed := func(p *Point) bool { return p.False <= may }
	var out []Claim
	for _, r := range rows() {
		c := Claim{Name: r.name, Creeping: r.creeping, Group: r.group, Ours: r.delay(&ours), OursAt: &ours}
		for f := range Tocsin {
			e := &c.Equal[f]
			e.Single, e.Own = math.Inf(1), math.Inf(1)
			if e.SingleAt = least(rivals[f], allowed, func(p *Point) float64 { return p.Mean[All] }); e.SingleAt != nil {
				e.Single = r.delay(e.SingleAt)
			}
			if e.OwnAt = least(rivals[f], allowed, r.delay); e.OwnAt != nil {
				e.Own = r.delay(e.OwnAt)
			}
			e.Same = least(rivals[f], func(p *Point) bool { return r.delay(p) <= c.Ours }, func(p *Point) float64 { return p.False })
		}
		out = append(out, c)
	}
	return out
}

// UpperPoisson is the number that a Poisson count of the given mean exceeds in less than 5 of 100 cases.
func UpperPoisson(mean float64) int {
	p := math.Exp(-mean)
	sum, n := p, 0
	for sum < 0.95 {
		n++
		p *= mean / float64(n)
		sum += p
	}
	return n
}

// UpperRate is the highest rate that is still compatible, at 95%, with having counted this rate over so many units.
func UpperRate(rate, units float64) float64 {
	count := math.Round(rate * units)
	if count > 500 {
		return (count + 1.645*math.Sqrt(count) + 2) / units // where e^−mean is no longer a number, a normal quantile will do
	}
	lo, hi := count, count+10+5*math.Sqrt(count+1)
	for range 60 {
		mean := (lo + hi) / 2
		p := math.Exp(-mean)
		sum := p
		for i := 1.0; i <= count; i++ {
			p *= mean / i
			sum += p
		}
		if sum > 0.05 {
			lo = mean
		} else {
			hi = mean
		}
	}
	return hi / units
}
