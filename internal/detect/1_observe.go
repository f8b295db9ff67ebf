package detect

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	// keepChanges is how long a finished change can still be a suspect.
	keepChanges = 24 * time.Hour
	// goneAfter is after how many buckets of silence a path, service or gauge is forgotten.
	goneAfter = 7 * 24 * keepBuckets
	// maxChanges bounds what is remembered of changes; the oldest go first.
	maxChanges = 5000
)

// pending are rows of buckets that have not ended yet. Each list is in order of time, then key.
type pending struct {
	Cells   []signal.Cell
	Gauges  []signal.Gauge
	Tickets []signal.Ticket
	Changes []signal.Change
	Alerts  []signal.Alert `json:",omitempty"`
}

// take puts a tick's rows among those that wait. The order makes the result independent of the order of arrival.
func (d *Detector) take(in *Inputs) {
	p := &d.pending
	p.Cells = insertSorted(p.Cells, in.Cells, func(a, b *signal.Cell) int {
		return cmp.Or(a.Bucket.Compare(b.Bucket), a.Key.Compare(b.Key))
	})
	p.Gauges = insertSorted(p.Gauges, sane(in.Gauges), func(a, b *signal.Gauge) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Metric, b.Metric),
			cmp.Compare(a.Attributes, b.Attributes), cmp.Compare(a.Value, b.Value))
	})
	p.Tickets = insertSorted(p.Tickets, in.Tickets, func(a, b *signal.Ticket) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.ID, b.ID))
	})
	p.Changes = insertSorted(p.Changes, in.Changes, func(a, b *signal.Change) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Phase, b.Phase))
	})
	p.Alerts = insertSorted(p.Alerts, in.Alerts, func(a, b *signal.Alert) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Fingerprint, b.Fingerprint), cmp.Compare(a.Status, b.Status))
	})
}

func insertSorted[T any](have, more []T, order func(a, b *T) int) []T {
	if len(more) == 0 {
		return have
	}
	sorted := len(have) == 0 || order(&have[len(have)-1], &more[0]) <= 0
	for i := 1; i < len(more) && sorted; i++ {
		sorted = order(&more[i-1], &more[i]) <= 0
	}
	switch {
	case sorted && len(have) == 0:
		return slices.Clip(more) // the caller's rows are not changed, and appending copies them
	case sorted:
		return append(have, more...)
	}
	have = append(slices.Clip(have), more...)
	slices.SortStableFunc(have, func(a, b T) int { return order(&a, &b) })
	return have
}

// oldest is the end of the bucket before the oldest waiting row.
func (p *pending) oldest() (int64, bool) {
	at, ok := int64(0), false
	see := func(t time.Time) {
		if b := bucketOf(t); !ok || b < at {
			at, ok = b, true
		}
	}
	if len(p.Cells) > 0 {
		see(p.Cells[0].Bucket)
	}
	if len(p.Gauges) > 0 {
		see(p.Gauges[0].Time)
	}
	if len(p.Tickets) > 0 {
		see(p.Tickets[0].Time)
	}
	if len(p.Changes) > 0 {
		see(p.Changes[0].Time)
	}
	// An alert's time is when it began, which may be long ago: it does not say how far back anything has to be judged.
	return at, ok
}

func (d *Detector) observe(t int64) {
	p, now := &d.pending, timeOf(t)
	d.routes.begin()
	n := 0
	for ; n < len(p.Cells) && bucketOf(p.Cells[n].Bucket) < t; n++ {
		d.observeCell(&p.Cells[n], t)
	}
	if p.Cells = p.Cells[n:]; len(p.Cells) == 0 {
		p.Cells = nil // a tick's rows need not be kept until the next
	}
	d.tally.service = ""
	for n = 0; n < len(p.Gauges) && p.Gauges[n].Time.Before(now); n++ {
		d.observeGauge(&p.Gauges[n])
	}
	if n > 0 {
		p.Gauges = p.Gauges[n:]
	}
	for n = 0; n < len(p.Tickets) && p.Tickets[n].Time.Before(now); n++ {
		d.observeTicket(&p.Tickets[n], t)
	}
	if n > 0 {
		p.Tickets = p.Tickets[n:]
	}
	for n = 0; n < len(p.Changes) && p.Changes[n].Time.Before(now); n++ {
		d.observeChange(&p.Changes[n])
	}
	if n > 0 {
		p.Changes = p.Changes[n:]
	}
	for n = 0; n < len(p.Alerts) && p.Alerts[n].Time.Before(now); n++ {
		d.observeAlert(&p.Alerts[n], t)
	}
	if n > 0 {
		p.Alerts = p.Alerts[n:]
	}
	if t%6 == 0 {
		d.tidy(t)
	}
}

