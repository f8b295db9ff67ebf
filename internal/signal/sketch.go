package signal

import (
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// SketchSize is k of the k-minimum-values sketch: exact up to 64 accounts, about 13% standard error above.
const SketchSize = 64

// Sketch counts distinct accounts: the k smallest hashes seen, ascending and distinct. Sketches unite over
// slices, paths and tickets (Bar-Yossef et al., "Counting distinct elements in a data stream", 2002).
type Sketch []uint64

// HashAccount is the hash under which an account enters every sketch.
func HashAccount(account string) uint64 { return xxhash.Sum64String(account) }

// Add puts one hash into the sketch.
func (s *Sketch) Add(h uint64) {
	i, found := slices.BinarySearch(*s, h)
	if found || i == SketchSize {
		return
	}
	*s = slices.Insert(*s, i, h)
	if len(*s) > SketchSize {
		*s = (*s)[:SketchSize]
	}
}

// Merge unites the sketch with another.
func (s *Sketch) Merge(o Sketch) {
	for _, h := range o {
		if len(*s) == SketchSize && h > (*s)[SketchSize-1] {
			return
		}
		s.Add(h)
	}
}

// Estimate is the number of distinct accounts: exact while the sketch is not full.
func (s Sketch) Estimate() uint64 {
	if len(s) < SketchSize {
		return uint64(len(s))
	}
	return uint64(float64(SketchSize-1) / (float64(s[SketchSize-1]) / math.MaxUint64))
}
