package detect

import (
	"fmt"
	"math"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	// sliceLift is how much worse than the whole path a slice has to be to be a finding of its own.
	sliceLift = 2
	// The last part of a window must be bad, too, at least half as bad as the whole has to be: what is over must not be
	// reported for as long as the window remembers it. The idea is the short window of multi-window burn rates (SRE
	// workbook, chapter 5); a burst of half a minute ends with itself.
	lastPart  = 5
	lastShare = 0.5
	// lastRequests is how many requests the last part needs to be asked.
	lastRequests = 5
)

// evalFailureRate judges the share of bad outcomes of each path, and of slices where the whole hides them.
func evalFailureRate(d *Detector, r *compiled, t int64, yield func(verdict)) {
	if r.bank != nil {
		evalEvidence(d, r, t, yield)
		return
	}
	e := rateOf(r)
	if lost := r.Params.(*rule.FailureRate).Lost; lost > 0 {
		e.served = func(s *series) bool {
			active := r.active[pathKey(r.Alert, s.key)]
			return active != nil && active.F.State == incident.Firing || s.lost(t, buckets(e.window)) >= float64(lost)
		}
	}
	e.run(d, t, yield)
}

// evalLatency judges the share of slow requests of each path.
func evalLatency(d *Detector, r *compiled, t int64, yield func(verdict)) {
	if r.bank != nil {
		evalEvidence(d, r, t, yield)
		return
	}
	rateOf(r).run(d, t, yield)
}

// rateOf is how a rule of kind failure_rate or latency judges, unless it does so by evidence.
func rateOf(r *compiled) *rate {
	if p, ok := r.Params.(*rule.Latency); ok {
		e := &rate{
			rule: r, match: &p.Match, window: p.Window.Std(), above: float64(p.Above),
			minRequests: p.MinRequests, minBad: 1, timesUsual: p.TimesUsual,
			verb: "took longer than " + p.SlowerThan.String(),
		}
		e.over = func(s *series, from, to int64) (n, b uint64) {
			c := s.sum(from, to, r.bound)
			return c.timed, c.slow
		}
		e.usual = func(s *series) (float64, bool) { return s.usualSlowShare(r.bound) }
		e.byObjective(p.Objective, p.BurnRates)
		return e
	}
	p := r.Params.(*rule.FailureRate)
	e := &rate{
		rule: r, match: &p.Match, window: p.Window.Std(), above: float64(p.Above),
		minRequests: p.MinRequests, minBad: p.MinFailures, timesUsual: p.TimesUsual, bad: p.BadOutcomes(), verb: "failed",
	}
	e.over = func(s *series, from, to int64) (n, b uint64) {
		c := s.sum(from, to, -1)
		return c.judged(e.bad)
	}
	e.usual = func(s *series) (float64, bool) { return s.usualShare(e.bad) }
	if e.bad != onlyFailures {
		e.verb = "were refused or failed"
	}
	e.byObjective(p.Objective, p.BurnRates)
	return e
}

// byObjective lets burn rates judge instead of a threshold, where there is an objective.
func (e *rate) byObjective(objective rule.Share, rates []rule.BurnRate) {
	if objective <= 0 {
		return
	}
	e.burns = &burns{
		rates: rates, allowed: 1 - float64(objective), objective: float64(objective), minBad: e.minBad, minTotal: e.minRequests, verb: e.verb, sum: e.over,
	}
	e.burns.history, _ = e.rule.recall.(*histories)
	e.window = min(rates[0].Long, rule.MaxWindow) // of the path that a slice is held against
}

// assessed is what a way of judging makes of one series.
type assessed struct {
	n, bad   uint64
	share    float64
	abnormal bool
	explain  func(what string) string
}

// rate judges any share of requests.
type rate struct {
	rule        *compiled
	match       *rule.PathMatch
	window      time.Duration
	above       float64
	minRequests uint64
	minBad      uint64
	timesUsual  float64
	bad         [signal.NumOutcomes]bool
	verb        string
	over        func(s *series, from, to int64) (n, bad uint64) // in these buckets
	usual       func(*series) (float64, bool)
	burns       *burns             // nil for a threshold
	served      func(*series) bool // who is refused now was served before; nil does not ask
}

