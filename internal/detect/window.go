package detect

import (
	"math"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	bucketSeconds = int64(signal.BucketSize / 1e9)
	// keepBuckets is how much of each series is kept at full resolution; no rule may ask for more.
	keepBuckets = int64(rule.MaxWindow / signal.BucketSize)
	// accountBuckets is how long the accounts of a path's failures are kept, so that an incident that opens counts those
	// since its onset. It covers the longest ordinary window with its `for`.
	accountBuckets = 90
	// usualDelay keeps the newest buckets out of what is usual: trouble is noticed within minutes, and must not have
	// become usual by then.
	usualDelay = 30
	// usualAfter is when what stays abnormal becomes usual after all: without an end, a path that failed a little on the
	// first day would be a finding for ever.
	usualAfter = 24 * time.Hour
	// missingSpacings is how many of its own usual spacings a key may be silent before its data counts as missing.
	missingSpacings = 3
)

// usualDecay halves the weight of a bucket in six hours.
var usualDecay = math.Pow(0.5, float64(bucketSeconds)/(6*3600))

// counts are sums over buckets.
type counts struct {
	outcomes [signal.NumOutcomes]uint64
	timed    uint64
	slow     uint64
}

// judged are the requests that a share is taken of: successes and whatever counts as bad.
func (c *counts) judged(bad [signal.NumOutcomes]bool) (n, b uint64) {
	for o, v := range c.outcomes {
		if bad[o] {
			b += v
		}
	}
	return c.outcomes[signal.Success] + b, b
}

var onlyFailures = [signal.NumOutcomes]bool{signal.Failure: true}

// series is the recent past of one path, or of one slice of it.
type series struct {
	key  signal.Key
	area string
	set  int // of a slice: the place of its attributes' names in Detector.slices
	gone bool
	ring
	last    int64   // newest bucket with data; the ring holds it and those before
	hour    uint64  // of a path: requests in the hour up to it
	spacing float64 // usual number of buckets between two with data
	// Buckets from quietFrom to quietTo were abnormal and do not become usual.
	quietFrom, quietTo int64

	usualTo      int64 // buckets up to this one are in the usual sums
	usual        [signal.NumOutcomes]float64
	usualTimed   float64
	usualSlow    []float64
	accounts     []accounted // of a path's failures, ascending by bucket
	leaves       []*leaf     // of a path, sorted by attributes
	leafOverflow bool
	proofs       []*proof // by place in Detector.banks; nil where not asked yet
	lanes
}

// accounted are the accounts of the failures of one bucket.
type accounted struct {
	bucket int64
	sketch signal.Sketch
}

// add counts what a cell tallies.
func (s *series) add(bucket int64, x *tally, pl *plan) {
	if s.cols == nil {
		s.lay(func(int) uint8 { return 0 }, pl.columns)
	}
	switch {
	case bucket > s.last:
		if s.last > 0 {
			gap := math.Min(float64(bucket-s.last), 360)
			s.spacing += (gap - s.spacing) * 0.05
			if s.key.Attributes == "" {
				s.pass(bucket)
			}
			s.clear(max(s.last+1, bucket+1-ringBuckets), bucket+1)
		} else {
			s.spacing = 1
		}
		s.last = bucket
	case bucket <= s.last-ringBuckets:
		return // nothing reaches so far back
	}
	p := placeOf(bucket)
	s.present[p/64] |= 1 << (p % 64)
	bad := false
	if pl.columns > colTimed {
		if x.timed != x.total && !s.timed {
			s.timeApart()
			s.at = 0 // there are no sums of that
		}
		if s.timed {
			s.ring.add(colTimed, p, x.timed)
		}
		for i, n := range x.slow {
			if n > 0 {
				s.ring.add(colSlow+i, p, n)
				bad = true
			}
		}
	}
	for o, n := range x.outcomes {
		if n > 0 {
			s.ring.add(o, p, n)
			bad = bad || pl.bad[o]
		}
	}
	s.stir(bucket, bad)
	if bucket > s.last-keepBuckets {
		s.hour += x.total
	}
}

// pass takes away from the last hour what leaves it when a bucket becomes the newest.
func (s *series) pass(bucket int64) {
	if bucket >= s.last+keepBuckets {
		s.hour = 0
		return
	}
	for b := s.last + 1 - keepBuckets; b <= bucket-keepBuckets; b++ {
		s.hour -= s.ring.total(placeOf(b))
	}
}

