package detect

import (
	"maps"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// route is where the cells of one key are counted.
type route struct {
	key    signal.Key
	path   *series
	slices []*series
	leaf   *leaf // where its cells went last
	last   int64 // newest bucket that went along it
	at     int   // its place in the order of the last step
}

// routes remember the way of each key that was seen in the last hours. Ticks bring mostly the same keys in the same order, so the next key is
// looked for where it came last time, before it is looked up.
type routes struct {
	by         map[signal.Key]*route
	trail, was []*route // of this step and of the step before
	next       int      // in was
}

// begin starts a step.
func (rs *routes) begin() {
	rs.was, rs.trail, rs.next = rs.trail, rs.was[:0], 0
}

// of finds or makes the route of a key.
func (rs *routes) of(d *Detector, k *signal.Key) *route {
	var r *route
	if rs.next < len(rs.was) && rs.was[rs.next].key == *k {
		r = rs.was[rs.next]
	} else {
		r = rs.by[*k]
	}
	if r == nil || r.stale() {
		r = d.newRoute(*k)
		if rs.by == nil {
			rs.by = map[signal.Key]*route{}
		}
		rs.by[*k] = r
	}
	rs.next, r.at = r.at+1, len(rs.trail)
	rs.trail = append(rs.trail, r)
	return r
}

// stale tells that a series has been dropped since.
func (r *route) stale() bool {
	for _, s := range r.slices {
		if s.gone {
			return true
		}
	}
	return r.path.gone
}

func (d *Detector) newRoute(k signal.Key) *route {
	area := func() string { return d.cat.AreaOf(k.Service) }
	r := &route{key: k, path: d.paths.get(signal.Key{Path: k.Path}, area)}
	if k.Attributes == "" {
		return r
	}
	for i, names := range d.slices {
		if n, ok := narrow(k, names); ok {
			s := d.slice.get(n, area)
			s.set = i
			r.slices = append(r.slices, s)
		}
	}
	return r
}

// forget drops routes that nothing has gone along for an hour.
func (rs *routes) forget(t int64) {
	maps.DeleteFunc(rs.by, func(_ signal.Key, r *route) bool { return r.last < t-keepBuckets })
	rs.trail, rs.was = nil, nil
}
