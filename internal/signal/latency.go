package signal

import (
	"math"
	"math/bits"
	"time"
)

// LatencyBuckets is the fixed shape of every latency histogram: bucket i holds what took at most
// 1 ms × 2^(i/2), the last one everything above. Half-powers of two keep an error of at most 41% on a
// quantile, in 32 counters from 1 ms to 46 s.
const LatencyBuckets = 32

// Latency counts requests by how long they took.
type Latency [LatencyBuckets]uint64

var latencyBounds = func() (b [LatencyBuckets - 1]time.Duration) {
	for i := range b {
		b[i] = time.Duration(float64(time.Millisecond) * math.Pow(2, float64(i)/2))
	}
	return b
}()

// LatencyBound is the upper end of bucket i, inclusive; the last bucket has none and answers the largest duration.
func LatencyBound(i int) time.Duration {
	if i >= len(latencyBounds) {
		return math.MaxInt64
	}
	return latencyBounds[i]
}

// latencyFrom is, by the number of binary digits of a duration, the first bucket that it may fall into: few are left then.
var latencyFrom = func() (from [65]uint8) {
	for digits := range from {
		for int(from[digits]) < len(latencyBounds) && latencyBounds[from[digits]] < time.Duration(uint64(1)<<max(digits-1, 0)) && digits < 64 {
			from[digits]++
		}
	}
	return from
}()

// LatencyBucket is the index of the bucket that d falls into.
func LatencyBucket(d time.Duration) int {
	i := int(latencyFrom[bits.Len64(uint64(max(d, 0)))])
	for i < len(latencyBounds) && latencyBounds[i] < d {
		i++
	}
	return i
}

// Add counts n requests that took d.
func (l *Latency) Add(d time.Duration, n uint64) { l[LatencyBucket(d)] += n }

// Merge adds another histogram.
func (l *Latency) Merge(o *Latency) {
	for i, n := range o {
		l[i] += n
	}
}

// Total is the number of requests with a known latency.
func (l *Latency) Total() (n uint64) {
	for _, v := range l {
		n += v
	}
	return n
}

// Above counts the requests in buckets that lie wholly above d.
func (l *Latency) Above(d time.Duration) (n uint64) {
	for i := LatencyBucket(d) + 1; i < LatencyBuckets; i++ {
		n += l[i]
	}
	return n
}
