package detect

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tocsin-project/tocsin/internal/detect/departure"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// maxWatches bounds the gauges that one rule learns; further ones are not judged by it.
const maxWatches = 20_000

// watches is what one rule of kind gauge knows of its gauges.
type watches struct {
	model departure.Model
	by    map[gaugeKey]*watched
}

// watched is one gauge with the newest judgement of it, which stands until there is another.
type watched struct {
	watch  *departure.Watch
	minute int64 // minutes before this one are judged
	last   departure.Judgement
}

func newWatches(r *compiled) recall {
	p := r.Params.(*rule.Gauge)
	w := &watches{model: departure.Default(), by: map[gaugeKey]*watched{}}
	w.model.PerMinute, w.model.MinChange = p.FalseAlarms.PerMinute(), float64(p.MinChange)
	w.model.Up, w.model.Down = p.Toward != "down", p.Toward != "up"
	return w
}

// evalGauge judges each gauge by what it has learned of it, a minute at a time: the median of a minute's points is what counts.
func evalGauge(d *Detector, r *compiled, t int64, yield func(verdict)) {
	p, ws := r.Params.(*rule.Gauge), r.recall.(*watches)
	for _, g := range d.gauges {
		if g.Last < t-keepBuckets && len(r.active) == 0 || !d.selectsGauge(&p.Match, g) || g.limited() && !p.WithLimit {
			continue
		}
		w := ws.by[g.Key]
		if w == nil {
			if len(ws.by) >= maxWatches {
				continue
			}
			w = &watched{watch: &departure.Watch{}}
			ws.by[g.Key] = w
		}
		ws.model.Among = float64(len(ws.by)) // the budget is the rule's
		w.see(&ws.model, g, minuteOf(t))
		key := incident.FindingKey{Rule: r.Alert, Resource: g.Key.Resource, Metric: g.Key.Metric, Attributes: g.Key.Attributes}
		if g.missing(t) && !g.silent(t) || !w.last.Abnormal && r.active[key] == nil {
			continue
		}
		j := w.last
		if g.silent(t) {
			j.Abnormal, w.last.Abnormal = false, false
		}
		yield(verdict{
			key: key, abnormal: j.Abnormal, value: j.Value, stream: signal.Gauges,
			explain: func() string {
				if g.silent(t) {
					return fmt.Sprintf("%s of %s has not been heard of for a day", metricWords(g.Key.Metric), g.Key.Resource)
				}
				return explainDeparture(g, j)
			},
		})
	}
}

// silent tells that a gauge has said nothing for so long that a departure would have become usual: what is gone, such as a pod,
// must not keep a finding unknown, and its incident open, for ever.
func (g *gauge) silent(t int64) bool { return t-g.Last >= buckets(usualAfter) }

// forget drops gauges that are gone, which have no share of the budget any more.
func (ws *watches) forget(d *Detector) {
	maps.DeleteFunc(ws.by, func(k gaugeKey, _ *watched) bool { return d.byGauge[k] == nil })
}

// selectsGauge tells whether a rule is about a gauge.
func (d *Detector) selectsGauge(m *rule.GaugeMatch, g *gauge) bool {
	kind := ""
	if res := d.cat.Resource(g.Key.Resource); res != nil {
		kind = res.Kind
	}
	return m.Matches(g.Key.Resource, g.Key.Metric, kind)
}

// limited tells that the newest point had a limit.
func (g *gauge) limited() bool {
	n := len(g.Points)
	return n > 0 && g.Points[n-1].Limit > 0
}

// see lets the minutes that are complete be judged, each once. What comes late for one that is over is too late.
func (w *watched) see(m *departure.Model, g *gauge, now int64) {
	if now <= w.minute {
		return
	}
	i, _ := slices.BinarySearchFunc(g.Points, w.minute*60/bucketSeconds, func(p gaugePoint, b int64) int { return int(p.Bucket - b) })
	w.minute = now
	var values []float64
	for i < len(g.Points) {
		minute := minuteOf(g.Points[i].Bucket)
		if minute >= now {
			break
		}
		for values = values[:0]; i < len(g.Points) && minuteOf(g.Points[i].Bucket) == minute; i++ {
			values = append(values, g.Points[i].Value)
		}
		if j, ok := w.watch.Observe(m, minute, median(values)); ok {
			w.last = j
		}
	}
}

func explainDeparture(g *gauge, j departure.Judgement) string {
	text := fmt.Sprintf("%s of %s is %s, expected about %s", metricWords(g.Key.Metric), g.Key.Resource, rough(j.Value, g.Unit), rough(j.Expected, g.Unit))
	if j.Scatter > 1e-6*math.Abs(j.Expected) {
		text += fmt.Sprintf(" give or take %s", rough(j.Scatter, g.Unit))
	}
	if !j.Abnormal {
		return text
	}
	if rare := 1 / math.Max(j.Rarity, 1e-9); rare < 1e6 {
		digit := math.Pow(10, math.Floor(math.Log10(rare))) // more would be learned from a handful of values
		return text + fmt.Sprintf("; about one of its values in %.0f lies so far out", math.Round(rare/digit)*digit)
	}
	return text + "; none of its values has come near to that"
}

// rough is a number to three digits: more would claim that anybody knows what is usual so well.
func rough(v float64, unit string) string {
	if v != 0 {
		digits := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-2)
		v = math.Round(v/digits) * digits
	}
	return number(v, unit)
}

// watchState is one gauge in a snapshot.
type watchState struct {
	Key    gaugeKey
	Minute int64
	Last   departure.Judgement
	Data   []byte
}

func (ws *watches) save() ([]byte, error) {
	keys := make([]gaugeKey, 0, len(ws.by))
	for k := range ws.by {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, gaugeKey.compare)
	out := make([]watchState, 0, len(keys))
	for _, k := range keys {
		w := ws.by[k]
		data, err := w.watch.AppendBinary(nil)
		if err != nil {
			return nil, err
		}
		out = append(out, watchState{k, w.minute, w.last, data})
	}
	return json.Marshal(out)
}

func (ws *watches) load(data []byte) error {
	var from []watchState
	if err := json.Unmarshal(data, &from); err != nil {
		return err
	}
	for _, x := range from {
		w, err := departure.Decode(x.Data)
		if err != nil {
			return err
		}
		ws.by[x.Key] = &watched{watch: w, minute: x.Minute, last: x.Last}
	}
	return nil
}
