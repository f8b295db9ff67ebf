package evidence

import "math"

// null is the composite null hypothesis at this hour and what is compared with it: a count is negative binomial with
// shape k and a mean of at most n·p0.
type null struct {
	level float64 // usual
	p0    float64 // tolerated
	k     float64
	p     [alternatives]float64
	logs  [alternatives]float64 // ln(p/p0)
}

// derive works out the alternatives: they are spaced evenly in log odds.
func (h *null) derive(m *Model) {
	lo := m.FirstLevel * m.odds(h.p0)
	hi := max(m.LastLevel, lo)
	if m.Unbounded {
		hi = m.LastLevel * h.p0
	}
	step := math.Pow(hi/lo, 1.0/(alternatives-1))
	for j, o := 0, lo; j < alternatives; j, o = j+1, o*step {
		h.p[j] = m.share(o)
		h.logs[j] = math.Log(h.p[j] / h.p0)
	}
}

// ratios gives the likelihood ratio of each alternative to the null for f of n, and their mean. They increase in f, so a
// key whose true level is below p0 gives less evidence, never more.
func (h *null) ratios(n, f float64, out *[alternatives]float64) (mean float64) {
	const most = 500 // e^500 is a number, its product with others is one, too
	base := math.Log(h.k + n*h.p0)
	for j := range out {
		l := f*h.logs[j] + (f+h.k)*(base-math.Log(h.k+n*h.p[j]))
		out[j] = math.Exp(max(-100, min(most, l)))
		mean += out[j]
	}
	return mean / alternatives
}

// bad tells minutes that are clearly worse than what is tolerated.
func (k *Key) bad(n, f float64) bool { return f > 2*n*k.null.p0+1 }

// guard keeps trouble from becoming usual. It watches the sums without the cap, because one heavy minute is enough to
// spoil what was learned.
func (k *Key) guard() {
	m := k.model
	s := log10Sum(&k.bare)
	switch {
	case k.minute-k.born < day, s <= m.GuardLearn:
		k.guarded = 0
		return
	case int(k.guarded) >= m.GuardMax:
		k.accept()
		return
	}
	k.guarded++
	if s <= m.GuardForget {
		return
	}
	for i := range k.ns[:] {
		back := ((slot(k.minute)-i)%keep + keep) % keep
		if back < hour && !k.left[i] && k.bad(float64(k.ns[i]), float64(k.fs[i])) {
			k.left[i] = true
		}
	}
}

// accept takes the last two hours as the new level: they weigh as much as all before, and the evidence begins anew.
func (k *Key) accept() {
	var n, f float64
	for i := range k.ns {
		n += float64(k.ns[i])
		f += float64(k.fs[i])
		k.left[i] = false
	}
	l := &k.learned
	if l.n > n && n > 0 {
		l.f *= n / l.n
		l.n = n
	}
	l.f += f
	l.n += n
	l.to = k.minute
	k.guarded = 0
	k.capped, k.bare, k.before = [alternatives]float64{}, [alternatives]float64{}, [MaxBurst]float64{}
	k.refresh()
}
