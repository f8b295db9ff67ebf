package detect

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	// backlogPast is how many minutes before the growth have to be known.
	backlogPast = 20
	// drained is how near to its usual level a backlog has to come to be over, as a multiple.
	drained = 1.5
)

// backlogs remember what was usual when a backlog began: while it lasts, it must not become usual.
type backlogs struct {
	usual map[gaugeKey]float64
}

func newBacklogs(*compiled) recall { return &backlogs{usual: map[gaugeKey]float64{}} }

// evalBacklog judges gauges of waiting work: whether they grow past what is usual, and then until they are back.
func evalBacklog(d *Detector, r *compiled, t int64, yield func(verdict)) {
	p, bs := r.Params.(*rule.Backlog), r.recall.(*backlogs)
	for _, g := range d.gauges {
		if g.Last < t-keepBuckets && len(r.active) == 0 || !d.selectsGauge(&p.Match, g) || g.missing(t) || len(g.Points) == 0 {
			continue
		}
		key := incident.FindingKey{Rule: r.Alert, Resource: g.Key.Resource, Metric: g.Key.Metric, Attributes: g.Key.Attributes}
		usual, began := bs.usual[g.Key]
		level := g.value(t)
		window := buckets(p.GrowingFor.Std())
		var abnormal bool
		switch {
		case began:
			abnormal = level > max(drained*usual, p.AtLeast/2)
			if f := r.active[key]; abnormal && f != nil && timeOf(t).Sub(f.F.ActiveAt) >= usualAfter {
				abnormal = g.grows(t, window) // what stays as it is for a day is how this queue is now
			}
		default:
			var known bool
			usual, known = g.usualBefore(minuteOf(t - window))
			abnormal = known && level >= p.TimesUsual*usual && level >= p.AtLeast && level > 0 && g.grows(t, window)
		}
		switch {
		case abnormal && !began:
			bs.usual[g.Key] = usual
		case !abnormal:
			delete(bs.usual, g.Key)
			if r.active[key] == nil {
				continue
			}
		}
		yield(verdict{
			key: key, abnormal: abnormal, value: level, stream: signal.Gauges,
			explain: func() string { return explainBacklog(g, level, usual, g.slope(t, window), abnormal) },
		})
	}
}

// value is the median of the last minute's points, or of the newest three where there are fewer.
func (g *gauge) value(now int64) float64 {
	from := len(g.Points)
	for from > 0 && (g.Points[from-1].Bucket >= now-6 || len(g.Points)-from < 3) {
		from--
	}
	var v []float64
	for _, p := range g.Points[from:] {
		v = append(v, p.Value)
	}
	return median(v)
}

// usualBefore is the median of the hours before a minute.
func (g *gauge) usualBefore(minute int64) (v float64, known bool) {
	var past []float64
	for _, p := range g.Coarse {
		if p.Bucket < minute {
			past = append(past, p.Value)
		}
	}
	spacing := math.Max(1, g.Spacing*float64(bucketSeconds)/60)
	return median(past), float64(len(past))*spacing >= backlogPast
}

// lately are the points of a window, thinned.
func (g *gauge) lately(now, window int64) []xy {
	lo := len(g.Points)
	for lo > 0 && g.Points[lo-1].Bucket >= now-window {
		lo--
	}
	ps := make([]gaugePoint, 0, len(g.Points)-lo)
	for _, p := range g.Points[lo:] {
		ps = append(ps, gaugePoint{p.Bucket, p.Value, 1})
	}
	return thin(ps, trendPoints)
}

// slope is what a window gains a bucket, by Theil and Sen.
func (g *gauge) slope(now, window int64) float64 { return theilSen(g.lately(now, window)) }

// grows tells that the last third of the window lies above its first.
func (g *gauge) grows(now, window int64) bool {
	ps := g.lately(now, window)
	if len(ps) < 4 {
		return false
	}
	var ys []float64
	for _, p := range ps {
		ys = append(ys, p.y)
	}
	n := len(ys) / 3
	return median(slices.Clone(ys[len(ys)-max(n, 1):])) > median(slices.Clone(ys[:max(n, 1)])) && theilSen(ps) > 0
}

func explainBacklog(g *gauge, level, usual, slope float64, abnormal bool) string {
	what := fmt.Sprintf("%s of %s", metricWords(g.Key.Metric), g.Key.Resource)
	if !abnormal {
		return fmt.Sprintf("%s is back at %s", what, rough(level, g.Unit))
	}
	text := fmt.Sprintf("%s has grown to %s, usually %s", what, rough(level, g.Unit), rough(usual, g.Unit))
	switch a := slope * 60 / float64(bucketSeconds); {
	case slope > 0:
		return text + fmt.Sprintf("; it grows by %s a minute", rough(a, g.Unit))
	case slope < 0:
		left := time.Duration(math.Min((level-usual)/-slope, float64(7*24*bucketsAnHour)) * float64(signal.BucketSize))
		return text + fmt.Sprintf("; it is drained in about %s", shortDuration(left))
	}
	return text
}

func (bs *backlogs) forget(d *Detector) {
	maps.DeleteFunc(bs.usual, func(k gaugeKey, _ float64) bool { return d.byGauge[k] == nil })
}

type backlogState struct {
	Key   gaugeKey
	Usual float64
}

func (bs *backlogs) save() ([]byte, error) {
	out := make([]backlogState, 0, len(bs.usual))
	for k, v := range bs.usual {
		out = append(out, backlogState{k, v})
	}
	slices.SortFunc(out, func(a, b backlogState) int { return a.Key.compare(b.Key) })
	return json.Marshal(out)
}

func (bs *backlogs) load(data []byte) error {
	var from []backlogState
	if err := json.Unmarshal(data, &from); err != nil {
		return err
	}
	for _, x := range from {
		bs.usual[x.Key] = x.Usual
	}
	return nil
}
