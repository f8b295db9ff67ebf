package evidence

import "math"

// learner holds what is usual, as sums that fade.
type learner struct {
	to     int64 // the last minute that was learned or left out
	last   int64 // the last one that was learned
	n, f   float64
	blocks float64 // minutes with counts
	// Moments of minutes: the excess of the variance over chance, and what it is measured in.
	excess, scale float64
	// The same of hours, with the hour that is being added up.
	driftExcess, driftScale float64
	hour                    int64
	hourMean, hourCount     float64
}

// learn takes in the minutes that are old enough, after the minute k.minute was closed.
func (k *Key) learn() {
	l := &k.learned
	age := k.minute - k.born
	upTo := k.minute - min(int64(k.model.HoldBack), age/4)
	if k.guarded > 0 {
		l.to = max(l.to, upTo) // what comes due while trouble lasts is left out
		return
	}
	for m := max(l.to+1, k.minute-keep+1, k.born); m <= upTo; m++ {
		i := slot(m)
		if n := k.ns[i]; n > 0 && !k.left[i] {
			k.take(m, float64(n), float64(k.fs[i]))
		}
	}
	l.to = max(l.to, upTo)
}

func (k *Key) take(minute int64, n, f float64) {
	m, l := k.model, &k.learned
	phi := k.factor(minute)
	n *= phi // exposure at the level of an ordinary hour
	p := l.level(m)
	mean := n * p
	if minute-k.born > day {
		f = min(f, mean+m.WinsorSDs*math.Sqrt(mean+mean*mean/k.null.k)+3)
	}
	if k.season != nil {
		k.season.Learn(minute, f, mean/phi)
	}
	fade := math.Exp2(-float64(minute-l.last) / m.HalfLife)
	l.last = minute
	l.n = l.n*fade + n
	l.f = l.f*fade + f
	l.blocks = l.blocks*fade + 1
	if l.n < m.Settled {
		l.hour, l.hourMean, l.hourCount = minute/hour, 0, 0
		return
	}
	w := 1 / (1 + mean)
	l.excess = l.excess*fade + ((f-mean)*(f-mean)-mean)/max(mean, 1e-12)*w
	l.scale = l.scale*fade + mean*w
	if h := minute / hour; h != l.hour {
		l.endHour(math.Exp2(-float64(h-l.hour) * hour / m.HalfLife))
		l.hour = h
	}
	l.hourMean += mean
	l.hourCount += f
}

func (l *learner) endHour(fade float64) {
	if mean := l.hourMean; mean > 0 {
		w := 1 / (1 + mean)
		d := l.hourCount - mean
		l.driftExcess = l.driftExcess*fade + (d*d-mean)/mean*w
		l.driftScale = l.driftScale*fade + mean*w
	}
	l.hourMean, l.hourCount = 0, 0
}

func (l *learner) level(m *Model) float64 { return (l.f + m.PriorCount) / (l.n + m.PriorExposure) }

// upper is the upper confidence bound of the level: a gamma quantile, by Wilson and Hilferty's cube.
func (l *learner) upper(m *Model) float64 {
	a := l.f + m.PriorCount
	c := 1 - 1/(9*a) + m.UpperZ/(3*math.Sqrt(a))
	return a * c * c * c / (l.n + m.PriorExposure)
}

// dispersion is 1/k, by moments, shrunk towards the prior.
func (l *learner) dispersion(m *Model) float64 {
	w := m.DispersionOf + math.Sqrt(2*l.blocks)
	a := (m.Dispersion*w + l.excess) / (w + l.scale)
	return max(m.DispersionMin, min(m.DispersionMax, a))
}

// drift is the standard deviation of the hourly level, in natural logarithms of its odds: near 1 a level has nowhere to go, its
// odds have.
func (l *learner) drift(m *Model) float64 {
	v := (m.DriftPrior*m.DriftHours + l.driftExcess) / (m.DriftHours + l.driftScale)
	sd := math.Sqrt(math.Log1p(max(0, v)))
	if !m.Unbounded {
		sd /= 1 - min(l.level(m), 0.99)
	}
	return sd
}

// refresh renews the null from what was learned.
func (k *Key) refresh() {
	m, l := k.model, &k.learned
	k.refreshed = k.minute
	c := max(m.Tolerance, math.Exp(min(20, m.DriftSDs*l.drift(m))))
	if k.minute-k.born < m.Young {
		c = max(c, m.FirstDay)
	}
	phi := k.factor(k.minute)
	top := 0.999
	if m.Unbounded {
		top = math.Inf(1)
	}
	k.null.level = min(l.level(m)*phi, top)
	k.null.p0 = max(m.MinLevel, m.share(c*m.odds(min(l.upper(m)*phi, top))))
	k.null.k = 1 / l.dispersion(m)
	k.null.derive(m)
}

func (k *Key) factor(minute int64) float64 {
	if k.season == nil {
		return 1
	}
	return k.season.Factor(minute)
}
