package detect

import (
	"fmt"
	"math"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	// fullLevel is where a resource counts as exhausted: gauges rarely show the very limit.
	fullLevel = 0.99
	// minRise is how much of its limit a gauge has to have gained for a trend to be believed: a flat line has an end, too.
	minRise = 0.04
	// noiseFactor: the rise has to stand this far above the scatter around the line.
	noiseFactor = 4
	// stillRising is the part of the trend's slope that its last third must have: what levels off does not run out.
	stillRising = 0.5
	// barelyRising is the same for the last sixth, where noise weighs more.
	barelyRising = 0.25
	// minSpan is the part of the window that must have data.
	minSpan = 0.6
)

// evalSaturation judges each gauge with a limit: by its level, by when it will be exhausted, or both. Each metric of a
// resource is judged alone, so that no healthy one speaks for another.
func evalSaturation(d *Detector, r *compiled, t int64, yield func(verdict)) {
	p := r.Params.(*rule.Saturation)
	for _, g := range d.gauges {
		if g.Last < t-keepBuckets && len(r.active) == 0 {
			continue
		}
		kind := ""
		if res := d.cat.Resource(g.Key.Resource); res != nil {
			kind = res.Kind
		}
		if !p.Match.Matches(g.Key.Resource, g.Key.Metric, kind) || g.missing(t) {
			continue
		}
		key := incident.FindingKey{Rule: r.Alert, Resource: g.Key.Resource, Metric: g.Key.Metric, Attributes: g.Key.Attributes}
		level, newest, ok := g.level(t)
		if !ok {
			continue
		}
		high := p.Above > 0 && level >= float64(p.Above)
		var exhausted time.Time
		if p.ExhaustedIn > 0 && level >= float64(p.MinLevel) {
			exhausted = g.forecast(t, buckets(p.TrendOver.Std()), level)
			if !exhausted.IsZero() && exhausted.Sub(timeOf(t)) > p.ExhaustedIn.Std() {
				exhausted = time.Time{}
			}
		}
		abnormal := high || !exhausted.IsZero()
		if !abnormal && r.active[key] == nil {
			continue
		}
		yield(verdict{
			key: key, abnormal: abnormal, value: level, limit: newest.Limit, exhausted: exhausted, full: level >= fullLevel,
			stream: signal.Gauges,
			explain: func() string {
				text := fmt.Sprintf("%s of %s at %s of its limit (%s of %s)", metricWords(g.Key.Metric), g.Key.Resource, percent(level),
					number(newest.Value, g.Unit), number(newest.Limit, g.Unit))
				if !exhausted.IsZero() && level < fullLevel {
					text += fmt.Sprintf(", runs out in about %s by its trend of %s", shortDuration(exhausted.Sub(timeOf(t))), p.TrendOver)
				}
				return text
			},
		})
	}
}

// forecast says when the limit will be reached by the trend; zero where there is none to be believed.
func (g *gauge) forecast(t, window int64, level float64) time.Time {
	if level >= fullLevel {
		return timeOf(t)
	}
	tr := g.trendOver(t, window)
	if tr.points < 6 || float64(tr.span) < minSpan*float64(window) ||
		tr.rise < minRise || tr.rise < noiseFactor*tr.noise || tr.recent < stillRising*tr.slope || tr.newest < barelyRising*tr.slope {
		return time.Time{}
	}
	// Trouble that speeds up is believed, trouble that slows down is not extrapolated at its old speed.
	slope := (tr.slope + tr.recent) / 2
	left := math.Min((1-level)/slope, float64(24*keepBuckets))
	return timeOf(t).Add(time.Duration(left * float64(signal.BucketSize))).Truncate(time.Second)
}
