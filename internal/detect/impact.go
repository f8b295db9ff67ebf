package detect

import (
	"math"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	// beforeOnset is how many buckets before a finding's beginning its path is counted from: the window had to fill first.
	beforeOnset = 3
	// peakBuckets and peakRequests: a peak is the worst minute with enough requests to mean something.
	peakBuckets  = 6
	peakRequests = 20
)

// count adds the newest buckets of each path, and the newest tickets, to the incident.
func (d *Detector) count(x *tracked, t int64) {
	for i := range x.Members {
		m := &x.Members[i]
		if onPath(&m.Finding) && m.Active {
			d.track(x, keyOf(&m.Finding.Key), m.Finding.Rule, m.Finding.ActiveAt)
		}
		for j := range m.Leads {
			if m.Active {
				d.track(x, m.Leads[j].Key, m.Leads[j].Rule, m.Finding.ActiveAt)
			}
		}
	}
	for i := range x.Paths {
		p := &x.Paths[i]
		p.Active = x.hasPath(p.Key)
		if p.Active {
			d.countPath(x, p, t)
		}
	}
	d.countTickets(x, t)
}

func keyOf(k *incident.FindingKey) signal.Key {
	a, _ := signal.ParseAccess(k.Access)
	return signal.Key{Path: signal.Path{Service: k.Service, Operation: k.Operation, Access: a}, Attributes: k.Attributes}
}

func (x *tracked) hasPath(k signal.Key) bool {
	return slices.ContainsFunc(x.Members, func(m member) bool {
		return m.Active && (onPath(&m.Finding) && keyOf(&m.Finding.Key) == k ||
			slices.ContainsFunc(m.Leads, func(l leading) bool { return l.Key == k }))
	})
}

// track begins to count a path from a little before its finding's onset.
func (d *Detector) track(x *tracked, k signal.Key, alert string, onset time.Time) {
	kind := ""
	if r := d.ruleOf(alert); r != nil {
		kind = r.Kind
	}
	i := slices.IndexFunc(x.Paths, func(p pathTrack) bool { return p.Key == k })
	if i < 0 {
		from := bucketOf(onset) - beforeOnset
		p := pathTrack{Key: k, From: timeOf(from), Counted: from}
		if kind == "latency" {
			p.Slow = alert
		}
		if d.badOf(alert) != onlyFailures {
			p.Refused = alert
		}
		if s := d.seriesOf(k); s != nil {
			p.Base, _ = s.usualShare(onlyFailures)
		}
		x.Paths = append(x.Paths, p)
		slices.SortFunc(x.Paths, func(a, b pathTrack) int { return a.Key.Compare(b.Key) })
		return
	}
	if kind == "failure_rate" {
		x.Paths[i].Slow = ""
		if d.badOf(alert) == onlyFailures {
			x.Paths[i].Refused = ""
		}
	}
}

// badOf are the outcomes that a rule counts as bad.
func (d *Detector) badOf(alert string) [signal.NumOutcomes]bool {
	for _, r := range d.rules {
		if p, ok := r.Params.(*rule.FailureRate); ok && r.Alert == alert {
			return p.BadOutcomes()
		}
	}
	return onlyFailures
}

func (d *Detector) seriesOf(k signal.Key) *series {
	if s := d.paths.by[k]; s != nil {
		return s
	}
	return d.slice.by[k]
}

func (d *Detector) countPath(x *tracked, p *pathTrack, t int64) {
	s := d.seriesOf(p.Key)
	if s == nil || p.Counted >= t {
		return
	}
	bound := -1
	for _, r := range d.rules {
		if p.Slow != "" && r.Alert == p.Slow {
			bound = r.bound
		}
	}
	share := func(from, to int64) (n, b uint64) {
		c := s.sum(from, to, bound)
		if bound >= 0 {
			return c.timed, c.slow
		}
		return c.judged(d.badOf(p.Refused))
	}
	n, b := share(p.Counted, t)
	p.Requests += n
	p.Failures += b
	whole := d.paths.by[signal.Key{Path: p.Key.Path}]
	if whole != nil {
		x.Accounts.Merge(whole.accountsOf(p.Counted, t))
	}
	p.Counted = t
	if n, b := share(t-peakBuckets, t); n >= peakRequests && float64(b)/float64(n) > p.PeakShare {
		p.PeakShare, p.PeakAt = float64(b)/float64(n), timeOf(t)
	}
}

// countTickets adds contacts about the incident's areas: about those whose tickets are unusual, and once it is declared
// about all that fail.
func (d *Detector) countTickets(x *tracked, step int64) {
	declared := x.Inc.State != incident.Suspected
	for i := range x.Members {
		n := d.nodeOf(&x.Members[i].Finding)
		if n.area == "" || !x.Members[i].Active || n.kind != "support" && !declared {
			continue
		}
		a := d.desk[n.area]
		if a == nil {
			continue
		}
		j := slices.IndexFunc(x.Desk, func(t deskTrack) bool { return t.Area == n.area })
		if j < 0 {
			from := x.Inc.StartedAt
			if n.kind == "support" {
				from = n.onset.Add(-15 * time.Minute)
			}
			x.Desk = append(x.Desk, deskTrack{Area: n.area, From: from})
			j = len(x.Desk) - 1
		}
		t := &x.Desk[j]
		cs := a.since(t.From, t.Seen)
		t.Count += len(cs)
		t.Seen = step
		x.Accounts.Merge(accounts(cs))
	}
}

func (x *tracked) tickets() (n int) {
	for _, t := range x.Desk {
		n += t.Count
	}
	return n
}

// impact sums the paths up.
func (x *tracked) impact() incident.Impact {
	out := incident.Impact{Kind: incident.ImpactSaturation, AccountsAtLeast: atLeast(x.Accounts)}
	failing, slow := false, false
	counted := map[signal.Path]bool{}
	for i := range x.Paths {
		p := &x.Paths[i]
		failing, slow = failing || p.Slow == "", slow || p.Slow != ""
		if p.PeakShare > out.PeakShare {
			out.PeakShare, out.PeakAt = p.PeakShare, p.PeakAt
		}
		if p.Key.Attributes != "" && slices.ContainsFunc(x.Paths, func(q pathTrack) bool {
			return q.Key.Attributes == "" && q.Key.Path == p.Key.Path
		}) {
			continue // the whole path has these already
		}
		counted[p.Key.Path] = true
		out.Requests += p.Requests
		out.Failures += p.Failures
	}
	switch {
	case failing:
		out.Kind = incident.ImpactFailures
	case slow:
		out.Kind = incident.ImpactLatency
	case len(x.Members) > 0 && onlySupport(x.Members):
		out.Kind = incident.ImpactTickets
	case x.hasKind("absence"):
		out.Kind = incident.ImpactAbsence
	case x.hasKind("backlog"):
		out.Kind = incident.ImpactBacklog
	}
	return out
}

// atLeast is the number of accounts that is exceeded with 95% certainty: a full sketch of k values has a standard error
// of about 1/√(k−2).
func atLeast(s signal.Sketch) uint64 {
	n := s.Estimate()
	if len(s) < signal.SketchSize {
		return n
	}
	return max(signal.SketchSize, uint64(float64(n)*(1-1.645/math.Sqrt(signal.SketchSize-2))))
}
