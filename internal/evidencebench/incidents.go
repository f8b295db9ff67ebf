package evidencebench

import (
	"math"
	"slices"

	"github.com/tocsin-project/tocsin/internal/detect/evidence"
)

// Class is one kind of incident.
type Class struct {
	Name   string
	volume float64 // a minute
	rate   float64 // usual
	slices int     // of the path; one of them fails
	share  float64 // of requests that fail at the height, beyond the usual
	ramp   float64 // minutes until then
	within float64 // minutes in which it must be found, else it is missed
}

// Classes of incidents that are measured.
var Classes = []Class{
	{Name: "failing write under healthy reads: 40% of 20 a minute", volume: 20, rate: 0.002, share: 0.4, within: 240},
	{Name: "low traffic at night: 90% of 30 a minute", volume: 30, rate: 0.005, share: 0.9, within: 240},
	{Name: "everything fails at once: 300 a minute", volume: 300, rate: 0.003, share: 0.97, within: 240},
	{Name: "step to 5%: 300 a minute", volume: 300, rate: 0.003, share: 0.05, within: 240},
	{Name: "creeping to 0.3% in 2 h: 2000 a minute, usually 0.02%", volume: 2000, rate: 0.0002, share: 0.0028, ramp: 120, within: 360},
	{Name: "creeping to 1% in 6 h: 600 a minute, usually 0.1%", volume: 600, rate: 0.001, share: 0.009, ramp: 360, within: 360},
	{Name: "one site of seven: 30% of its 70 a minute", volume: 500, rate: 0.002, slices: 7, share: 0.3, within: 240},
	{Name: "one model of twenty: half of its 50 a minute, in 10 min", volume: 1000, rate: 0.003, slices: 20, share: 0.5, ramp: 10, within: 240},
}

// Traces are, for each method, the first time after the start at which the score reached each height.
type Traces [methods][]step

type step struct {
	minutes, score float64
}

// Delay is when the score first reached a threshold; +Inf is never.
func (t *Traces) Delay(method int, threshold float64) float64 {
	for _, s := range t[method] {
		if s.score >= threshold {
			return s.minutes
		}
	}
	return math.Inf(1)
}

// Incident seeds one incident into a realistic world and runs all methods, every ten seconds while it lasts.
func Incident(c Class, m *evidence.Model, seed uint64) *Traces {
	w := &world{kind: Realistic, r: newRandom(seed, 2)}
	r := w.r
	p := w.newPath(1)
	p.volume, p.rate, p.nightDepth, p.weekendDrop, p.weights, p.worse = c.volume, c.rate, r.between(0, 0.3), 1, nil, nil
	if c.slices > 0 {
		p.slice(r, c.slices)
		for j := range p.weights {
			p.weights[j] = 1 / float64(c.slices)
		}
	}
	var all []*watcher
	for range c.slices + 1 {
		all = append(all, newWatcher(m, len(all)))
	}
	start := int64(r.between(1, 3) * day)
	second := r.between(0, 60)
	var x Traces
	var buf []counts
	for t := int64(0); t < start+int64(c.within)+1; t++ {
		if t < start-2*hour && r.Float64() < Realistic.BlipsPerDay/day {
			w.deploy([]*path{p}, t)
		}
		buf = w.minute(p, t, buf[:0])
		if t < start {
			for i, v := range buf {
				all[i].add(v.n, v.f)
				all[i].end(v)
			}
			continue
		}
		x.incidentMinute(r, &c, all, buf, float64(t-start), second/60)
	}
	return &x
}

// incidentMinute splits a minute in six and lets more requests fail, in the first slice or in the whole.
func (x *Traces) incidentMinute(r random, c *Class, all []*watcher, buf []counts, t, began float64) {
	rest := slices.Clone(buf)
	sofar := make([]counts, len(buf))
	whole := len(buf) - 1
	for i := range 6 {
		now := t + float64(i+1)/6 - began
		q := 0.0
		if now > 0 {
			q = c.share
			if c.ramp > 0 {
				q *= min(1, now/c.ramp)
			}
		}
		var sum counts
		for j := range buf {
			part := counts{r.binomial(rest[j].n-rest[j].f, 1/float64(6-i)), r.binomial(rest[j].f, 1/float64(6-i))}
			part.n += part.f
			rest[j].n, rest[j].f = rest[j].n-part.n, rest[j].f-part.f
			switch {
			case j == whole && whole > 0:
				part = sum
			case j == 0:
				part.f += r.binomial(part.n-part.f, q)
			}
			sum.n, sum.f = sum.n+part.n, sum.f+part.f
			all[j].add(part.n, part.f)
			sofar[j].n, sofar[j].f = sofar[j].n+part.n, sofar[j].f+part.f
			if now > 0 {
				var s [methods]float64
				all[j].scores(sofar[j], &s)
				for m, v := range s {
					x.see(m, now, v)
				}
			}
		}
	}
	for j := range all {
		all[j].end(sofar[j])
	}
}

func (x *Traces) see(m int, now, v float64) {
	if n := len(x[m]); v > never && (n == 0 || v > x[m][n-1].score) {
		x[m] = append(x[m], step{now, v})
	}
}
