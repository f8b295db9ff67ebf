package detect

import (
	"math"
	"slices"

	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// plan is what the rules of a detector need of each series.
type plan struct {
	columns int                      // of a ring
	above   []int                    // first bucket of latencies above each bound
	bad     [signal.NumOutcomes]bool // outcomes that any rule calls bad
	windows []int                    // in buckets, all that any share is taken of, up to an hour
	settles bool                     // a burn rate looks back further
	checks  []check
	by      map[string]*selection // made so far, by the places of their checks
	all     bool                  // nothing is passed over
}

// selection is the checks that some series are subject to; most series share one of few.
type selection struct{ checks []*check }

// check is a question about a series that is quickly answered: can this rule possibly find it abnormal? Yes may be wrong, and
// then the rule finds that out; no may not.
type check struct {
	rule     *compiled
	match    *rule.PathMatch
	due      bool // at this step
	settle   bool // at this step
	cols     []int
	timed    bool // a part of requests with a known latency, not of successes and bad ones
	minBad   uint64
	minTotal uint64
	window   int     // of a threshold
	above    float64 // of a threshold
	pairs    []burnCheck
	history  *histories // of a burn rate with long windows
	past     int        // its place in lanes.past
	sum      func(s *series, from, to int64) (n, bad uint64)
}

// burnCheck is one pair of windows of a burn rate. A window that is longer than an hour has no lane.
type burnCheck struct {
	long, short           int   // lanes; −1 for none
	longBuckets, shortOne int64 // in buckets
	limit                 float64
}

// slack keeps rounding from hiding what is just above a threshold.
const slack = 1 - 1e-9

// survey makes the plan of a detector whose rules are compiled.
func (d *Detector) survey() {
	p := plan{columns: columnsFor(len(d.bounds)), above: aboveOf(d.bounds), by: map[string]*selection{}}
	histories := 0
	for _, r := range d.rules {
		if r.bank != nil || !telemetry(r.Kind) {
			continue
		}
		e := rateOf(r)
		c := check{rule: r, match: e.match, minBad: max(e.minBad, 1), minTotal: e.minRequests, above: e.above, past: -1}
		if r.bound >= 0 {
			c.timed, c.cols = true, []int{colSlow + r.bound}
		} else {
			for o, bad := range e.bad {
				if bad {
					c.cols, p.bad[o] = append(c.cols, o), true
				}
			}
		}
		c.sum = e.over
		if e.burns == nil {
			c.window = p.lane(buckets(e.window))
		} else {
			for _, b := range e.burns.rates {
				c.pairs = append(c.pairs, burnCheck{p.lane(buckets(b.Long)), p.lane(buckets(b.Short)), buckets(b.Long), buckets(b.Short), b.Factor * e.burns.allowed})
			}
			if c.history = e.burns.history; c.history != nil {
				c.past, p.settles = histories, true
				histories++
			}
		}
		p.checks = append(p.checks, c)
	}
	d.plan = p
}

// lane finds or adds a window; −1 for one beyond an hour.
func (p *plan) lane(window int64) int {
	if window > keepBuckets {
		return -1
	}
	i := slices.Index(p.windows, int(window))
	if i < 0 {
		i = len(p.windows)
		p.windows = append(p.windows, int(window))
	}
	return i
}

// selects tells whether a rule judges a series.
func (c *check) selects(s *series) bool {
	if !c.match.Matches(s.key.Path, s.area) {
		return false
	}
	if s.key.Attributes == "" {
		return len(c.match.Attributes) == 0
	}
	return slices.Contains(c.rule.sets, s.set) && c.match.MatchesAttributes(s.key.Attributes)
}

func (p *plan) selection(s *series) *selection {
	id, out := make([]byte, len(p.checks)), &selection{}
	for i := range p.checks {
		if p.checks[i].selects(s) {
			id[i] = 1
			out.checks = append(out.checks, &p.checks[i])
		}
	}
	if have := p.by[string(id)]; have != nil {
		return have
	}
	p.by[string(id)] = out
	return out
}

// sift puts each series on the list of each rule that is due and may find it abnormal. It goes through the series once for all
// rules, and passes over those in which nothing bad has happened.
func (d *Detector) sift(t int64) {
	p := &d.plan
	if len(p.checks) == 0 {
		return
	}
	any := false
	for i := range p.checks {
		c := &p.checks[i]
		r := c.rule
		r.found = r.found[:0]
		c.due = t%r.interval == 0
		c.settle = c.due && c.history != nil && unsettled(t) != unsettled(t-r.interval)
		any = any || c.due
	}
	if !any {
		return
	}
	for _, tb := range []*table{&d.paths, &d.slice} {
		for _, s := range tb.order {
			s.sift(t, p)
		}
	}
}

func (s *series) sift(t int64, p *plan) {
	if s.checks == nil {
		s.checks = p.selection(s)
	}
	hot := s.troubled >= t-keepBuckets
	if !hot && !p.settles && !p.all {
		s.at = 0
		return
	}
	if hot {
		s.slide(t, p)
	} else {
		s.at = 0
	}
	stale := s.last < t-keepBuckets
	huge := hot && s.huge() || p.all
	for _, c := range s.checks.checks {
		if !c.due || stale && len(c.rule.active) == 0 {
			continue
		}
		if c.history != nil {
			if c.settle || c.of(s) == nil {
				c.settled(s, t)
			}
		} else if !hot && !p.all {
			continue
		}
		// The lanes are as of now: what is judged as of an earlier moment is looked at whole.
		if huge || c.rule.offset > 0 || c.possible(s, t, hot, len(p.windows)+1) {
			c.rule.found = append(c.rule.found, s)
		}
	}
}

// possible answers from the lanes alone.
func (c *check) possible(s *series, t int64, hot bool, stride int) bool {
	if c.pairs == nil {
		n, bad := c.lanes(s, c.window, stride)
		return c.exceeds(n, bad, c.above)
	}
	for i := range c.pairs {
		b := &c.pairs[i]
		if b.short >= 0 {
			if !hot {
				continue
			}
			n, bad := c.lanes(s, b.short, stride)
			if float64(bad) <= b.limit*float64(n)*slack {
				continue
			}
		}
		if b.long >= 0 {
			if !hot {
				continue
			}
			if n, bad := c.lanes(s, b.long, stride); !c.exceeds(n, bad, b.limit) {
				continue
			}
			return true
		}
		if c.history == nil {
			return true
		}
		if c.beyondHour(s, t, hot, b, stride) {
			return true
		}
	}
	return false
}

// beyondHour looks at the windows of a pair that are longer than an hour.
func (c *check) beyondHour(s *series, t int64, hot bool, b *burnCheck, stride int) bool {
	h := c.of(s)
	if h == nil || (h.step+1)*burnBuckets != unsettled(t) {
		return hot || h != nil && h.bads > 0
	}
	if !hot && h.bads == 0 {
		return false
	}
	var rn, rbad uint64
	if hot {
		rn, rbad = c.lanes(s, stride-1, stride)
	} else {
		rn, rbad = c.sum(s, unsettled(t), t)
	}
	n, bad := h.settledSum(t, b.longBuckets)
	if !c.exceeds(rn+n, rbad+bad, b.limit) {
		return false
	}
	if b.short >= 0 {
		return true
	}
	n, bad = h.settledSum(t, b.shortOne)
	return float64(rbad+bad) > b.limit*float64(rn+n)*slack
}

func (c *check) exceeds(n, bad uint64, above float64) bool {
	return bad >= c.minBad && n >= c.minTotal && float64(bad) > above*math.Max(float64(n), 1)*slack
}

// lanes are the requests and the bad ones in a window.
func (c *check) lanes(s *series, window, stride int) (n, bad uint64) {
	for _, col := range c.cols {
		bad += s.lane(col, window, stride)
	}
	switch {
	case !c.timed:
		return s.lane(int(signal.Success), window, stride) + bad, bad
	case s.timed:
		return s.lane(colTimed, window, stride), bad
	}
	for o := range int(signal.NumOutcomes) {
		n += s.lane(o, window, stride)
	}
	return n, bad
}

// of finds what a burn-rate rule keeps of a series.
func (c *check) of(s *series) *history {
	if c.past < len(s.past) && s.past[c.past] != nil {
		return s.past[c.past]
	}
	h := c.history.by[s.key]
	if h != nil {
		for len(s.past) <= c.past {
			s.past = append(s.past, nil)
		}
		s.past[c.past] = h
	}
	return h
}

func (c *check) settled(s *series, t int64) {
	c.history.settle(s, t, c.of(s), func(from, to int64) (n, bad uint64) { return c.sum(s, from, to) })
}

// suspects are the series that a rule has to judge: those that were found, and those that it has a finding on. Paths come
// before slices, each in order.
func (d *Detector) suspectsOf(r *compiled, t int64) []*series {
	if len(r.active) == 0 {
		return r.found
	}
	out, c := slices.Clone(r.found), d.checkOf(r)
	stamp := t*int64(len(d.rules)) + int64(r.order) + 1
	for _, s := range out {
		s.asked = stamp
	}
	more := false
	for k := range r.active {
		if s := d.judged(k); s != nil && s.asked != stamp && c.selects(s) {
			s.asked, more = stamp, true
			out = append(out, s)
		}
	}
	if more {
		d.rank()
		slices.SortFunc(out, func(x, y *series) int { return x.rank - y.rank })
	}
	return out
}

// rank numbers all series anew if there are others than before: paths before slices, each in order.
func (d *Detector) rank() {
	if v := d.paths.version + d.slice.version; d.ranked != v {
		d.ranked = v
		for i, s := range d.paths.order {
			s.rank = i
		}
		for i, s := range d.slice.order {
			s.rank = len(d.paths.order) + i
		}
	}
}

func (d *Detector) checkOf(r *compiled) *check {
	i := slices.IndexFunc(d.plan.checks, func(c check) bool { return c.rule == r })
	return &d.plan.checks[i]
}
