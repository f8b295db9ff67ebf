package ingest

import (
	"math"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// Shape is what many requests have in common: all but their time, latency, account and trace. A decoder that knows the
// shape of a request need not make the request again. It does not change, so that partitions may share it.
type Shape struct {
	key       *Key
	count     uint64
	place     uint32 // the key's, which is far away
	outcome   signal.Outcome
	attempt   uint32
	estimated bool
}

// NewShape makes the shape of a request that is no failure: of failures the account and the trace matter, so they have
// none. Shapes of one key should share it.
func NewShape(r *signal.Request, key *Key) Shape {
	return Shape{key: key, place: key.place, count: max(r.Count, 1), attempt: r.Attempt, outcome: r.Outcome, estimated: r.Estimated}
}

// At is a request of the shape. It lacks account, trace, status and error, without which a success is counted.
func (s *Shape) At(end int64, latency time.Duration) *signal.Request {
	return &signal.Request{Time: time.Unix(0, end).UTC(), Path: s.key.Path, Attributes: s.key.Attributes, Outcome: s.outcome,
		Count: s.count, Attempt: s.attempt, Estimated: s.estimated, Latency: latency}
}

// place remembers the cell of a key in a bucket of a batch, so that most requests need no look-up in a map.
type place struct {
	key    *Key
	bucket int64
	batch  uint32
	cell   int32
}

// maxPlaces bounds a partition's places. Keys beyond it share places, which is slower and nothing else.
const maxPlaces = 1 << 17

// places of a partition, a power of two. A key has two, so that an event near the end of a bucket does not drive out
// the cell of the other.
type places []place

func (p places) of(number uint32, bucket int64) *place {
	return &p[(uint64(number)<<1|uint64(bucket/bucketSeconds)&1)&uint64(len(p)-1)]
}

// fit makes room for a key.
func (p places) fit(key *Key) places {
	n := len(p)
	for n < maxPlaces && n <= 2*int(key.place)+1 {
		n *= 2
	}
	if n == len(p) {
		return p
	}
	bigger := make(places, n)
	for _, old := range p {
		if old.key != nil {
			*bigger.of(old.key.place, old.bucket) = old
		}
	}
	return bigger
}

// Counted is a request told by its shape.
type Counted struct {
	Shape   *Shape
	End     int64         // Unix nanoseconds, not negative
	Latency time.Duration // negative if unknown
}

// ShapedDecoder is a Decoder that can tell requests by their shape.
type ShapedDecoder interface {
	Decoder
	// DecodeShaped is Decode, but that requests may go to count instead of emit, some at once. Together they get the same
	// requests in the same order as emit would have got alone. The list is used again.
	DecodeShaped(rec Record, count func([]Counted), emit func(signal.Event), reject func(DeadLetter))
}

// nanosBetween are the Unix nanoseconds of from and to, if both have some.
func nanosBetween(from, to time.Time) (first, last int64, ok bool) {
	if from.Before(time.Unix(0, math.MinInt64)) || to.After(time.Unix(0, math.MaxInt64)) || to.Before(from) {
		return 0, 0, false
	}
	return from.UnixNano(), to.UnixNano(), true
}

// nanosOf are the Unix nanoseconds of a time, or the nearest there are.
func nanosOf(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, math.MinInt64)):
		return math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// countedAtOnce is how many requests are counted at once.
const countedAtOnce = 64

// shapes counts requests by their shape, as event and request would have one by one.
func (b *batch) shapes(list []Counted) {
	for len(list) > 0 {
		n := min(len(list), countedAtOnce)
		b.some(list[:n])
		list = list[n:]
	}
}

func (b *batch) some(list []Counted) {
	var buckets [countedAtOnce]int64
	var slow [countedAtOnce]int8
	for i := range list {
		end := list[i].End
		buckets[i], slow[i] = end/int64(signal.BucketSize)*bucketSeconds, latencyBucket(list[i].Latency)
		b.times = append(b.times, end/int64(time.Millisecond))
		if end < b.late0 {
			b.late++
		}
		b.maxCounted = max(b.maxCounted, end)
	}
	b.touch(list, &buckets, &slow)
	for i := range list {
		s := list[i].Shape
		p := b.places.of(s.place, buckets[i])
		if p.key != s.key || p.bucket != buckets[i] || p.batch != b.number {
			p = b.find(s.key, buckets[i])
		}
		c := &b.cells[p.cell]
		if !c.add(s.outcome, s.count, s.attempt > 1, s.estimated, slow[i]) {
			b.rest(c).Count(s.At(list[i].End, list[i].Latency))
		}
	}
}

// touch brings places and cells into the processor's caches: with many cells each look at one is a miss, and those of
// different requests need not wait for each other.
func (b *batch) touch(list []Counted, buckets *[countedAtOnce]int64, slow *[countedAtOnce]int8) (n uint32) {
	var cells [countedAtOnce]int32
	for i := range list {
		cells[i] = b.places.of(list[i].Shape.place, buckets[i]).cell
	}
	for i := range list {
		if at := int(cells[i]); at < len(b.cells) {
			n += b.cells[at].retries + b.cells[at].latency[max(slow[i], 0)]
		}
	}
	return n
}

// find makes a place that of the key's cell.
func (b *batch) find(key *Key, bucket int64) *place {
	b.places = b.places.fit(key)
	p := b.places.of(key.place, bucket)
	*p = place{key, bucket, b.number, int32(b.cell(bucket, key.ID, key, nil))}
	return p
}
