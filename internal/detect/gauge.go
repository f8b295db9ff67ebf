package detect

import (
	"cmp"
	"math"
	"slices"

	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	// coarseMinutes is how long a gauge is kept by minute: a job that began an hour and a half ago must still be
	// seen to have begun with the trend.
	coarseMinutes = 6 * 60
	trendPoints   = 30
)

type gaugeKey struct {
	Resource, Metric string
	Attributes       signal.Attributes
}

func (k gaugeKey) compare(o gaugeKey) int {
	return cmp.Or(cmp.Compare(k.Resource, o.Resource), cmp.Compare(k.Metric, o.Metric), cmp.Compare(k.Attributes, o.Attributes))
}

// gauge is the recent past of one metric of one resource.
type gauge struct {
	Key     gaugeKey
	Unit    string       `json:",omitempty"`
	Points  []gaugePoint // the last of each bucket, for an hour, by bucket
	Coarse  []gaugePoint // the last of each minute, for six hours; Bucket is the minute
	Last    int64
	Spacing float64
}

type gaugePoint struct {
	Bucket       int64
	Value, Limit float64
}

func (p gaugePoint) level() float64 { return p.Value / p.Limit }

// largest bounds the values of gauges, and its inverse their limits from below: what is worked out of them has to be a number, too.
const largest = 1e100

// sane gives gauges as they are judged: without those that have no value, and with limits and values that can be reckoned with. State and
// conclusions are text, which has nothing to say what is no number with.
func sane(all []signal.Gauge) []signal.Gauge {
	limited := func(l float64) bool { return l >= 1/largest && l <= math.MaxFloat64 }
	odd := func(g signal.Gauge) bool {
		return !(math.Abs(g.Value) <= largest) || g.Limit != 0 && !(limited(g.Limit) && g.Limit <= largest)
	}
	if !slices.ContainsFunc(all, odd) {
		return all
	}
	var out []signal.Gauge // the caller's are not changed
	for _, g := range all {
		if math.IsNaN(g.Value) || math.IsInf(g.Value, 0) {
			continue
		}
		g.Value = max(-largest, min(g.Value, largest))
		if !limited(g.Limit) {
			g.Limit = 0
		}
		g.Limit = min(g.Limit, largest)
		out = append(out, g)
	}
	return out
}

func (d *Detector) observeGauge(m *signal.Gauge) {
	k := gaugeKey{m.Resource, m.Metric, m.Attributes}
	g := d.byGauge[k]
	if g == nil {
		g = &gauge{Key: k, Spacing: 1}
		d.byGauge[k] = g
		i, _ := slices.BinarySearchFunc(d.gauges, k, func(g *gauge, k gaugeKey) int { return g.Key.compare(k) })
		d.gauges = slices.Insert(d.gauges, i, g)
	}
	g.Unit = cmp.Or(m.Unit, g.Unit)
	b := bucketOf(m.Time)
	if b > g.Last {
		if g.Last > 0 {
			g.Spacing += (math.Min(float64(b-g.Last), 360) - g.Spacing) * 0.05
		}
		g.Last = b
	}
	g.Points = putPoint(g.Points, gaugePoint{b, m.Value, m.Limit})
	g.Coarse = putPoint(g.Coarse, gaugePoint{minuteOf(b), m.Value, m.Limit})
}

func putPoint(ps []gaugePoint, p gaugePoint) []gaugePoint {
	i, found := slices.BinarySearchFunc(ps, p.Bucket, func(x gaugePoint, b int64) int { return cmp.Compare(x.Bucket, b) })
	if found {
		ps[i] = p
		return ps
	}
	return slices.Insert(ps, i, p)
}

func (g *gauge) trim(now int64) {
	cutTo := func(ps []gaugePoint, oldest int64) []gaugePoint {
		n := 0
		for n < len(ps) && ps[n].Bucket < oldest {
			n++
		}
		return slices.Delete(ps, 0, n)
	}
	g.Points = cutTo(g.Points, now-keepBuckets)
	g.Coarse = cutTo(g.Coarse, minuteOf(now)-coarseMinutes)
}

func (g *gauge) missing(now int64) bool {
	return float64(now-1-g.Last) >= missingSpacings*math.Max(g.Spacing, 1)
}

// level is the median of the last minute's points, or of the newest three where there are fewer: one odd point is nothing.
func (g *gauge) level(now int64) (level float64, p gaugePoint, ok bool) {
	n := len(g.Points)
	if n == 0 || g.Points[n-1].Limit <= 0 {
		return 0, p, false
	}
	from := n - 1
	for from > 0 && (g.Points[from-1].Bucket >= now-6 || n-from < 3) && g.Points[from-1].Limit > 0 {
		from--
	}
	ls := make([]float64, 0, n-from)
	for _, x := range g.Points[from:] {
		ls = append(ls, x.level())
	}
	slices.Sort(ls)
	return ls[len(ls)/2], g.Points[n-1], true
}

// trend is a robust line through a gauge's level.
type trend struct {
	slope  float64 // level per bucket
	recent float64 // the same over the last third
	newest float64 // over the last sixth
	rise   float64 // over the whole span
	noise  float64 // median absolute residual
	points int
	span   int64 // buckets between first and last point
}

