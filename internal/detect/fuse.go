package detect

import (
	"cmp"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect/evidence"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	// maxLeads bounds the paths that a fused finding names.
	maxLeads = 3
	// leadGain is what a path has to have proven to be named: less is chance on some path of every area.
	leadGain = 30
)

// subject is what evidence is put together for: an area of the catalogue, or a service that belongs to none.
type subject struct{ Area, Service string }

func (a subject) compare(b subject) int {
	return cmp.Or(cmp.Compare(a.Area, b.Area), cmp.Compare(a.Service, b.Service))
}

func (a subject) name() string { return cmp.Or(a.Area, a.Service) }

func subjectOf(s *series) subject {
	if s.area != "" {
		return subject{Area: s.area}
	}
	return subject{Service: s.key.Service}
}

// unit is the series of one subject about which a rule has evidence: paths, then slices, in order.
type unit struct {
	series []*series
	fresh  bool
}

func compareSeries(a, b *series) int { return cmp.Or(half(a)-half(b), a.key.Compare(b.key)) }

func newUnits(d *Detector) map[subject]*unit {
	if len(d.fusers()) == 0 {
		return nil
	}
	return map[subject]*unit{}
}

// units are there if a rule puts evidence together.
func (d *Detector) unitOf(s subject) *unit {
	if d.units == nil {
		return nil
	}
	u := d.units[s]
	if u == nil {
		u = &unit{}
		d.units[s] = u
	}
	return u
}

func (d *Detector) joinUnit(s *series) {
	u := d.unitOf(subjectOf(s))
	if u == nil {
		return
	}
	if i, found := slices.BinarySearchFunc(u.series, s, compareSeries); !found {
		u.series = slices.Insert(u.series, i, s)
	}
}

func (d *Detector) leaveUnit(s *series) {
	u := d.units[subjectOf(s)]
	if u == nil {
		return
	}
	u.series = slices.DeleteFunc(u.series, func(o *series) bool { return o == s })
	if len(u.series) == 0 && !u.fresh {
		delete(d.units, subjectOf(s))
	}
}

func (d *Detector) touchUnit(s *series) {
	if d.units != nil {
		d.unitOf(subjectOf(s)).fresh = true
	}
}

func (d *Detector) touchArea(area string) {
	if u := d.unitOf(subject{Area: area}); u != nil {
		u.fresh = true
	}
}

// fuser is a high_impact rule with a budget. It keeps the places of subjects in it, and of those that had new evidence before it
// was due.
type fuser struct {
	rule   *compiled
	params *rule.HighImpact
	budget float64
	shares evidence.Shares
	places map[subject]int
	fresh  map[subject]bool
	lags   float64
}

var _ recall = (*fuser)(nil)

func newFuser(c *compiled) recall {
	p := c.Params.(*rule.HighImpact)
	if p.FalsePages == (rule.Budget{}) {
		return nil
	}
	failures, tickets := evidence.Default(), evidence.Arrivals()
	return &fuser{
		rule: c, params: p, budget: p.FalsePages.PerMinute(), places: map[subject]int{}, fresh: map[subject]bool{},
		lags: max(failures.Lags(), tickets.Lags()),
	}
}

// fuser is what a rule with a budget keeps; nil, too, for no rule.
func (r *compiled) fuser() (*fuser, bool) {
	if r == nil {
		return nil, false
	}
	f, ok := r.recall.(*fuser)
	return f, ok
}

// fusers lists the rules that put evidence together.
func (d *Detector) fusers() (out []*fuser) {
	for _, r := range d.rules {
		if f, ok := r.recall.(*fuser); ok {
			out = append(out, f)
		}
	}
	return out
}

// spread tells the fusers which subjects have new evidence.
func (d *Detector) spread(int64) {
	if d.units == nil {
		return
	}
	for s, u := range d.units {
		if !u.fresh {
			continue
		}
		u.fresh = false
		for _, f := range d.fusers() {
			if len(f.params.Areas) == 0 || s.Area != "" && rule.MatchesAny(f.params.Areas, s.Area) {
				f.fresh[s] = true
			}
		}
	}
}

// counts tells whether another rule's evidence counts for this one: what is in shadow, for what is in shadow.
func (f *fuser) counts(r *compiled) bool { return f.rule.Shadow || !r.Shadow }

func (f *fuser) share(s subject) float64 {
	place, ok := f.places[s]
	if !ok {
		place = f.shares.Take()
		f.places[s] = place
	}
	return f.budget * evidence.ShareOfArea(place)
}

func evalHighImpact(d *Detector, r *compiled, t int64, yield func(verdict)) {
	f, ok := r.recall.(*fuser)
	if !ok {
		return // by points: judged when incidents are declared
	}
	for k := range r.active {
		f.fresh[subject{k.Area, k.Service}] = true
	}
	asked := make([]subject, 0, len(f.fresh))
	for s := range f.fresh {
		asked = append(asked, s)
	}
	slices.SortFunc(asked, subject.compare)
	clear(f.fresh)
	for _, s := range asked {
		if v, ok := f.judge(d, s, t); ok {
			yield(v)
		}
	}
}

