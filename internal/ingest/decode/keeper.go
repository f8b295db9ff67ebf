package decode

import (
	"math"

	"github.com/cespare/xxhash/v2"

	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// keeper leaves out what the pipeline drops, and keeps a part of what it samples.
type keeper struct {
	drop    []pipeline.DropRule
	sample  []pipeline.SampleRule
	sampled bool // whether the last request was one that is sampled, kept or not
}

func newKeeper(r *pipeline.Requests) keeper { return keeper{drop: r.Drop, sample: r.Sample} }

// keep tells whether the request counts. id says which one it is: the same request is always kept, or never. One that is
// kept counts for those that are not.
func (k *keeper) keep(r *signal.Request, id uint64) bool {
	k.sampled = false
	for i := range k.drop {
		if k.drop[i].Match(r) {
			return false
		}
	}
	for i := range k.sample {
		s := &k.sample[i]
		if !s.Match(r) {
			continue
		}
		k.sampled = true
		h := mix(id)
		if float64(h)/math.MaxUint64 >= s.Keep {
			return false
		}
		if n, ok := scale(s.Keep, mix(h)); ok {
			r.Count, r.Estimated = max(r.Count, 1)*n, true
		}
		return true
	}
	return true
}

// none tells that every request counts.
func (k *keeper) none() bool { return len(k.drop) == 0 && len(k.sample) == 0 }

// mix spreads ids that resemble each other.
func mix(id uint64) uint64 {
	var b [8]byte
	for i := range b {
		b[i] = byte(id >> (8 * i))
	}
	return xxhash.Sum64(b[:])
}