func (e *rate) run(d *Detector, t int64, yield func(verdict)) {
	whole := map[signal.Path]bool{} // abnormal paths
	for _, s := range d.suspectsOf(e.rule, t) {
		if s.key.Attributes == "" {
			if v, ok := e.judge(s, t, s); ok {
				if v.abnormal {
					whole[s.key.Path] = true
				}
				yield(v)
			}
			continue
		}
		// A path that goes on while a slice of it is silent has no missing data: nobody asks for that slice any more.
		v, ok := e.judge(s, t, d.paths.by[signal.Key{Path: s.key.Path}])
		if !ok {
			continue
		}
		if len(e.match.Attributes) == 0 && v.abnormal && e.rule.active[v.key] == nil {
			if whole[s.key.Path] || v.value < sliceLift*e.whole(d, s.key.Path, t) {
				continue
			}
		}
		yield(v)
	}
}

// whole is the share of the path that a slice belongs to.
func (e *rate) whole(d *Detector, p signal.Path, t int64) float64 {
	s := d.paths.by[signal.Key{Path: p}]
	if s == nil {
		return 0
	}
	n, b := e.over(s, t-buckets(e.window), t)
	return float64(b) / math.Max(float64(n), 1)
}

// judge gives no verdict for a healthy series without a finding, nor for one whose data is missing; flow is the series whose
// traffic tells that.
func (e *rate) judge(s *series, t int64, flow *series) (v verdict, ok bool) {
	var a assessed
	if e.burns != nil {
		a = e.burns.assess(s, t)
	} else {
		a = e.assess(s, t)
	}
	if !a.abnormal && len(e.rule.active) == 0 {
		return v, false
	}
	key := pathKey(e.rule.Alert, s.key)
	active := e.rule.active[key]
	if !a.abnormal && active == nil {
		return v, false
	}
	if flow != nil && flow.missing(t) && active != nil {
		return v, false
	}
	if a.abnormal && (active == nil || timeOf(t).Sub(active.F.ActiveAt) < usualAfter) {
		s.disquiet(t, buckets(e.window))
	}
	return verdict{
		key: key, abnormal: a.abnormal, value: a.share, requests: a.n, failures: a.bad, stream: signal.Requests,
		accounts: func() signal.Sketch { return s.accountsOf(t-buckets(e.window), t) },
		explain:  func() string { return a.explain(things(s.key)) },
	}, true
}

// assess holds the share of the window against the threshold and against what is usual.
func (e *rate) assess(s *series, t int64) (a assessed) {
	n, b := e.over(s, t-buckets(e.window), t)
	share := float64(b) / math.Max(float64(n), 1)
	abnormal := b >= max(e.minBad, 1) && n >= e.minRequests && share > e.above
	usual, known := 0.0, false
	if abnormal {
		ln, lb := e.over(s, t-max(3, buckets(e.window)/lastPart), t)
		abnormal = ln < lastRequests || float64(lb) > lastShare*e.above*float64(ln)
	}
	if abnormal {
		usual, known = e.usual(s)
		abnormal = e.timesUsual == 0 || share >= e.timesUsual*usual
	}
	abnormal = abnormal && (e.served == nil || e.served(s))
	return assessed{n, b, share, abnormal, func(what string) string {
		if !known {
			usual, known = e.usual(s)
		}
		text := fmt.Sprintf("%d of %d %s %s in %s (%s)", b, n, what, e.verb, shortDuration(e.window), percent(share)) + where(s.key)
		if known {
			return text + ", usually " + percent(usual)
		}
		return text + fmt.Sprintf(", threshold %s", percent(e.above))
	}}
}

// lostEnough successes have to be expected before their loss says anything.
const lostEnough = 20

// lost is the part of the successes of the hour before a window that has gone. One customer who is refused takes his own along,
// everybody being refused takes all, and requests that nobody made before take none.
func (s *series) lost(t, window int64) float64 {
	before, now := s.sum(t-keepBuckets, t-window, -1), s.sum(t-window, t, -1)
	oldest := t - keepBuckets
	if b, ok := s.oldest(s.last + 1 - ringBuckets); ok {
		oldest = max(oldest, b)
	}
	expected := float64(before.outcomes[signal.Success]) / float64(max(1, t-window-oldest)) * float64(window)
	if expected < lostEnough {
		return 0
	}
	return 1 - float64(now.outcomes[signal.Success])/expected
}

func things(k signal.Key) string {
	if k.Access == signal.Read {
		return "reads"
	}
	return "writes"
}

func where(k signal.Key) string {
	if k.Attributes == "" {
		return ""
	}
	return " where " + k.Attributes.String()
}

func pathKey(alert string, k signal.Key) incident.FindingKey {
	return incident.FindingKey{
		Rule: alert, Service: k.Service, Operation: k.Operation, Access: k.Access.String(), Attributes: k.Attributes,
	}
}
