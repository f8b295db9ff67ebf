package ingest

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// Key is what a cell counts, with its ID, which is costly to compute. Keys are shared and do not change.
type Key struct {
	signal.Key
	ID uint64
	// place is where batches look first for the cells of the key, 0 if it has no place of its own.
	place uint32
	known atomic.Uint32
}

// NewKey computes the ID. Keys with different places are found faster; 0 is none.
func NewKey(k signal.Key, place uint32) *Key { return &Key{Key: k, ID: k.ID(), place: place} }

// KnownTo tells whether Introduce was last called with this number, which is not 0: a store need not look up again what
// it has looked up before.
func (k *Key) KnownTo(store uint32) bool { return k.known.Load() == store }

// Introduce notes that the store of this number has the words of the key.
func (k *Key) Introduce(store uint32) { k.known.Store(store) }

// Cell is a row of a batch of requests. It is a signal.Cell of less than half the size, because batches of many cells
// cost what their memory costs: counters have 32 bits, and what few cells have stands apart in rest. What a cell counts
// is the sum of both.
type Cell struct {
	key       *Key
	rest      *signal.Cell // failures with their accounts and samples, and numbers that are too large; mostly nil
	bucket    int64        // Unix seconds
	outcomes  [signal.NumOutcomes]uint32
	retries   uint32
	estimated bool
	latency   [signal.LatencyBuckets]uint32
}

// NewCell makes a row of a cell, which stays the caller's.
func NewCell(c signal.Cell) Cell {
	c.Accounts, c.Samples = slices.Clone(c.Accounts), slices.Clone(c.Samples)
	return Cell{key: NewKey(c.Key, 0), rest: &c, bucket: c.Bucket.Unix()}
}

// Key is what the cell counts.
func (c *Cell) Key() *Key { return c.key }

// Bucket is the start of the cell's bucket in Unix seconds.
func (c *Cell) Bucket() int64 { return c.bucket }

// Outcome counts the requests that ended so.
func (c *Cell) Outcome(o signal.Outcome) uint64 {
	n := uint64(c.outcomes[o])
	if c.rest != nil {
		n += c.rest.Outcomes[o]
	}
	return n
}

// Retries counts requests that were not a first try.
func (c *Cell) Retries() uint64 {
	n := uint64(c.retries)
	if c.rest != nil {
		n += c.rest.Retries
	}
	return n
}

// Latency writes the histogram to l and gives its length without the empty buckets at the end.
func (c *Cell) Latency(l *signal.Latency) int {
	n := 0
	for i, v := range &c.latency {
		l[i] = uint64(v)
		if v != 0 {
			n = i + 1
		}
	}
	if c.rest != nil {
		l.Merge(&c.rest.Latency)
		for n = len(l); n > 0 && l[n-1] == 0; n-- {
		}
	}
	return n
}

// Accounts are those of its failures. The sketch is the cell's.
func (c *Cell) Accounts() signal.Sketch {
	if c.rest == nil {
		return nil
	}
	return c.rest.Accounts
}

// Samples are some of its failures. The list is the cell's.
func (c *Cell) Samples() []signal.Sample {
	if c.rest == nil {
		return nil
	}
	return c.rest.Samples
}

// Estimated tells whether counts were scaled up.
func (c *Cell) Estimated() bool { return c.estimated || c.rest != nil && c.rest.Estimated }

// Signal is the cell as all others know it, a copy.
func (c *Cell) Signal() signal.Cell {
	out := signal.Cell{Bucket: time.Unix(c.bucket, 0).UTC(), Key: c.key.Key, Retries: c.Retries(), Estimated: c.Estimated(),
		Accounts: slices.Clone(c.Accounts()), Samples: slices.Clone(c.Samples())}
	for o := range out.Outcomes {
		out.Outcomes[o] = c.Outcome(signal.Outcome(o))
	}
	c.Latency(&out.Latency)
	return out
}

// unknown is where requests of unknown latency are counted: nowhere.
const unknown = -1

// latencyBucket is the bucket of a latency, or unknown.
func latencyBucket(latency time.Duration) int8 {
	if latency < 0 {
		return unknown
	}
	return int8(signal.LatencyBucket(latency))
}

// add counts n requests that are no failures, or nothing if a counter would be too small.
func (c *Cell) add(o signal.Outcome, n uint64, retried, estimated bool, bucket int8) (fits bool) {
	if n > math.MaxUint32 {
		return false
	}
	sum := uint64(c.outcomes[o]) + n
	retries := uint64(c.retries)
	if retried {
		retries += n
	}
	if bucket == unknown {
		if (sum|retries)>>32 != 0 {
			return false
		}
	} else {
		at := &c.latency[bucket]
		slow := uint64(*at) + n
		if (sum|retries|slow)>>32 != 0 {
			return false
		}
		*at = uint32(slow)
	}
	c.outcomes[o], c.retries = uint32(sum), uint32(retries)
	if estimated {
		c.estimated = true
	}
	return true
}
