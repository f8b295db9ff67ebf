package detect

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	bucketsAnHour = int64(time.Hour / signal.BucketSize)
	presenceHours = 15 * 24 // two weeks and a day, by hours
	hoursADay     = 24
	hoursAWeek    = 7 * 24
	// youngFactor: where the hour has no past, only the last hour speaks, and has to say more.
	youngFactor = 3
	// silentPart of all that have traffic now, and at least silentMany of them, falling silent together is a lack of data.
	silentPart = 0.5
	silentMany = 3
	maxPresent = 100_000
)

// telemetryResource is what a finding is about when nothing comes from anywhere.
const telemetryResource = "telemetry/requests"

// presences are what one rule of kind absence knows of its services or paths.
type presences struct {
	by map[signal.Path]*presence
	// All that are judged, as of a version of the table of paths.
	all   []quietOne
	asOf  int
	blind int64 // the newest step at which requests were missing
}

// presence is how much traffic one service or path has, by hour, and how long its pauses are.
type presence struct {
	last  int64   // newest bucket with requests
	rate  float64 // requests a bucket in the hour up to the newest
	gap   float64 // its longest pause in buckets, halved in a week
	hour  int64   // hours before this one are known
	born  int64
	hours [presenceHours]float32 // requests, by hour; negative where not known
	core1 remembered             // see core
	most1 remembered             // see most
}

// remembered is what was worked out for one hour, as long as no other hour becomes known.
type remembered struct {
	hour, asOf int64
	v          float64
	known      bool
}

// quietOne is a key with what is expected of it.
type quietOne struct {
	path     signal.Path
	p        *presence
	members  []*series
	expected float64 // requests since it fell silent
	rate     float64 // a bucket
	young    bool
}

func newPresences(*compiled) recall { return &presences{by: map[signal.Path]*presence{}} }

// evalAbsence judges each service or path that has a past. A count needs all of the data, so nothing is judged while any is missing.
func evalAbsence(d *Detector, r *compiled, t int64, yield func(verdict)) {
	p, ps := r.Params.(*rule.Absence), r.recall.(*presences)
	if d.partial(signal.Requests) {
		ps.blind = t
		return
	}
	least := buckets(p.SilentFor.Std())
	var keys []*quietOne
	busy, silent := 0, 0
	all := ps.gather(d, p)
	for i := range all {
		k := &all[i]
		k.p.see(k.members, t, ps.blind, true)
		if t-k.p.last > buckets(usualAfter) || k.p.last-k.p.born < bucketsAnHour {
			continue // that it is silent is how it is, or nothing is known of its pauses yet
		}
		k.expected, k.rate, k.young = k.p.expect(t)
		if k.rate*float64(least) >= p.Expected {
			busy++
			if gap := float64(t - 1 - k.p.last); gap >= float64(least)/2 && gap >= 2*k.p.gap {
				silent++
			}
		}
		keys = append(keys, k)
	}
	nearlyAll := silent >= silentMany && float64(silent) > silentPart*float64(busy)
	ps.yieldAll(r, nearlyAll, silent, busy, t, yield)
	if nearlyAll {
		return // what was found before is unknown now
	}
	for _, k := range keys {
		gap := t - 1 - k.p.last
		need := p.Expected
		if k.young {
			need *= youngFactor
		}
		abnormal := gap >= least && float64(gap) >= 2*k.p.gap && k.expected >= need
		if !abnormal && len(r.active) == 0 {
			continue
		}
		key := incident.FindingKey{Rule: r.Alert, Service: k.path.Service}
		if p.Per == "path" {
			key = pathKey(r.Alert, signal.Key{Path: k.path})
		}
		if !abnormal && r.active[key] == nil {
			continue
		}
		yield(verdict{
			key: key, abnormal: abnormal, value: spanOf(gap).Seconds(), stream: signal.Requests,
			explain: func() string { return explainAbsence(&key, k, gap, abnormal) },
		})
	}
}

// yieldAll reports that nearly everything is silent.
func (ps *presences) yieldAll(r *compiled, all bool, silent, busy int, t int64, yield func(verdict)) {
	key := incident.FindingKey{Rule: r.Alert, Resource: telemetryResource}
	if !all && r.active[key] == nil {
		return
	}
	yield(verdict{
		key: key, abnormal: all, value: float64(silent), stream: signal.Requests,
		explain: func() string {
			if !all {
				return "requests come again"
			}
			return fmt.Sprintf("%d of %d that have traffic at this hour are silent: telemetry is missing, or all is down; nothing about them is known", silent, busy)
		},
	})
}