// trendOver fits a line by Theil and Sen (the median of all pairs' slopes): a single burst does not turn it.
func (g *gauge) trendOver(now, window int64) (tr trend) {
	lo := len(g.Points)
	for lo > 0 && g.Points[lo-1].Bucket >= now-window && g.Points[lo-1].Limit > 0 {
		lo--
	}
	ps := thin(g.Points[lo:], trendPoints)
	if len(ps) < 6 {
		return tr
	}
	if last, first := ps[len(ps)-1-len(ps)/6].y, ps[len(ps)/6].y; last-first < minRise/4 {
		return tr // far from rising: not worth a fit
	}
	tr.points, tr.span = len(ps), int64(ps[len(ps)-1].x-ps[0].x)
	tr.slope = theilSen(ps)
	tr.recent = theilSen(ps[len(ps)-max(len(ps)/3, 4):])
	tr.newest = theilSen(ps[len(ps)-max(len(ps)/6, 4):])
	tr.rise = tr.slope * float64(tr.span)
	residuals := make([]float64, len(ps))
	for i, p := range ps {
		residuals[i] = p.y - tr.slope*p.x
	}
	mid := median(slices.Clone(residuals))
	for i := range residuals {
		residuals[i] = math.Abs(residuals[i] - mid)
	}
	tr.noise = median(residuals)
	return tr
}

type xy struct{ x, y float64 }

// thin takes the median of equal parts, so that the cost does not grow with how often a gauge reports.
func thin(ps []gaugePoint, parts int) (out []xy) {
	if len(ps) <= parts {
		for _, p := range ps {
			out = append(out, xy{float64(p.Bucket), p.level()})
		}
		return out
	}
	var xs, ys []float64
	for i := range parts {
		xs, ys = xs[:0], ys[:0]
		for _, p := range ps[i*len(ps)/parts : (i+1)*len(ps)/parts] {
			xs, ys = append(xs, float64(p.Bucket)), append(ys, p.level())
		}
		out = append(out, xy{median(xs), median(ys)})
	}
	return out
}

func theilSen(ps []xy) float64 {
	slopes := make([]float64, 0, len(ps)*(len(ps)-1)/2)
	for i := range ps {
		for j := range i {
			if dx := ps[i].x - ps[j].x; dx > 0 {
				slopes = append(slopes, (ps[i].y-ps[j].y)/dx)
			}
		}
	}
	return median(slopes)
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return (v[len(v)/2] + v[(len(v)-1)/2]) / 2
}

// bend finds when a trend began: the minute at which two joined straight lines fit the last hours best. ok is false where
// a single line fits nearly as well.
func (g *gauge) bend(before int64) (minute int64, ok bool) {
	var ps []xy
	for _, p := range g.Coarse {
		if p.Limit > 0 && p.Bucket <= before && p.Bucket > before-3*60 {
			ps = append(ps, xy{float64(p.Bucket - before), p.level()})
		}
	}
	if len(ps) < 12 {
		return 0, false
	}
	whole := hinge(ps, ps[0].x)
	best, at := math.Inf(1), 0.0
	for _, p := range ps[3 : len(ps)-3] {
		if e := hinge(ps, p.x); e < best {
			best, at = e, p.x
		}
	}
	if best > whole*0.6 {
		return 0, false
	}
	return before + int64(at), true
}

// hinge is the squared error of the least-squares fit by 1, x and max(0, x−k).
func hinge(ps []xy, k float64) float64 {
	var m [3][4]float64
	rows := func(p xy) [3]float64 { return [3]float64{1, p.x, math.Max(0, p.x-k)} }
	for _, p := range ps {
		r := rows(p)
		for i := range 3 {
			for j := range 3 {
				m[i][j] += r[i] * r[j]
			}
			m[i][3] += r[i] * p.y
		}
	}
	c := solve(m)
	e := 0.0
	for _, p := range ps {
		r := rows(p)
		d := p.y - c[0]*r[0] - c[1]*r[1] - c[2]*r[2]
		e += d * d
	}
	return e
}

// solve is Gauss' elimination with pivots; a column without one (two bases alike) gets 0.
func solve(m [3][4]float64) (c [3]float64) {
	var row [3]int
	used := [3]bool{}
	for col := range 3 {
		row[col] = -1
		for r := range 3 {
			if !used[r] && math.Abs(m[r][col]) > 1e-9 && (row[col] < 0 || math.Abs(m[r][col]) > math.Abs(m[row[col]][col])) {
				row[col] = r
			}
		}
		if row[col] < 0 {
			continue
		}
		p := row[col]
		used[p] = true
		for r := range 3 {
			if r == p {
				continue
			}
			f := m[r][col] / m[p][col]
			for j := range 4 {
				m[r][j] -= f * m[p][j]
			}
		}
	}
	for col, r := range row {
		if r >= 0 {
			c[col] = m[r][3] / m[r][col]
		}
	}
	return c
}

// calm tells that a gauge has shown nothing from one bucket to now: it was low against its limit, or without one about what
// it was before. What came back to where it was has not stayed there.
func (g *gauge) calm(from, now int64) bool {
	if level, _, ok := g.level(now); ok {
		for _, p := range g.Coarse {
			if p.Bucket >= minuteOf(from) && p.Limit > 0 {
				level = max(level, p.level())
			}
		}
		return level < quietLevel
	}
	var past, since []float64
	for _, p := range g.Coarse {
		if p.Bucket < minuteOf(from) {
			past = append(past, p.Value)
		} else {
			since = append(since, p.Value)
		}
	}
	return len(past) >= 20 && len(since) > 0 && slices.Max(since) < calmFactor*median(past)
}
