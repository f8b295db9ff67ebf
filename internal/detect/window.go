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

// point is what one bucket of a series counted.
type point struct {
	bucket   int64
	outcomes [signal.NumOutcomes]uint64
	timed    uint64   // requests with a known latency
	slow     []uint64 // of these, slower than each bound that a rule names
	accounts signal.Sketch
	// before are the sums over all points before this one, so that a window of any length costs two look-ups.
	before     counts
	slowBefore []uint64
}

func (p *point) add(c *signal.Cell, bounds []latencyBound, accounts bool) {
	for i, n := range c.Outcomes {
		p.outcomes[i] += n
	}
	if len(bounds) > 0 {
		p.timed += c.Latency.Total()
		if p.slow == nil {
			p.slow = make([]uint64, 2*len(bounds))
			p.slow, p.slowBefore = p.slow[:len(bounds):len(bounds)], p.slow[len(bounds):]
		}
		for i, b := range bounds {
			p.slow[i] += c.Latency.Above(b.Duration)
		}
	}
	if accounts && len(c.Accounts) > 0 {
		p.accounts = slices.Clone(p.accounts)
		p.accounts.Merge(c.Accounts)
	}
}

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

// series is the recent past of one path, or of one slice of it: sparse, ascending by bucket.
type series struct {
	key     signal.Key
	area    string
	set     int // of a slice: the place of its attributes' names in Detector.slices
	points  []point
	last    int64   // newest bucket with data
	spacing float64 // usual number of buckets between two with data
	// Buckets from quietFrom to quietTo were abnormal and do not become usual.
	quietFrom, quietTo int64

	usualTo      int64 // buckets up to this one are in the usual sums
	usual        [signal.NumOutcomes]float64
	usualTimed   float64
	usualSlow    []float64
	leaves       []*leaf // of a path, sorted by attributes
	leafOverflow bool
	proofs       []*proof // by place in Detector.banks; nil where not asked yet
}

// add counts a cell and returns the point it went into.
func (s *series) add(bucket int64, c *signal.Cell, bounds []latencyBound, accounts bool) {
	i := s.find(bucket)
	if i == len(s.points) || s.points[i].bucket != bucket {
		s.points = slices.Insert(s.points, i, point{bucket: bucket})
		if bucket > s.last {
			if s.last > 0 {
				gap := math.Min(float64(bucket-s.last), 360)
				s.spacing += (gap - s.spacing) * 0.05
			} else {
				s.spacing = 1
			}
			s.last = bucket
		}
	}
	s.points[i].add(c, bounds, accounts)
	s.accumulate(i)
}

// find is the place of the first point at or after a bucket.
func (s *series) find(bucket int64) int {
	lo, hi := 0, len(s.points)
	if hi > 0 && s.points[hi-1].bucket < bucket {
		return hi
	}
	for lo < hi {
		m := (lo + hi) / 2
		if s.points[m].bucket < bucket {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

// accumulate brings the sums of the points from i on up to date: of the last alone, but for late rows.
func (s *series) accumulate(from int) {
	for i := from; i < len(s.points); i++ {
		p := &s.points[i]
		if i == 0 {
			continue // sums are only ever compared, so they may begin at anything
		}
		q := &s.points[i-1]
		for o := range p.before.outcomes {
			p.before.outcomes[o] = q.before.outcomes[o] + q.outcomes[o]
		}
		p.before.timed = q.before.timed + q.timed
		for b := range min(len(p.slow), len(q.slow)) {
			p.slowBefore[b] = q.slowBefore[b] + q.slow[b]
		}
	}
}

// trim forgets what no window reaches any more. It copies rarely, not each step.
func (s *series) trim(now int64) {
	n := 0
	for n < len(s.points) && s.points[n].bucket < now-keepBuckets {
		n++
	}
	if n > 64 || n > 0 && n == len(s.points) {
		s.points = slices.Delete(s.points, 0, n)
	}
	for i := len(s.points) - 1; i >= 0; i-- {
		p := &s.points[i]
		if p.bucket < now-accountBuckets {
			if p.accounts == nil {
				if p.bucket < now-accountBuckets-8 {
					break
				}
				continue
			}
			p.accounts = nil
		}
	}
}

// sum adds up the buckets in [from, to); bound is the index of a latency bound, or −1.
func (s *series) sum(from, to int64, bound int) (c counts) {
	i, j := s.find(from), s.find(to)-1
	if i > j {
		return c
	}
	p, q := &s.points[i], &s.points[j]
	for o := range c.outcomes {
		c.outcomes[o] = q.before.outcomes[o] + q.outcomes[o] - p.before.outcomes[o]
	}
	c.timed = q.before.timed + q.timed - p.before.timed
	if bound >= 0 && bound < len(q.slow) && bound < len(p.slow) {
		c.slow = q.slowBefore[bound] + q.slow[bound] - p.slowBefore[bound]
	}
	return c
}

// accountsOf unites the accounts of failures in [from, to).
func (s *series) accountsOf(from, to int64) (a signal.Sketch) {
	for i := len(s.points) - 1; i >= 0 && s.points[i].bucket >= from; i-- {
		if s.points[i].bucket < to {
			a.Merge(s.points[i].accounts)
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
	i := s.find(s.usualTo + 1)
	for ; i < len(s.points) && s.points[i].bucket <= upTo; i++ {
		p := &s.points[i]
		if p.bucket >= s.quietFrom && p.bucket <= s.quietTo {
			continue
		}
		for o, n := range p.outcomes {
			s.usual[o] = s.usual[o]*usualDecay + float64(n)
		}
		s.usualTimed = s.usualTimed*usualDecay + float64(p.timed)
		if p.slow != nil && s.usualSlow == nil {
			s.usualSlow = make([]float64, len(p.slow))
		}
		for j, n := range p.slow {
			s.usualSlow[j] = s.usualSlow[j]*usualDecay + float64(n)
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