// meet notes the accounts of a path's failures.
func (s *series) meet(bucket int64, a signal.Sketch) {
	if len(a) == 0 {
		return
	}
	i := len(s.accounts)
	for i > 0 && s.accounts[i-1].bucket > bucket {
		i--
	}
	if i == 0 || s.accounts[i-1].bucket != bucket {
		s.accounts = slices.Insert(s.accounts, i, accounted{bucket, slices.Clone(a)})
		return
	}
	s.accounts[i-1].sketch.Merge(a)
}

// trim forgets accounts that nobody counts any more.
func (s *series) trim(now int64) {
	n := 0
	for n < len(s.accounts) && s.accounts[n].bucket < now-accountBuckets {
		n++
	}
	if n > 0 {
		s.accounts = slices.Delete(s.accounts, 0, n)
	}
}

// within limits buckets to those that the ring holds.
func (s *series) within(from, to int64) (int64, int64) {
	return max(from, s.last+1-ringBuckets), min(to, s.last+1)
}

// sum adds up the buckets in [from, to); bound is the index of a latency bound, or −1, and then there is no timed either.
func (s *series) sum(from, to int64, bound int) (c counts) {
	from, to = s.within(from, to)
	if from >= to || s.cols == nil {
		return c
	}
	for o := range c.outcomes {
		c.outcomes[o] = s.ring.sum(o, from, to)
	}
	if bound < 0 || colSlow+bound >= len(s.cols) {
		return c
	}
	if s.timed {
		c.timed = s.ring.sum(colTimed, from, to)
	} else {
		for _, n := range c.outcomes {
			c.timed += n
		}
	}
	c.slow = s.ring.sum(colSlow+bound, from, to)
	return c
}

// oldest is the first bucket with data at or after one; ok is false where there is none.
func (s *series) oldest(from int64) (bucket int64, ok bool) {
	from, to := s.within(from, s.last+1)
	for b := from; b < to; b++ {
		if s.has(placeOf(b)) {
			return b, true
		}
	}
	return 0, false
}

// accountsOf unites the accounts of failures in [from, to).
func (s *series) accountsOf(from, to int64) (a signal.Sketch) {
	for i := len(s.accounts) - 1; i >= 0 && s.accounts[i].bucket >= from; i-- {
		if s.accounts[i].bucket < to {
			a.Merge(s.accounts[i].sketch)
		}
	}
	return a
}

// missing tells whether the series has been silent for longer than its own habit explains.
func (s *series) missing(now int64) bool {
	return float64(now-1-s.last) >= missingSpacings*math.Max(s.spacing, 1)
}

// disquiet keeps the window that ends before t from becoming usual. What lay between two abnormal windows was not abnormal and is
// learned, unless they follow each other so closely that the first is not past yet.
func (s *series) disquiet(t, window int64) {
	if s.quietTo < t-window-usualDelay {
		s.quietFrom = t - window
	}
	s.quietTo = t
}

// learn lets buckets that are old enough and were not abnormal become usual.
func (s *series) learn(now int64) {
	upTo := now - usualDelay
	if upTo <= s.usualTo {
		return
	}
	bounds := max(0, len(s.cols)-colSlow)
	from, to := s.within(s.usualTo+1, upTo+1)
	for b := from; b < to; b++ {
		p := placeOf(b)
		if !s.has(p) || b >= s.quietFrom && b <= s.quietTo {
			continue
		}
		for o := range s.usual {
			s.usual[o] = s.usual[o]*usualDecay + float64(s.get(o, p))
		}
		if bounds == 0 {
			s.usualTimed *= usualDecay
			continue
		}
		s.usualTimed = s.usualTimed*usualDecay + float64(s.timedAt(p))
		if s.usualSlow == nil {
			s.usualSlow = make([]float64, bounds)
		}
		for j := range s.usualSlow {
			s.usualSlow[j] = s.usualSlow[j]*usualDecay + float64(s.get(colSlow+j, p))
		}
	}
	s.usualTo = upTo
}

// usualShare is the share of bad outcomes in ordinary times; ok is false while too little is known.
func (s *series) usualShare(bad [signal.NumOutcomes]bool) (share float64, ok bool) {
	var b float64
	for o, v := range s.usual {
		if bad[o] {
			b += v
		}
	}
	n := s.usual[signal.Success] + b
	return b / math.Max(n, 1), n >= 50
}

func (s *series) usualSlowShare(bound int) (share float64, ok bool) {
	if bound >= len(s.usualSlow) {
		return 0, false
	}
	return s.usualSlow[bound] / math.Max(s.usualTimed, 1), s.usualTimed >= 50
}
