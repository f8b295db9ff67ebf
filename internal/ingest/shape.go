package ingest

import (
	"math"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// Shape is what many requests have in common: all but their time, latency, account and trace. A decoder that knows the
// shape of a request need not make the request again, and the batch remembers where it counted the shape last.
type Shape struct {
	places    *Places
	count     uint64
	attempt   uint32
	outcome   signal.Outcome
	estimated bool
}

// NewShape makes the shape of a request that is no failure: of failures the account and the trace matter, so they have
// none. Shapes of one key should share places.
func NewShape(r *signal.Request, places *Places) Shape {
	return Shape{places: places, count: max(r.Count, 1), attempt: r.Attempt, outcome: r.Outcome, estimated: r.Estimated}
}

// At is a request of the shape. It lacks account, trace, status and error, without which a success is counted.
func (s *Shape) At(end int64, latency time.Duration) *signal.Request {
	return &signal.Request{Time: time.Unix(0, end).UTC(), Path: s.places.key.Path, Attributes: s.places.key.Attributes, Outcome: s.outcome,
		Count: s.count, Attempt: s.attempt, Estimated: s.estimated, Latency: latency}
}

// Places remembers the cells of one key that were counted into last: of two buckets, so that an event near the end of one
// does not drive out the other.
type Places struct {
	last [2]place
	key  signal.Key
}

// NewPlaces remembers none yet.
func NewPlaces(k signal.Key) *Places { return &Places{key: k} }

// place is a cell of a batch.
type place struct {
	batch  uint64
	bucket int64
	cell   int
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
	p := &s.places.last[0]
	if p.batch != b.number || p.bucket != bucket {
		p = b.find(s, bucket)
	}
	c := &b.cells[p.cell] // and now what Cell.Count does for a request that is no failure
	c.Outcomes[s.outcome] += s.count
	if s.attempt > 1 {
		c.Retries += s.count
	}
	if latency >= 0 {
		c.Latency.Add(latency, s.count)
	}
	if s.estimated {
		c.Estimated = true
	}
}

// find makes the place of a shape's cell the first of those that are remembered.
func (b *batch) find(s *Shape, bucket int64) *place {
	last := &s.places.last
	p := last[1]
	if p.batch != b.number || p.bucket != bucket {
		p = place{b.number, bucket, b.cell(bucket, s.places.key)}
	}
	last[0], last[1] = p, last[0]
	return &last[0]
}
