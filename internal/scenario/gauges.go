package scenario

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// gauge is one metric of one resource, measured at a period of its own phase.
type gauge struct {
	file     gaugeFile
	resource string
	next     time.Duration // since midnight
	random   *rand.Rand
	noise    wander
	effects  []gaugeEffect
}

type gaugeEffect struct {
	curve *curve
	delay time.Duration
	add   float64
}

func (g *Generator) makeGauges() {
	w := &g.scenario.world
	for _, resource := range slices.Sorted(maps.Keys(w.Resources)) {
		for _, f := range w.Resources[resource] {
			ga := &gauge{file: f, resource: resource, random: newRand(g.seed, "gauge "+resource+" "+f.Metric), noise: newWander(f.Noise, 0.9)}
			// Exporters are not in step with each other or with our buckets.
			ga.next = g.now + time.Duration(ga.random.Int64N(int64(f.Every))).Truncate(time.Millisecond)
			for _, e := range g.scenario.file.Effects {
				if e.On.Resource == resource && e.On.Metric == f.Metric {
					ga.effects = append(ga.effects, gaugeEffect{curve: g.curves[e.Driver], delay: e.Delay.Std(), add: e.Add})
				}
			}
			g.gauges = append(g.gauges, ga)
		}
	}
}

func (g *Generator) measure(from, to time.Duration) (out []signal.Gauge) {
	for _, ga := range g.gauges {
		for ; ga.next < to; ga.next += ga.file.Every.Std() {
			out = append(out, signal.Gauge{
				Time: g.at(ga.next), Resource: ga.resource, Metric: ga.file.Metric, Unit: ga.file.Unit,
				Value: ga.value(ga.next, g.scenario.world.Daily.at(ga.next)), Limit: ga.file.Limit,
			})
		}
	}
	slices.SortStableFunc(out, func(a, b signal.Gauge) int { return cmp.Compare(a.Time.UnixNano(), b.Time.UnixNano()) })
	return out
}

func (ga *gauge) value(t time.Duration, daily float64) float64 {
	f := &ga.file
	v := f.Base * (1 + f.Daily*daily + ga.noise.step(ga.random))
	for _, e := range ga.effects {
		v += e.add * e.curve.at(t-e.delay)
	}
	v = max(v, 0)
	if f.Limit > 0 {
		v = min(v, f.Limit)
	}
	scale := math.Pow10(f.Digits)
	return math.Round(v*scale) / scale
}