func explainAbsence(key *incident.FindingKey, k *quietOne, gap int64, abnormal bool) string {
	name := key.Service
	if key.Operation != "" {
		name += " " + key.Operation + " " + key.Access + "s"
	}
	if !abnormal {
		return name + " has traffic again"
	}
	return fmt.Sprintf("%s silent for %s; about %.0f requests were expected by what is usual at this hour", name, shortDuration(spanOf(gap)), k.expected)
}

// gather unites the series of each key, in order.
func (ps *presences) gather(d *Detector, p *rule.Absence) []quietOne {
	if ps.all == nil || ps.asOf != d.paths.version {
		ps.all, ps.asOf = ps.unite(d, p), d.paths.version
	}
	return ps.all
}

func (ps *presences) unite(d *Detector, p *rule.Absence) (out []quietOne) {
	for _, s := range d.paths.order {
		if !p.Match.Matches(s.key.Path, s.area) {
			continue
		}
		path := s.key.Path
		if p.Per == "service" {
			path = signal.Path{Service: path.Service}
		}
		if n := len(out); n > 0 && out[n-1].path == path {
			out[n-1].members = append(out[n-1].members, s)
			continue
		}
		x := ps.present(path)
		if x == nil {
			continue
		}
		out = append(out, quietOne{path: path, p: x, members: []*series{s}})
	}
	return out
}

// present finds or makes what is known of a key; nil past the limit.
func (ps *presences) present(path signal.Path) *presence {
	x := ps.by[path]
	if x == nil && len(ps.by) < maxPresent {
		x = &presence{}
		for i := range x.hours {
			x.hours[i] = -1
		}
		ps.by[path] = x
	}
	return x
}

// see takes in what came since the last evaluation.
// Without rate nobody asks how much traffic there is now.
func (p *presence) see(members []*series, t, blind int64, rate bool) {
	last := p.last
	for _, s := range members {
		last = max(last, s.last)
	}
	if p.last == 0 {
		p.last, p.born, p.hour = last, last, floorDiv(last, bucketsAnHour)+1 // the hour in which it began is not whole
	}
	// An hour's pause is no habit yet: what is found once must not hide the next time. Nor is one in which nobody was looking.
	if gap := float64(last - p.last); gap > p.gap && gap < float64(bucketsAnHour) && p.last >= blind {
		p.gap = gap
	}
	if rate && (last > p.last || p.rate == 0) {
		p.rate = 0
		for _, s := range members {
			n := s.hour
			if s.last != last {
				n = s.total(last+1-bucketsAnHour, last+1)
			}
			p.rate += float64(n) / float64(min(bucketsAnHour, last+1-p.born))
		}
	}
	p.last = last
	for now := floorDiv(t, bucketsAnHour); p.hour < now; p.hour++ {
		var n uint64
		if p.hour < now-1 {
			*p.at(p.hour) = -1 // too long ago to be counted
			continue
		}
		for _, s := range members {
			n += s.total(p.hour*bucketsAnHour, (p.hour+1)*bucketsAnHour)
		}
		*p.at(p.hour) = float32(n)
		p.gap *= math.Pow(0.5, 1.0/hoursAWeek)
	}
}

// total counts requests of any outcome.
func (s *series) total(from, to int64) (n uint64) {
	c := s.sum(from, to, -1)
	for _, v := range c.outcomes {
		n += v
	}
	return n
}

func (p *presence) at(hour int64) *float32 {
	return &p.hours[((hour%presenceHours)+presenceHours)%presenceHours]
}

// expect is how many requests should have come since the last, and how many come in a bucket at this hour.
func (p *presence) expect(t int64) (since, rate float64, young bool) {
	usual := func(hour int64) float64 {
		v, known := p.core(hour)
		switch {
		case !known && weekend(hour) != weekend(floorDiv(p.last, bucketsAnHour)):
			return 0 // it stopped on a working day, and what a weekend has of it nobody knows yet, or the other way round
		case !known:
			young = true
			return p.rate
		}
		return v / float64(bucketsAnHour)
	}
	for b := p.last + 1; b < t; {
		hour := floorDiv(b, bucketsAnHour)
		end := min(t, (hour+1)*bucketsAnHour)
		since += usual(hour) * float64(end-b)
		b = end
	}
	return since, usual(floorDiv(t-1, bucketsAnHour)), young
}

