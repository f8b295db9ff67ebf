package decode

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
)

// labelled and upTo are labels and buckets as the parser has them.
type (
	labelled interface {
		GetName() string
		GetValue() string
	}
	upTo interface {
		GetUpperBound() float64
		GetCumulativeCount() uint64
	}
)

func labelMap[L labelled](list []L) map[string]string {
	labels := make(map[string]string, len(list))
	for _, l := range list {
		labels[l.GetName()] = l.GetValue()
	}
	return labels
}

// bucket counts what took at most bound, those of lower bounds included.
type bucket struct {
	bound float64
	count uint64
}

func bucketsOf[B upTo](list []B) []bucket {
	out := make([]bucket, len(list))
	for i, b := range list {
		out[i] = bucket{b.GetUpperBound(), b.GetCumulativeCount()}
	}
	slices.SortFunc(out, func(a, b bucket) int { return cmp.Compare(a.bound, b.bound) })
	return out
}

// writer is who was scraped: that is said by labels, or at least by the record's key.
func (d *prometheusText) writer(key []byte, labels map[string]string) {
	s := &d.m.series
	s.under(map[string]string{"": string(key), "instance": labels["instance"], "job": labels["job"], "pod": labels["pod"]}, "", "", nil)
	s.cumulative = true
}

func (d *prometheusText) count(name string, at time.Time, labels map[string]string, n float64) {
	if math.IsNaN(n) || n < 0 || n != math.Trunc(n) || n > maxCount {
		d.m.bad(ingest.ReasonInvalid, name, "a sample counts %v: a whole number of at most %d is needed", n, int64(maxCount))
		return
	}
	d.m.deliverCount(name, at, labels, uint64(n))
}

func (d *prometheusText) histogram(name string, at time.Time, labels map[string]string, n uint64, buckets []bucket) {
	unit := time.Second
	switch {
	case strings.HasSuffix(name, "_milliseconds") || strings.HasSuffix(name, "_ms"):
		unit = time.Millisecond
	case strings.HasSuffix(name, "_microseconds"):
		unit = time.Microsecond
	case !strings.HasSuffix(name, "_seconds"):
		d.m.bad(ingest.ReasonInvalid, name, "its name says no unit of a duration: _seconds or _milliseconds is needed")
		return
	}
	if n > maxCount {
		d.m.bad(ingest.ReasonInvalid, name, "a histogram counts %d: at most %d can be right", n, int64(maxCount))
		return
	}
	if len(buckets) == 0 {
		d.m.deliverCount(name, at, labels, n)
		return
	}
	l := latencies{unit: unit}
	lo, below := 0.0, uint64(0)
	for _, b := range append(buckets, bucket{math.Inf(1), max(n, buckets[len(buckets)-1].count)}) {
		hi := max(b.bound, lo)
		if math.IsInf(hi, 1) {
			hi = 2 * lo
		}
		if b.count < below || math.IsNaN(hi) {
			l.bad = true
			break
		}
		l.add(lo, hi, b.count-below)
		lo, below = hi, b.count
	}
	if l.bad || l.total != n {
		d.m.bad(ingest.ReasonInvalid, name, "a histogram's buckets do not add up to its count of %d", n)
		return
	}
	d.m.deliver(name, at, labels, &l)
}
