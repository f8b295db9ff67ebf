package detect

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	retryBuckets = int64(rule.MaxRetryWindow / signal.BucketSize)
	// retryDelay keeps the newest buckets out of what is usual.
	retryDelay = retryBuckets / 2
	maxTries   = 100_000 // paths that one rule keeps
)

// retryDecay halves the weight of a bucket in a day.
var retryDecay = math.Pow(0.5, 1.0/(24*float64(bucketsAnHour)))

// tries are what one rule of kind retries knows of its paths: windows do not tell tries apart.
type tries struct {
	match     *rule.PathMatch
	window    int64
	place     int // in series.tried
	by        map[signal.Path]*tried
	presences // of how much traffic is usual
}

// tried is one path: the last buckets, by their number modulo the ring's length, and what is usual.
type tried struct {
	to      int64 // the newest bucket in the ring
	n, re   [retryBuckets]uint32
	learned int64 // buckets up to here are usual
	usualN  float64
	usualRe float64
	// The sums of the rule's window that ends before the bucket until; 0 where they have to be made anew.
	until       int64
	sumN, sumRe uint64
	members     [1]*series
	presence    *presence // nil while it has not been asked for
}

// untried stands for paths that a rule does not judge.
var untried = &tried{}

func newTries(c *compiled) recall {
	p := c.Params.(*rule.Retries)
	return &tries{match: &p.Match, window: buckets(p.Window.Std()), by: map[signal.Path]*tried{}, presences: presences{by: map[signal.Path]*presence{}}}
}

// of is what is known of a path, nil where it is nothing. It is looked up once.
func (ts *tries) of(s *series) *tried {
	if ts.place < len(s.tried) && s.tried[ts.place] != nil {
		if x := s.tried[ts.place]; x != untried {
			return x
		}
		return nil
	}
	x := ts.by[s.key.Path]
	if !ts.match.Matches(s.key.Path, s.area) {
		x = untried
	}
	if x != nil {
		ts.remember(s, x)
	}
	return ts.by[s.key.Path]
}

func (ts *tries) remember(s *series, x *tried) {
	for len(s.tried) <= ts.place {
		s.tried = append(s.tried, nil)
	}
	s.tried[ts.place] = x
}

// count takes in a cell.
func (ts *tries) count(s *series, bucket int64, c *signal.Cell) {
	x := ts.of(s)
	if x == nil {
		if ts.place < len(s.tried) && s.tried[ts.place] == untried || len(ts.by) >= maxTries {
			return
		}
		x = &tried{to: bucket - 1, learned: bucket - 1}
		ts.by[s.key.Path] = x
		ts.remember(s, x)
	}
	x.advance(bucket)
	if bucket < x.until {
		x.until = 0
	}
	if i := retryPlace(bucket); bucket > x.to-retryBuckets {
		x.n[i], x.re[i] = clip32(uint64(x.n[i])+c.Total()), clip32(uint64(x.re[i])+c.Retries)
	}
}

func retryPlace(b int64) int { return int(((b % retryBuckets) + retryBuckets) % retryBuckets) }

func (x *tried) advance(bucket int64) {
	if bucket > x.to+retryBuckets {
		x.to = bucket - retryBuckets
	}
	for x.to < bucket {
		x.to++
		i := retryPlace(x.to)
		x.n[i], x.re[i] = 0, 0
	}
}

// slide gives the sums of the window that ends at t, from those of the step before where it can.
func (x *tried) slide(t, window int64) (n, re uint64) {
	if x.until != t-1 || x.to != t-1 || window >= retryBuckets {
		x.sumN, x.sumRe = x.sum(t, window)
	} else {
		in, out := retryPlace(t-1), retryPlace(t-1-window)
		x.sumN += uint64(x.n[in]) - uint64(x.n[out])
		x.sumRe += uint64(x.re[in]) - uint64(x.re[out])
	}
	x.until = t
	return x.sumN, x.sumRe
}

func (x *tried) sum(t, window int64) (n, re uint64) {
	for b := max(t-window, x.to-retryBuckets+1); b < t && b <= x.to; b++ {
		i := retryPlace(b)
		n, re = n+uint64(x.n[i]), re+uint64(x.re[i])
	}
	return n, re
}