func (d *Detector) observeCell(c *signal.Cell, t int64) {
	b, x := bucketOf(c.Bucket), &d.tally
	x.read(c, d.plan.above)
	r := d.routes.of(d, &c.Key)
	r.last = b
	s := r.path
	s.add(b, x, &d.plan)
	s.meet(b, x.accounts)
	r.leaf = s.addLeaf(b, c, r.leaf)
	d.prove(s, c, t)
	for _, m := range d.counters {
		m.count(s, b, c)
	}
	for _, s := range r.slices {
		s.add(b, x, &d.plan)
		d.prove(s, c, t)
	}
	if x.service != c.Key.Service || x.seen < b {
		x.service, x.seen = c.Key.Service, max(b, d.known[c.Key.Service])
		d.known[x.service] = x.seen
	}
}

// narrow keeps the named attributes of a key; a key without one of them is in no such slice.
func narrow(k signal.Key, names []string) (signal.Key, bool) {
	if len(names) == 0 {
		return k, false
	}
	attrs := make([]signal.Attr, 0, len(names))
	for _, n := range names {
		v := k.Attributes.Get(n)
		if v == "" {
			return k, false
		}
		attrs = append(attrs, signal.Attr{Name: n, Value: v})
	}
	return signal.Key{Path: k.Path, Attributes: signal.AttributesOf(attrs...)}, true
}

func (d *Detector) observeChange(c *signal.Change) {
	i := slices.IndexFunc(d.changes, func(x *change) bool { return x.ID == c.ID })
	if i < 0 {
		if len(d.changes) >= maxChanges {
			d.changes = slices.Delete(d.changes, 0, 1)
		}
		d.changes = append(d.changes, &change{ID: c.ID})
		i = len(d.changes) - 1
	}
	x := d.changes[i]
	x.Kind, x.Target, x.Title = cmp.Or(c.Kind, x.Kind), cmp.Or(c.Target, x.Target), cmp.Or(c.Title, x.Title)
	x.URL, x.Dose = cmp.Or(c.URL, x.URL), cmp.Or(c.Dose, x.Dose)
	switch c.Phase {
	case signal.Started:
		x.Started = c.Time
	case signal.Finished, signal.Aborted:
		x.Ended, x.Aborted = c.Time, c.Phase == signal.Aborted
	}
	if x.Started.IsZero() {
		x.Started = c.Time
	}
}

// tidy runs once a minute: what no rule, incident or suspect can need any more goes.
func (d *Detector) tidy(t int64) {
	now := timeOf(t)
	troubled := d.troubledPaths()
	for _, tb := range []*table{&d.paths, &d.slice} {
		for _, s := range tb.order {
			s.learn(t)
			s.trim(t)
			if len(s.leaves) > 0 {
				s.trimLeaves(minuteOf(t), troubled[s.key.Path])
			}
		}
	}
	// A slice that has not been seen for an hour is not missed: versions and hosts come and go. A path stays for a week.
	d.slice.drop(t-keepBuckets, d.unprove)
	d.paths.drop(t-goneAfter, d.unprove)
	d.gauges = slices.DeleteFunc(d.gauges, func(g *gauge) bool {
		g.trim(t)
		if g.Last >= t-goneAfter {
			return false
		}
		delete(d.byGauge, g.Key)
		return true
	})
	maps.DeleteFunc(d.known, func(_ string, last int64) bool { return last < t-goneAfter })
	if t%keepBuckets == 0 {
		d.forget()
		d.routes.forget(t)
	}
	for _, a := range d.desk {
		a.learn(now)
	}
	d.changes = slices.DeleteFunc(d.changes, func(c *change) bool {
		return !c.Ended.IsZero() && now.Sub(c.Ended) > keepChanges || now.Sub(c.Started) > 7*keepChanges
	})
}

func (t *table) drop(before int64, gone func(*series)) {
	t.order = slices.DeleteFunc(t.order, func(s *series) bool {
		old := s.last < before
		if old {
			s.gone = true
			t.version++
			delete(t.by, s.key)
			gone(s)
		}
		return old
	})
}