// fused is what is known of one subject.
type fused struct {
	subject subject
	score   float64
	leads   []lead // paths and slices that have proven most
	desks   []*ear // of the area, by rule
}

// leading is a path or slice that a finding about an area is about, and the rule whose evidence says so.
type leading struct {
	Key  signal.Key
	Rule string
}

type lead struct {
	bank   *bank
	series *series
	key    *evidence.Key
	gain   float64
}

// fuse puts together what is proven about a subject: averages of what depends on each other, products of what does not.
func (f *fuser) fuse(d *Detector, s subject, minute int64, gainOf func(*proof, int64) float64) fused {
	out := fused{subject: s}
	var telemetry []evidence.Source
	for i, b := range d.banks {
		if !f.counts(b.rule) {
			continue
		}
		var halves [2]evidence.Source
		for _, x := range d.unitOf(s).series {
			if p := x.proof(i); p != nil {
				gain := gainOf(p, minute)
				halves[half(x)].Add(p.key.Share(), gain)
				if gain >= leadGain {
					out.leads = append(out.leads, lead{b, x, p.key, gain})
				}
			}
		}
		telemetry = append(telemetry, halves[:]...)
	}
	var tickets []evidence.Source
	for _, e := range d.hears() {
		if x := e.by[s.Area]; s.Area != "" && x != nil && f.counts(e.rule) {
			var one evidence.Source
			one.Add(x.key.Share(), x.key.Gain(minute))
			tickets = append(tickets, one)
			out.desks = append(out.desks, x)
		}
	}
	a, failing := evidence.Mean(telemetry...)
	b, written := evidence.Mean(tickets...)
	switch share := f.share(s); {
	case failing && written:
		out.score = evidence.Fuse(share, f.lags, a, b)
	default:
		out.score = evidence.Decades(share, a+b)
	}
	out.trim()
	return out
}

// trim keeps the paths that have proven most; of a path and its slices the one that has.
func (x *fused) trim() {
	slices.SortStableFunc(x.leads, func(a, b lead) int {
		return cmp.Or(cmp.Compare(b.gain, a.gain), compareSeries(a.series, b.series))
	})
	var kept []lead
	for _, l := range x.leads {
		if len(kept) < maxLeads && !slices.ContainsFunc(kept, func(o lead) bool { return o.series.key.Path == l.series.key.Path }) {
			kept = append(kept, l)
		}
	}
	x.leads = kept
}

// impact is how much of what is enough is beyond what is tolerated, in requests and in accounts together.
func (f *fuser) impact(x *fused) (parts float64) {
	for _, l := range x.leads {
		parts += max(0, l.key.Excess().Beyond) / float64(f.params.MinExcess)
	}
	accounts := 0.0
	for _, e := range x.desks {
		accounts = max(accounts, e.key.Excess().Beyond)
	}
	return parts + accounts/float64(f.params.MinAccounts)
}

func (f *fuser) judge(d *Detector, s subject, t int64) (v verdict, ok bool) {
	v.key = incident.FindingKey{Rule: f.rule.Alert, Area: s.Area, Service: s.Service}
	active := f.rule.active[v.key]
	// What it is at most is quickly told, and it grows with each gain. Mostly that is far below.
	if active == nil && f.fuse(d, s, minuteOf(t-1), (*proof).gainAtMost).score < -0.001 {
		return v, false
	}
	x := f.fuse(d, s, minuteOf(t-1), (*proof).gain)
	over := x.score >= 0
	if !over && active == nil || active != nil && d.silent(active.Leads, t) {
		return v, false
	}
	v.abnormal, v.value = over && f.impact(&x) >= 1, x.score
	if len(x.leads) > 0 {
		e := x.leads[0].key.Excess()
		v.requests, v.failures = e.N, e.F
	}
	v.stream = signal.Requests
	if len(x.leads) == 0 {
		v.stream = signal.Tickets
	}
	for _, l := range x.leads {
		v.leads = append(v.leads, leading{l.series.key, l.bank.rule.Alert})
	}
	v.accounts = func() signal.Sketch { return x.accounts(d, t) }
	v.explain = x.sentence
	v.table = x.table
	return v, v.abnormal || active != nil
}

// silent tells that none of the paths that a finding is about says anything any more.
func (d *Detector) silent(leads []leading, t int64) bool {
	for i := range leads {
		if flow := d.paths.by[signal.Key{Path: leads[i].Key.Path}]; flow != nil && !flow.missing(t) {
			return false
		}
	}
	return len(leads) > 0
}

func (x *fused) accounts(d *Detector, t int64) (s signal.Sketch) {
	for _, l := range x.leads {
		s.Merge(l.series.accountsOf(t-int64(l.key.Excess().Minutes)*60/bucketSeconds, t))
	}
	for _, e := range x.desks {
		from := timeOf(t).Add(-time.Duration(e.key.Excess().Minutes) * time.Minute)
		s.Merge(accounts(d.desk[x.subject.Area].within(from, timeOf(t))))
	}
	return s
}
