package explain

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/detect/suspect"
)

const (
	// gaugeBefore is how many samples a gauge needs before the onset to have a habit.
	gaugeBefore = 5
	// odd is how many deviations from its habit make a gauge odd.
	odd = 4
	// gaugeFloor keeps a gauge that hardly moved from being odd for a trifle: this part of its usual value.
	gaugeFloor = 0.1
	// falling weighs what is lower than usual: mostly less work arrives there, which is a consequence.
	falling = 0.3
	// habitless is how odd a gauge near its limit is that has no habit yet.
	habitless = 10
	// mostOdd bounds what one gauge proves, in decades.
	mostOdd = 50
	// full and near are the levels at which a resource has run out or may be the reason for refusals.
	full, near = 0.98, 0.85
	// fewLow is how many calm gauges are named as counter-evidence.
	fewLow = 3
)

// gauge is what one gauge did around the onset.
type gauge struct {
	key      gaugeKey
	usual    float64
	now      float64 // median since the onset
	z        float64 // deviations from the usual; 0 without a habit
	level    float64 // of the limit, now; 0 without one
	since    time.Time
	hasLimit bool
}

// decades puts deviations on the scale of evidence. A normal distribution would give twice as many; gauges have long tails.
func (g *gauge) decades() float64 { return math.Min(g.z*g.z/10, mostOdd) }

func (g *gauge) odd() bool { return math.Abs(g.z) >= odd }

func (g *gauge) String() string {
	if g.usual == 0 && g.z == habitless {
		return fmt.Sprintf("%s of %s is at %.0f%% of its limit", metricWords(g.key.metric), g.key.resource, g.level*100)
	}
	return fmt.Sprintf("%s of %s is at %s since %s UTC, usually %s", metricWords(g.key.metric), g.key.resource, short(g.now), hm(g.since), short(g.usual))
}

// look at a gauge: its median since the onset against median and median deviation before.
func (p *Past) gauge(k gaugeKey, onset time.Time) *gauge {
	ss := slices.SortedFunc(slices.Values(p.gauges[k]), func(a, b sample) int { return a.at.Compare(b.at) })
	g := &gauge{key: k}
	var before, since []float64
	for _, s := range ss {
		if s.at.Before(onset) {
			before = append(before, s.value)
			continue
		}
		since = append(since, s.value)
		if s.limit > 0 {
			g.hasLimit = true
			g.level = s.value / s.limit
		}
	}
	if len(since) == 0 {
		return nil
	}
	g.now, g.since = median(since), onset
	if len(before) < gaugeBefore {
		if g.level >= near {
			g.z = habitless
		}
		return g
	}
	g.usual = median(before)
	spread := make([]float64, len(before))
	for i, v := range before {
		spread[i] = math.Abs(v - g.usual)
	}
	scale := math.Max(1.4826*median(spread), gaugeFloor*math.Abs(g.usual))
	if scale == 0 {
		scale = math.Max(gaugeFloor*math.Abs(g.now), 1e-9)
	}
	if g.z = (g.now - g.usual) / scale; g.z < 0 {
		g.z *= falling
	}
	for i := len(ss) - 1; i >= 0 && math.Abs(ss[i].value-g.usual) >= odd/2*scale; i-- {
		g.since = ss[i].at // in trouble without a break since then
	}
	return g
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// gaugesNear looks at the gauges of what a service depends on, and of itself.
func (p *Past) gaugesNear(cat *catalogue.Catalogue, onset time.Time) (out []*gauge) {
	up := cat.Upstream(p.symptom.Service, graphHops)
	keys := slices.SortedFunc(maps.Keys(p.gauges), func(a, b gaugeKey) int {
		return cmp.Or(cmp.Compare(a.resource, b.resource), cmp.Compare(a.metric, b.metric), cmp.Compare(a.attributes, b.attributes))
	})
	for _, k := range keys {
		if _, ok := up[k.resource]; !ok {
			continue
		}
		if g := p.gauge(k, onset); g != nil {
			out = append(out, g)
		}
	}
	return out
}

// private is the one service that alone uses a resource: what is odd there is that service's own trouble.
func private(cat *catalogue.Catalogue, resource string) string {
	if users := cat.UsedBy(resource); len(users) == 1 && cat.Service(users[0]) != nil {
		return users[0]
	}
	return ""
}

// resources are the suspects among what runs out or behaves oddly and is shared. oddest holds for each service the odd
// gauges of what it alone uses, the oddest first.
func resources(cat *catalogue.Catalogue, gauges []*gauge) (out []suspect.Resource, oddest map[string][]*gauge) {
	oddest = map[string][]*gauge{}
	by := map[string]*suspect.Resource{}
	for _, g := range gauges {
		runsOut := g.hasLimit && g.level >= near && g.now >= g.usual
		if !runsOut && !g.odd() {
			continue
		}
		if s := private(cat, g.key.resource); s != "" && g.odd() {
			oddest[s] = append(oddest[s], g)
			continue
		}
		r := by[g.key.resource]
		if r == nil {
			r = &suspect.Resource{Name: g.key.resource, FiredAt: g.since}
			by[r.Name] = r
		}
		if g.since.Before(r.FiredAt) {
			r.FiredAt = g.since
		}
		switch {
		case runsOut && g.level > r.Level:
			r.Level, r.Metric, r.What = g.level, metricWords(g.key.metric), ""
			r.Full = r.Full || g.level >= full
			if g.odd() && (r.Trend.IsZero() || g.since.Before(r.Trend)) {
				r.Trend = g.since
			}
		case !runsOut && r.Level == 0 && g.decades() > r.Decades:
			r.Metric, r.What, r.Decades = metricWords(g.key.metric), g.String(), g.decades()
		}
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		r := by[name]
		for _, g := range gauges {
			if g.key.resource == name && !g.odd() && g.hasLimit && g.level < near/2 && len(r.Low) < fewLow {
				r.Low = append(r.Low, suspect.Low{Resource: name, Metric: metricWords(g.key.metric), Level: g.level})
			}
		}
		out = append(out, *r)
	}
	for _, gs := range oddest {
		slices.SortStableFunc(gs, func(a, b *gauge) int { return cmp.Compare(math.Abs(b.z), math.Abs(a.z)) })
	}
	return out, oddest
}

func metricWords(m string) string { return strings.ReplaceAll(m, "_", " ") }

func short(v float64) string { return fmt.Sprintf("%.4g", v) }

// nodesOf are services without requests that have odd gauges: they are in trouble as far as anybody can tell.
func nodesOf(oddest map[string][]*gauge, known map[string]*trouble) (out []string) {
	for s := range oddest {
		if known[s] == nil {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return out
}