// learn takes buckets that are old enough into what is usual, but for those of a finding.
func (x *tried) learn(t int64, calm bool) {
	for b := max(x.learned+1, x.to-retryBuckets+1); b < t-retryDelay && b <= x.to; b++ {
		x.learned = b
		if i := retryPlace(b); calm {
			x.usualN, x.usualRe = x.usualN*retryDecay+float64(x.n[i]), x.usualRe*retryDecay+float64(x.re[i])
		}
	}
}

// evalRetries judges how often requests are tried, and how many come.
func evalRetries(d *Detector, r *compiled, t int64, yield func(verdict)) {
	p, ts := r.Params.(*rule.Retries), r.recall.(*tries)
	window := ts.window
	for _, s := range d.paths.order {
		x := ts.of(s)
		if x == nil || s.last < t-keepBuckets && len(r.active) == 0 {
			continue
		}
		n, re := x.slide(t, window)
		attempts := float64(n) / math.Max(1, float64(n-min(re, n)))
		share := float64(re) / math.Max(1, float64(n))
		usual := x.usualRe / math.Max(1, x.usualN)
		known := x.usualN >= 2*float64(p.MinRequests)
		again := p.Attempts > 0 && known && n >= p.MinRequests && attempts >= p.Attempts && share >= p.TimesUsual*usual
		times := 0.0
		if p.Traffic > 0 {
			times = ts.traffic(s, x, t, n, p.MinRequests)
		}
		much := p.Traffic > 0 && n >= p.MinRequests && times >= p.Traffic && !d.partial(signal.Requests)
		abnormal := again || much
		if !abnormal && len(r.active) == 0 {
			x.learn(t, true)
			continue
		}
		key := pathKey(r.Alert, s.key)
		f := r.active[key]
		x.learn(t, !abnormal || f != nil && timeOf(t).Sub(f.F.ActiveAt) >= usualAfter)
		if s.missing(t) || !abnormal && f == nil {
			continue
		}
		yield(verdict{
			key: key, abnormal: abnormal, value: attempts, requests: n, stream: signal.Requests,
			explain: func() string {
				what := fmt.Sprintf("%s %s %s", key.Service, key.Operation, things(s.key))
				if much && !again {
					return fmt.Sprintf("%s come %.1f times as often as is usual at this hour; %d in %s", what, times, n, shortDuration(p.Window.Std()))
				}
				return fmt.Sprintf("%s are tried %.1f times each; %d of %d in %s were retries, usually %s", what, attempts, re, n, shortDuration(p.Window.Std()), percent(usual))
			},
		})
	}
}

// traffic is how many times the most that is usual at this hour has come; 0 where that is not known.
func (ts *tries) traffic(s *series, x *tried, t int64, n, least uint64) float64 {
	if x.presence == nil {
		x.presence = ts.present(s.key.Path)
	}
	p := x.presence
	if p == nil {
		return 0
	}
	x.members[0] = s
	p.see(x.members[:], t, 0, false)
	if n < least {
		return 0
	}
	most, known := p.most(floorDiv(t-1, bucketsAnHour))
	if !known {
		return 0
	}
	return float64(n) / math.Max(1, most/float64(bucketsAnHour)*float64(ts.window))
}

func (ts *tries) forget(d *Detector) {
	ts.presences.forget(d)
	for k := range ts.by {
		if d.paths.by[signal.Key{Path: k}] == nil {
			delete(ts.by, k)
		}
	}
}

func (ts *tries) save() ([]byte, error) {
	var w packer
	w.uint(uint64(len(ts.by)))
	for _, k := range slices.SortedFunc(maps.Keys(ts.by), signal.Path.Compare) {
		x := ts.by[k]
		w.key(signal.Key{Path: k})
		w.int(x.to)
		w.int(x.learned)
		w.float(x.usualN)
		w.float(x.usualRe)
		for i := range x.n {
			w.uint(uint64(x.n[i]))
			w.uint(uint64(x.re[i]))
		}
	}
	rest, err := ts.presences.save()
	return append(w.b, rest...), err
}

func (ts *tries) load(data []byte) error {
	r := unpacker{b: data}
	for range r.len() {
		k, x := r.key(), &tried{}
		x.to, x.learned, x.usualN, x.usualRe = r.int(), r.int(), r.float(), r.float()
		for i := range x.n {
			x.n[i], x.re[i] = clip32(r.uint()), clip32(r.uint())
		}
		ts.by[k.Path] = x
	}
	if r.err != nil {
		return r.err
	}
	return ts.presences.load(r.b)
}
