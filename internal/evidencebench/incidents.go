package evidencebench

import (
	"math"
	"slices"
)

// Class is one kind of incident.
type Class struct {
	Name   string
	Short  string
	volume float64 // a minute
	rate   float64 // usual
	slices int     // of the path; one of them fails
	share  float64 // of requests that fail at the height, beyond the usual
	ramp   float64 // minutes until then
	within float64 // minutes in which it must be found, else it is missed
	lasts  float64 // minutes; 0 is until the end
}

// Creeps tells the classes that grow over hours from those that are there within minutes.
func (c *Class) Creeps() bool { return c.ramp > hour }

// Classes of incidents that are measured.
var Classes = []Class{
	{Name: "failing write under healthy reads: 40% of 20 a minute", Short: "failing write", volume: 20, rate: 0.002, share: 0.4, within: 240},
	{Name: "low traffic at night: 90% of 30 a minute", Short: "low traffic", volume: 30, rate: 0.005, share: 0.9, within: 240},
	{Name: "everything fails at once: 300 a minute", Short: "all fails", volume: 300, rate: 0.003, share: 0.97, within: 240},
	{Name: "step to 5%: 300 a minute", Short: "step to 5%", volume: 300, rate: 0.003, share: 0.05, within: 240},
	{Name: "creeping to 0.3% in 2 h: 2000 a minute, usually 0.02%", Short: "creep to 0.3%", volume: 2000, rate: 0.0002, share: 0.0028, ramp: 120, within: 360},
	{Name: "creeping to 1% in 6 h: 600 a minute, usually 0.1%", Short: "creep to 1%", volume: 600, rate: 0.001, share: 0.009, ramp: 360, within: 360},
	{Name: "one site of seven: 30% of its 70 a minute", Short: "one site", volume: 500, rate: 0.002, slices: 7, share: 0.3, within: 240},
	{Name: "one model of twenty: half of its 50 a minute, in 10 min", Short: "one model", volume: 1000, rate: 0.003, slices: 20, share: 0.5, ramp: 10, within: 240},
}

// Where says in which world and after how much history incidents happen.
type Where struct {
	Name    string
	Kind    Kind
	History int // minutes; 0 is one to three days
}

// Wheres are the worlds, and the first day of a path.
var Wheres = []Where{
	{"realistic", Realistic, 0}, {"strong seasons and drift", Drifting, 0}, {"heavy-tailed blips and bursts", Heavy, 0},
	{"realistic, path known for 1 h", Realistic, hour}, {"realistic, path known for 3 h", Realistic, 3 * hour}, {"realistic, path known for 12 h", Realistic, 12 * hour},
}

// Trace holds, for each setting, when each height was first reached after the start.
type Trace [][]Step

// Step is a height and when it was reached.
type Step struct {
	Minutes float32
	Level   int16
}

// Delay is when the level was first reached; +Inf is never.
func (t Trace) Delay(setting, level int) float64 {
	for _, s := range t[setting] {
		if int(s.Level) >= level {
			return float64(s.Minutes)
		}
	}
	return math.Inf(1)
}

// incident is one that is under way.
type incident struct {
	g       *grid
	class   *Class
	r       random
	all     []*watcher // of the slices, and then of the path
	trace   Trace
	reached []int16
	began   float64 // its second, as a part of the minute
	// Look is shown every minute of the path or of the slice that fails, before the open one is closed, for pictures.
	look func(now float64, w *watcher, minute counts)
}

// history is the world of one path before and during an incident.
type history struct {
	w *world
	p *path
}

func newIncident(g *grid, where *Where, c *Class, seed uint64) (*incident, *history, int64) {
	w := &world{kind: where.Kind, r: newRandom(seed, 2)}
	r := w.r
	p := w.newPath(1)
	p.volume, p.rate, p.nightDepth, p.weekendDrop, p.weights, p.worse = c.volume, c.rate, r.between(0, 0.3), 1, nil, nil
	if c.slices > 0 {
		p.slice(r, c.slices)
		for j := range p.weights {
			p.weights[j] = 1 / float64(c.slices)
		}
	}
	x := &incident{g: g, class: c, r: r, trace: make(Trace, len(g.settings)), reached: make([]int16, len(g.settings))}
	for range c.slices + 1 {
		x.all = append(x.all, newWatcher(g, len(x.all)))
	}
	start := int64(where.History)
	if drawn := int64(r.between(1, 3) * day); start == 0 {
		start = drawn
	}
	x.began = r.between(0, 60) / 60
	return x, &history{w, p}, start
}

// Incident seeds one incident and runs all methods, every ten seconds while it lasts. Blips go on, but for the two hours before
// it: an alarm that is up already would count as found at once.
func Incident(g *grid, where *Where, c *Class, seed uint64) Trace {
	x, h, start := newIncident(g, where, c, seed)
	x.run(h, start)
	return x.trace
}

func (x *incident) run(h *history, start int64) {
	var buf []counts
	for t := int64(0); t < start+int64(x.class.within)+1; t++ {
		if (t < start-2*hour || t >= start) && x.r.Float64() < h.w.kind.BlipsPerDay/day {
			h.w.deploy([]*path{h.p}, t)
		}
		buf = h.w.minute(h.p, t, buf[:0])
		if t < start {
			for i, v := range buf {
				w := x.all[i]
				w.tocsin.add(t, v.n, v.f)
				if x.look != nil && i == 0 {
					x.look(float64(t-start)+1-x.began, w, v)
				}
				w.end(v, true)
			}
			continue
		}
		x.minute(buf, float64(t-start))
	}
}

// minute splits a minute in six and lets more requests fail, in the first slice or in the whole.
func (x *incident) minute(buf []counts, t float64) {
	r, c := x.r, x.class
	rest := slices.Clone(buf)
	sofar := make([]counts, len(buf))
	whole := len(buf) - 1
	for i := range 6 {
		now := t + float64(i+1)/6 - x.began
		q := 0.0
		if now > 0 && (c.lasts == 0 || now <= c.lasts) {
			q = c.share
			if c.ramp > 0 {
				q *= min(1, now/c.ramp)
			}
		}
		var sum counts
		clear16(x.reached)
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
			w := x.all[j]
			w.tocsin.add(w.at, part.n, part.f)
			sofar[j].n, sofar[j].f = sofar[j].n+part.n, sofar[j].f+part.f
			if now > 0 {
				w.rivals(sofar[j], 6, x.reached[:rivalSettings])
				w.tocsin.reach(x.reached[rivalSettings:])
			}
		}
		x.see(now)
	}
	if x.look != nil {
		x.look(t+1-x.began, x.all[0], sofar[0])
	}
	for j := range x.all {
		x.all[j].end(sofar[j], true)
	}
}

func (x *incident) see(now float64) {
	for i, level := range x.reached {
		if level < 0 {
			continue
		}
		if n := len(x.trace[i]); n == 0 || level > x.trace[i][n-1].Level {
			x.trace[i] = append(x.trace[i], Step{float32(now), level})
		}
	}
}
