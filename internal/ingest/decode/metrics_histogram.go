package decode

import (
	"math"
	"time"

	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// latencies gathers a point's buckets in the shape of Tocsin's own, so that one point becomes few events.
type latencies struct {
	unit   time.Duration
	counts signal.Latency
	shown  [signal.LatencyBuckets]time.Duration // what stands for each bucket: the first middle that fell into it
	total  uint64
	bad    bool
}

// add counts n requests that took between lo and hi units. The middle stands for them: the geometric one, since buckets
// grow by factors.
func (l *latencies) add(lo, hi float64, n uint64) {
	if n == 0 {
		return
	}
	if n > maxCount || l.total+n > maxCount || math.IsNaN(lo) || math.IsNaN(hi) || hi < lo {
		l.bad = true
		return
	}
	middle := hi / 2
	if lo > 0 {
		middle = math.Sqrt(lo) * math.Sqrt(hi) // their product may overflow
	}
	const longest = 30 * 24 * time.Hour
	d := time.Duration(min(max(middle, 0)*float64(l.unit), float64(longest)))
	i := signal.LatencyBucket(d)
	if l.counts[i] == 0 {
		l.shown[i] = d
	}
	l.counts[i] += n
	l.total += n
}

// deliver hands on the requests of a point, an event for each bucket; of a cumulative one what it says.
func (m *metrics) deliver(name string, at time.Time, point map[string]string, l *latencies) {
	if l.total == 0 && !m.series.cumulative {
		return
	}
	r := m.request(name, at, point)
	if r == nil {
		return
	}
	if m.series.cumulative {
		m.total(name, r, point, l.total, &l.counts)
		return
	}
	for i, n := range l.counts {
		if n > 0 {
			e := *r
			e.Count, e.Latency = n, l.shown[i]
			m.emit(&e)
		}
	}
}

func (m *metrics) histogram(name string, unit time.Duration, p *metricspb.HistogramDataPoint) {
	if absent(p.GetFlags()) || p.GetCount() == 0 && !m.series.cumulative {
		return
	}
	at, ok := m.at(name, p.GetTimeUnixNano())
	if !ok {
		return
	}
	m.series.start = p.GetStartTimeUnixNano()
	counts, bounds := p.GetBucketCounts(), p.GetExplicitBounds()
	least, most := 0.0, math.Inf(1)
	if p.Min != nil && !m.series.cumulative { // else of long ago, perhaps
		least = p.GetMin()
	}
	if p.Max != nil && !m.series.cumulative {
		most = p.GetMax()
	}
	l := latencies{unit: unit}
	switch {
	case len(bounds) == 0: // no distribution: their mean stands for all
		m.undivided(name, at, unit, p)
		return
	case len(counts) != len(bounds)+1:
		m.bad(ingest.ReasonInvalid, name, "%d buckets for %d bounds", len(counts), len(bounds))
		return
	default:
		for i, n := range counts {
			lo, hi := 0.0, math.Inf(1)
			if i > 0 {
				lo = bounds[i-1]
			}
			if i < len(bounds) {
				hi = bounds[i]
			}
			if hi < lo {
				l.bad = true // bounds that fall
			}
			lo, hi = within(lo, hi, least, most)
			l.add(lo, hi, n)
		}
	}
	if l.bad || l.total != p.GetCount() {
		m.bad(ingest.ReasonInvalid, name, "a point's buckets do not add up to its count of %d", p.GetCount())
		return
	}
	m.deliver(name, at, attrMap(p.GetAttributes()), &l)
}

// undivided reads a point without buckets, of which at most the sum is known.
func (m *metrics) undivided(name string, at time.Time, unit time.Duration, p *metricspb.HistogramDataPoint) {
	if p.GetCount() > maxCount {
		m.bad(ingest.ReasonInvalid, name, "a point counts %d: at most %d can be right", p.GetCount(), int64(maxCount))
		return
	}
	if mean := p.GetSum() / float64(p.GetCount()); p.Sum != nil && mean >= 0 && !m.series.cumulative {
		l := latencies{unit: unit}
		l.add(mean, mean, p.GetCount())
		m.deliver(name, at, attrMap(p.GetAttributes()), &l)
		return
	}
	m.deliverCount(name, at, attrMap(p.GetAttributes()), p.GetCount())
}

// deliverCount hands on requests of which no duration is known.
func (m *metrics) deliverCount(name string, at time.Time, point map[string]string, n uint64) {
	r := m.request(name, at, point)
	switch {
	case r == nil:
	case m.series.cumulative:
		m.total(name, r, point, n, &signal.Latency{})
	default:
		r.Count = n
		m.emit(r)
	}
}

// within narrows a bucket to what the point says of its least and largest value. What has no upper end is taken to be
// twice its lower one wide.
func within(lo, hi, least, most float64) (float64, float64) {
	if least > lo && least <= hi {
		lo = least
	}
	if most < hi && most >= lo {
		hi = most
	}
	if math.IsInf(hi, 1) {
		hi = 2 * lo
	}
	return lo, hi
}

// exponential reads a histogram whose bucket i holds what lies in (base^i, base^(i+1)], base being 2^(2^-scale).
func (m *metrics) exponential(name string, unit time.Duration, p *metricspb.ExponentialHistogramDataPoint) {
	if absent(p.GetFlags()) || p.GetCount() == 0 && !m.series.cumulative {
		return
	}
	at, ok := m.at(name, p.GetTimeUnixNano())
	if !ok {
		return
	}
	m.series.start = p.GetStartTimeUnixNano()
	if s := p.GetScale(); s < -11 || s > 21 {
		m.bad(ingest.ReasonInvalid, name, "a point has the scale %d", s)
		return
	}
	l := latencies{unit: unit}
	l.add(0, max(p.GetZeroThreshold(), 0), p.GetZeroCount())
	width := math.Ldexp(1, -int(p.GetScale())) // of a bucket, in powers of two
	for i, n := range p.GetPositive().GetBucketCounts() {
		if n > 0 {
			low := (float64(p.GetPositive().GetOffset()) + float64(i)) * width
			l.add(math.Exp2(low), math.Exp2(low+width), n)
		}
	}
	for _, n := range p.GetNegative().GetBucketCounts() {
		l.bad = l.bad || n > 0 // nothing takes less than no time
	}
	if l.bad || l.total != p.GetCount() {
		m.bad(ingest.ReasonInvalid, name, "a point's buckets do not add up to its count of %d", p.GetCount())
		return
	}
	m.deliver(name, at, attrMap(p.GetAttributes()), &l)
}
