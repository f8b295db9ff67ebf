package signal

import (
	"cmp"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
)

// BucketSize is the width of a cell in event time, and the period of the detector's tick.
const BucketSize = 10 * time.Second

// BucketOf returns the start of the bucket that holds t.
func BucketOf(t time.Time) time.Time { return t.UTC().Truncate(BucketSize) }

// Key is what a cell counts: a path and the combination of its attribute values.
type Key struct {
	Path
	Attributes Attributes
}

// ID is the 64-bit name of the key in stored rows; the `keys` table has the words behind it. It is a hash of
// the words, so that every process and every replay gives the same.
func (k Key) ID() uint64 {
	var b strings.Builder
	b.Grow(len(k.Service) + len(k.Operation) + len(k.Attributes) + 4)
	b.WriteString(k.Service)
	b.WriteByte(0)
	b.WriteString(k.Operation)
	b.WriteByte(0)
	b.WriteByte(byte(k.Access))
	b.WriteString(string(k.Attributes))
	return xxhash.Sum64String(b.String())
}

// Compare orders keys by path, then attributes.
func (k Key) Compare(o Key) int {
	if c := k.Path.Compare(o.Path); c != 0 {
		return c
	}
	return cmp.Compare(k.Attributes, o.Attributes)
}

// Sample is one failed request kept as an example. Which ones are kept is decided by hash, so that a replay
// keeps the same.
type Sample struct {
	Hash    uint64
	TraceID string
	Error   string
	Account string
}

// MaxSamples bounds the samples of one cell.
const MaxSamples = 3

// Cell is what was counted for one key in one bucket. Cells of the same key add up in any order.
type Cell struct {
	Bucket    time.Time
	Key       Key
	Outcomes  [NumOutcomes]uint64
	Retries   uint64 // requests that were not a first try, of any outcome
	Latency   Latency
	Accounts  Sketch // accounts of its failures
	Samples   []Sample
	Estimated bool
}

// Total is the number of requests of any outcome.
func (c *Cell) Total() uint64 {
	var n uint64
	for _, v := range c.Outcomes {
		n += v
	}
	return n
}

// Count adds one event to the cell. The caller has chosen the cell by bucket and key.
func (c *Cell) Count(r *Request) {
	n := max(r.Count, 1)
	c.Outcomes[r.Outcome] += n
	if r.Attempt > 1 {
		c.Retries += n
	}
	if r.Latency >= 0 {
		c.Latency.Add(r.Latency, n)
	}
	c.Estimated = c.Estimated || r.Estimated
	if r.Outcome != Failure {
		return
	}
	if r.Account != "" {
		c.Accounts.Add(HashAccount(r.Account))
	}
	c.addSample(Sample{Hash: sampleHash(r), TraceID: r.TraceID, Error: r.Error, Account: r.Account})
}

// Merge adds the other cell's counts.
func (c *Cell) Merge(o *Cell) {
	for i := range c.Outcomes {
		c.Outcomes[i] += o.Outcomes[i]
	}
	c.Retries += o.Retries
	c.Latency.Merge(&o.Latency)
	c.Accounts.Merge(o.Accounts)
	c.Estimated = c.Estimated || o.Estimated
	for _, s := range o.Samples {
		c.addSample(s)
	}
}

func (c *Cell) addSample(s Sample) {
	if s.TraceID == "" && s.Error == "" && s.Account == "" {
		return
	}
	i := 0
	for i < len(c.Samples) && c.Samples[i].Hash < s.Hash {
		i++
	}
	if i == MaxSamples || i < len(c.Samples) && c.Samples[i].Hash == s.Hash {
		return
	}
	c.Samples = append(c.Samples, Sample{})
	copy(c.Samples[i+1:], c.Samples[i:])
	c.Samples[i] = s
	c.Samples = c.Samples[:min(len(c.Samples), MaxSamples)]
}

func sampleHash(r *Request) uint64 {
	return xxhash.Sum64String(r.TraceID + "\x00" + r.Error + "\x00" + r.Account + "\x00" + r.Time.Format(time.RFC3339Nano))
}