// core is what an hour can be counted on to have: no more than the hours beside it. When in its first and last hour a service
// has traffic nobody knows, and what comes once a night, or ends at five past six, is not silent for the rest of the hour.
func (p *presence) core(hour int64) (v float64, known bool) {
	if r := &p.core1; r.hour == hour && r.asOf == p.hour {
		return r.v, r.known
	}
	v = math.Inf(1)
	for h := hour - 1; h <= hour+1; h++ {
		if u, ok := p.usual(h); ok {
			v, known = min(v, u), true
		}
	}
	p.core1 = remembered{hour, p.hour, v, known}
	return v, known
}

// weekend tells Saturdays and Sundays, by UTC: only in a key's first week does it matter, and there a night more or less does not.
func weekend(hour int64) bool {
	day := ((floorDiv(hour, hoursADay)+4)%7 + 7) % 7 // the epoch began on a Thursday, Sunday is 0
	return day == 0 || day == 6
}

// usual is the least that an hour of the week had in the last two weeks, or before a week is over that hour on the last two
// days, where they are days of the same kind: what rests at weekends is not silent on its first Saturday.
func (p *presence) usual(hour int64) (v float64, known bool) {
	for _, back := range [][2]int64{{hoursAWeek, 2 * hoursAWeek}, {hoursADay, 2 * hoursADay}} {
		if few, _, ok := p.range2(hour, back); ok {
			return few, true
		}
	}
	return 0, false
}

// most is the other end of that: it takes both weeks and days, since one quiet week makes no rule.
func (p *presence) most(hour int64) (v float64, known bool) {
	if r := &p.most1; r.hour == hour && r.asOf == p.hour {
		return r.v, r.known
	}
	for _, back := range [][2]int64{{hoursAWeek, 2 * hoursAWeek}, {hoursADay, 2 * hoursADay}} {
		if _, many, ok := p.range2(hour, back); ok {
			v, known = max(v, many), true
		}
	}
	p.most1 = remembered{hour, p.hour, v, known}
	return v, known
}

// range2 is the least and the most of two hours of the past.
func (p *presence) range2(hour int64, back [2]int64) (few, many float64, known bool) {
	few = math.Inf(1)
	for _, b := range back {
		if h := hour - b; b%hoursAWeek != 0 && weekend(h) != weekend(hour) {
			continue
		} else if h < p.hour && h > p.hour-presenceHours && h >= floorDiv(p.born, bucketsAnHour) && *p.at(h) >= 0 {
			few, many, known = min(few, float64(*p.at(h))), max(many, float64(*p.at(h))), true
		}
	}
	return few, many, known
}

func (ps *presences) forget(d *Detector) {
	alive := map[signal.Path]bool{}
	for _, s := range d.paths.order {
		alive[s.key.Path], alive[signal.Path{Service: s.key.Service}] = true, true
	}
	for k := range ps.by {
		if !alive[k] {
			delete(ps.by, k)
			ps.all = nil
		}
	}
}

func (ps *presences) save() ([]byte, error) {
	var w packer
	w.uint(uint64(len(ps.by)))
	for _, k := range slices.SortedFunc(maps.Keys(ps.by), signal.Path.Compare) {
		p := ps.by[k]
		w.key(signal.Key{Path: k})
		w.int(p.last)
		w.float(p.rate)
		w.float(p.gap)
		w.int(p.hour)
		w.int(p.born)
		for _, v := range p.hours {
			w.int(int64(v)) // counts, whole by nature
		}
	}
	w.int(ps.blind)
	return w.b, nil
}

func (ps *presences) load(data []byte) error {
	r := unpacker{b: data}
	for range r.len() {
		k, p := r.key(), &presence{}
		p.last, p.rate, p.gap, p.hour, p.born = r.int(), r.float(), r.float(), r.int(), r.int()
		for i := range p.hours {
			p.hours[i] = float32(r.int())
		}
		ps.by[k.Path] = p
	}
	if len(r.b) > 0 { // what was written before this was kept has seen all
		ps.blind = r.int()
	}
	return r.err
}
