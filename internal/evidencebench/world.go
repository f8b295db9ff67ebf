// Package evidencebench puts a figure on what package evidence promises. It makes worlds in which nothing is wrong, but
// much is uneven, counts the pages that the evidence rule and its rivals would have sent there, and measures how long each
// of them takes to notice seeded incidents. It works on counts a minute, not on requests. It is not for judging other
// parts of the detector: package scenario makes whole recordings for that.
package evidencebench

import "math"

const (
	hour = 60
	day  = 24 * hour
)

// Kind says how uneven a quiet world is.
type Kind struct {
	Name string
	// Season is how many times the failure rate of a seasonal path swings over a day, DriftSD the standard deviation of its
	// slow wandering, in logarithms.
	Season, DriftSD float64
	// BlipsPerDay of each service, and the longest of them in minutes; tails says that lengths and heights are Pareto.
	BlipsPerDay float64
	BlipMax     float64
	Tails       bool
	Dispersion  float64 // median relative variance of a minute's failure rate
}

// Worlds that are compared. The figures are round ones, chosen before the first run, and not adjusted to the results.
var (
	Realistic = Kind{Name: "realistic", Season: 1.5, DriftSD: 0.15, BlipsPerDay: 0.3, BlipMax: 3, Dispersion: 0.2}
	Drifting  = Kind{Name: "strong seasons and drift", Season: 3, DriftSD: 0.35, BlipsPerDay: 0.3, BlipMax: 3, Dispersion: 0.2}
	Heavy     = Kind{Name: "heavy-tailed blips and bursts", Season: 1.5, DriftSD: 0.15, BlipsPerDay: 0.3, BlipMax: 15, Tails: true, Dispersion: 0.6}
)

const (
	services   = 30
	perService = 4
	sliced     = 10 // paths with slices
	perSliced  = 7
	// Keys is how many keys a world has: paths and slices.
	Keys = services*perService + sliced*perSliced
)

// path makes the counts of one path, or of its slices.
type path struct {
	volume      float64 // requests a minute at the height of the day
	rate        float64
	swing       float64 // log of the factor between a day's best and worst rate
	phase       float64
	dispersion  float64
	heavy       bool // lognormal, not gamma
	wander      float64
	weights     []float64 // of the slices
	worse       []float64 // rate of a slice by the path's
	bot         float64
	botTo       int64
	throttled   int64 // a customer is throttled until then
	blip        float64
	blipTo      int64
	gapTo       int64
	nightDepth  float64
	weekendDrop float64
}

// counts are what one key saw in one minute.
type counts struct{ n, f uint64 }

// world is all paths, and what happens to them.
type world struct {
	kind  Kind
	r     random
	paths []*path
	gapTo int64
}

func newWorld(kind Kind, seed uint64) *world {
	w := &world{kind: kind, r: newRandom(seed, 1)}
	for i := range services * perService {
		w.paths = append(w.paths, w.newPath(i))
	}
	return w
}

func (w *world) newPath(i int) *path {
	r := w.r
	p := &path{
		volume: min(20000, max(0.2, r.around(60, 2))), rate: min(0.02, max(2e-5, r.around(0.0015, 1))),
		phase: r.between(0, day), dispersion: w.kind.Dispersion * r.between(0.3, 2), heavy: r.Float64() < 0.5,
		nightDepth: r.between(0.2, 0.9), weekendDrop: r.between(0.4, 1),
	}
	if r.Float64() < 0.33 {
		p.swing = math.Log(w.kind.Season)
	}
	switch u := r.Float64(); {
	case u < 0.03:
		p.rate = r.between(0.3, 0.95) // fails habitually, and nobody minds
	case u < 0.08:
		p.rate = r.between(0.02, 0.06)
	}
	if i%(services*perService/sliced) == 0 {
		p.slice(r, perSliced)
	}
	return p
}

func (p *path) slice(r random, n int) {
	p.weights, p.worse = make([]float64, n), make([]float64, n)
	sum := 0.0
	for j := range p.weights {
		p.weights[j], p.worse[j] = r.around(1, 0.8), r.around(1, 0.3)
		sum += p.weights[j]
	}
	for j := range p.weights {
		p.weights[j] /= sum
	}
}

// happen lets deploys, gaps, bots and throttled customers begin.
func (w *world) happen(t int64) {
	r := w.r
	if r.Float64() < 0.7/(7*day) {
		w.gapTo = t + int64(r.between(5, 40)) // the pipeline of telemetry itself
	}
	for s := range services {
		if r.Float64() < w.kind.BlipsPerDay/day {
			w.deploy(w.paths[s*perService:(s+1)*perService], t)
		}
	}
	for range 2 {
		p := w.paths[r.IntN(len(w.paths))]
		switch u := r.Float64() * day; {
		case u < 1:
			p.bot, p.botTo = r.between(2, 10), t+int64(r.between(10, 60))
		case u < 2:
			p.throttled = t + int64(r.between(60, 360))
		case u < 3:
			p.gapTo = t + int64(r.between(5, 120))
		case u < 8: // somebody's batch of bad requests, a cut connection: a minute of a few times the usual
			p.blip, p.blipTo = min(0.5, p.rate*r.between(3, 12)), t+1
		}
	}
}

// deploy fails a part of a service's requests while its instances are replaced.
func (w *world) deploy(paths []*path, t int64) {
	r := w.r
	length, height := r.between(1, w.kind.BlipMax), min(0.5, r.around(0.02, 1))
	if w.kind.Tails {
		length = min(w.kind.BlipMax, math.Pow(r.Float64(), -1/1.5))
		height = min(0.8, 0.01*math.Pow(r.Float64(), -1/1.2))
	}
	for _, p := range paths {
		p.blip, p.blipTo = height*r.between(0.5, 1.5), t+int64(math.Ceil(length))
	}
}

// minute appends the counts of a path's slices, if it has any, and then those of the path.
func (w *world) minute(p *path, t int64, out []counts) []counts {
	r := w.r
	if t%10 == 0 {
		const rho = 0.985 // of ten minutes: the wandering is that of about eleven hours
		p.wander = rho*p.wander + math.Sqrt(1-rho*rho)*w.kind.DriftSD*r.NormFloat64()
	}
	clock := 2 * math.Pi * (float64(t%day) - p.phase) / day
	volume := p.volume * (1 - p.nightDepth*(1-math.Cos(clock))/2)
	if t/day%7 >= 5 {
		volume *= p.weekendDrop
	}
	if t < p.throttled {
		volume *= 0.8
	}
	if t < w.gapTo || t < p.gapTo {
		volume = 0
	}
	rate := p.rate * math.Exp(p.wander+p.swing/2*math.Cos(clock+1))
	if p.heavy {
		rate *= r.lognormal(p.dispersion)
	} else {
		rate *= r.gamma(p.dispersion)
	}
	if t < p.blipTo {
		rate += p.blip
	}
	volume *= r.gamma(0.01)
	bots := 0.0
	if t < p.botTo {
		bots = volume * p.bot // bots ask for what is there, or are rejected, which does not count
	}
	if p.weights == nil {
		n := r.poisson(volume)
		return append(out, counts{n + r.poisson(bots*0.2), r.binomial(n, min(rate, 0.98))})
	}
	var sum counts
	for j, share := range p.weights {
		n := r.poisson(volume * share)
		c := counts{n + r.poisson(bots*0.2*share), r.binomial(n, min(rate*p.worse[j], 0.98))}
		sum.n, sum.f = sum.n+c.n, sum.f+c.f
		out = append(out, c)
	}
	return append(out, sum)
}
