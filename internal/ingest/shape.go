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
	outcome   signal.Outcome
	attempt   uint32
	estimated bool
}

// NewShape makes the shape of a request that is no failure: of failures the account and the trace matter, so they have
// none. Shapes of one key should share it.
func NewShape(r *signal.Request, key *Key) Shape {
	return Shape{key: key, count: max(r.Count, 1), attempt: r.Attempt, outcome: r.Outcome, estimated: r.Estimated}
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

func (p places) of(key *Key, bucket int64) *place {
	return &p[(uint64(key.place)<<1|uint64(bucket/bucketSeconds)&1)&uint64(len(p)-1)]
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
			*bigger.of(old.key, old.bucket) = old
		}
	}
	return bigger
}

// ShapedDecoder is a Decoder that can tell requests by their shape. It belongs to one partition, and so do its shapes.
type ShapedDecoder interface {
	Decoder
	// DecodeShaped is Decode, but that requests may go to count instead of emit. Together they get the same requests in
	// the same order as emit would have got alone; end is in Unix nanoseconds and not negative, latency is negative if unknown.
	DecodeShaped(rec Record, count func(s *Shape, end int64, latency time.Duration), emit func(signal.Event), reject func(DeadLetter))
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

// shape counts one request by its shape, as event and request would have.
func (b *batch) shape(s *Shape, end int64, latency time.Duration) {
	b.times = append(b.times, end/int64(time.Millisecond))
	if end < b.late0 {
		b.late++
	}
	if end > b.maxCounted {
		b.maxCounted = end
		if t := time.Unix(0, end).UTC(); t.After(b.maxEvent) {
			b.maxEvent = t
		}
	}
	bucket := end / int64(signal.BucketSize) * bucketSeconds
	p := b.places.of(s.key, bucket)
	if p.key != s.key || p.bucket != bucket || p.batch != b.number {
		p = b.find(s.key, bucket)
	}
	c := &b.cells[p.cell]
	if !c.add(s.outcome, s.count, s.attempt > 1, s.estimated, latency) {
		b.rest(c).Count(s.At(end, latency))
	}
}

// find makes a place that of the key's cell.
func (b *batch) find(key *Key, bucket int64) *place {
	b.places = b.places.fit(key)
	p := b.places.of(key, bucket)
	*p = place{key, bucket, b.number, int32(b.cell(bucket, key.ID, key, nil))}
	return p
}
