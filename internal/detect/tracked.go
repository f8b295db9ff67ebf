package detect

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// maxMembers bounds the findings of one incident; past it, ended ones make room.
const maxMembers = 2000

// linger is how long a member that has ended still draws what is near it.
const linger = 10 * time.Minute

// member is a finding in an incident.
type member struct {
	incident.Attached
	Active bool    // firing or unknown
	Peak   float64 `json:",omitempty"` // the worst value
	// Of a resource: when its climb began, and whether it ran out.
	Trend time.Time `json:",omitzero"`
	Full  bool      `json:",omitempty"`
	Leads []leading `json:",omitempty"` // the paths that a finding about an area is about
}

func (m *member) live(now time.Time) bool {
	return m.Active || now.Sub(m.Finding.EndedAt) <= linger
}

// tracked is an incident with what the detector must remember of it.
type tracked struct {
	Inc      incident.Incident
	Members  []member // in order of joining
	Paths    []pathTrack
	Desk     []deskTrack
	Ready    time.Time // since when the evidence suffices to declare; zero while it does not
	Declared string    // the rule that declared it
	Labels   map[string]string
	Served   time.Time // since when telemetry and resources have been quiet
	Quiet    time.Time // since when all has
	Closed   time.Time
	ByPerson bool // a person said that it is no incident
	Accounts signal.Sketch
	Wide     bool
	Cause    string // what the title last said of the resource behind it
	// What was last reported or worked out, and when.
	Reported   incident.Impact
	ReportedAt time.Time
	RankedAt   time.Time
	Suspects   []incident.Suspect
	Scope      []incident.ScopeSlice

	// Within one step:
	joined   []incident.Attached
	ended    []incident.Finding
	warned   []incident.Warning
	absorbed []string
	into     string
	why      string
}

// pathTrack is what one path has suffered since it joined.
type pathTrack struct {
	Key       signal.Key
	From      time.Time
	Counted   int64 // buckets before this one are counted
	Active    bool
	Slow      string // the latency rule by which it is counted; "" counts failures
	Refused   string `json:",omitempty"` // the rule whose bad outcomes are counted, where they are others than failures
	Requests  uint64
	Failures  uint64
	PeakShare float64
	PeakAt    time.Time
	Base      float64
}

// deskTrack is how many tickets of one area belong to the incident.
type deskTrack struct {
	Area  string
	From  time.Time // contacts from here on belong to it
	Seen  int64     // those that came up to this step are counted
	Count int
}

func (d *Detector) incident(id string) *tracked {
	if id == "" {
		return nil
	}
	for _, x := range d.inc {
		if x.Inc.ID == id {
			return x
		}
	}
	return nil
}

// open starts a suspected incident. Its id follows from what began it, so that every replay gives the same.
func (d *Detector) open(f *finding, now time.Time, wide bool) *tracked {
	sum := sha256.Sum256(fmt.Appendf(nil, "%+v\x00%d", f.key, f.F.ActiveAt.UnixMilli()))
	id := fmt.Sprintf("%s-%s-%s", d.cfg.IDPrefix, f.F.ActiveAt.UTC().Format("20060102"), hex.EncodeToString(sum[:3]))
	for n := 4; d.incident(id) != nil; n++ {
		id = id[:len(id)-2*min(n-1, 3)] + hex.EncodeToString(sum[:n])
	}
	x := &tracked{Wide: wide, Inc: incident.Incident{
		ID: id, StartedAt: f.F.ActiveAt, FirstFindingAt: now, Severity: incident.Minor,
		Areas: []string{}, Services: []string{}, Resources: []string{}, Paths: []incident.PathImpact{},
		Scope: []incident.ScopeSlice{}, Suspects: []incident.Suspect{}, Findings: []incident.Attached{},
	}}
	d.inc = append(d.inc, x)
	return x
}

// ours tells whether a finding that fires again goes back to where it was.
func (x *tracked) ours(f *finding, now time.Time) bool {
	if x.Inc.State == incident.Merged || !x.Inc.State.Open() && !x.ByPerson && now.Sub(x.Closed) > afterlife {
		return false
	}
	i := x.index(f.key)
	if i < 0 {
		return false
	}
	m := &x.Members[i]
	m.Finding, m.Active = trimmed(f), true
	x.joined = append(x.joined, m.Attached)
	return true
}

func (x *tracked) index(k incident.FindingKey) int {
	return slices.IndexFunc(x.Members, func(m member) bool { return m.Finding.Key == k })
}

// trimmed is a finding as an incident keeps it: its accounts are in the incident's own sketch.
func trimmed(f *finding) incident.Finding {
	c := f.F
	c.Key.Rule, c.Accounts = f.F.Rule, nil
	return c
}

func (x *tracked) attach(f *finding, now time.Time, why string) {
	f.Incident = x.Inc.ID
	a := incident.Attached{Finding: trimmed(f), At: now, Why: why}
	if i := x.index(f.key); i >= 0 {
		a.At, a.Why = x.Members[i].At, x.Members[i].Why
		x.Members[i].Attached, x.Members[i].Active, x.Members[i].Leads = a, true, f.Leads
	} else {
		if len(x.Members) >= maxMembers {
			if i := slices.IndexFunc(x.Members, func(m member) bool { return !m.Active }); i >= 0 {
				x.Members = slices.Delete(x.Members, i, i+1)
			}
		}
		x.Members = append(x.Members, member{Attached: a, Active: true, Leads: f.Leads})
	}
	if f.F.ActiveAt.Before(x.Inc.StartedAt) {
		x.Inc.StartedAt = f.F.ActiveAt
	}
	x.joined = append(x.joined, a)
}

// update takes over a change of a member's state.
func (x *tracked) update(f *finding, now time.Time) {
	i := x.index(f.key)
	if i < 0 {
		return
	}
	m := &x.Members[i]
	was := m.Active
	m.Finding = trimmed(f)
	m.Active = f.F.State == incident.Firing || f.F.State == incident.Unknown
	if was && !m.Active {
		x.ended = append(x.ended, m.Finding)
	}
}

// absorb takes over all that a suspected incident had.
func (x *tracked) absorb(d *Detector, o *tracked, now time.Time, why string) {
	for _, m := range o.Members {
		if x.index(m.Finding.Key) >= 0 {
			continue
		}
		m.Why = why
		x.Members = append(x.Members, m)
	}
	for _, r := range d.rules {
		for _, f := range r.active {
			if f.Incident == o.Inc.ID {
				f.Incident = x.Inc.ID
			}
		}
	}
	if o.Inc.StartedAt.Before(x.Inc.StartedAt) {
		x.Inc.StartedAt = o.Inc.StartedAt
	}
	if o.Inc.FirstFindingAt.Before(x.Inc.FirstFindingAt) {
		x.Inc.FirstFindingAt = o.Inc.FirstFindingAt
	}
	for _, p := range o.Paths {
		if !slices.ContainsFunc(x.Paths, func(q pathTrack) bool { return q.Key == p.Key }) {
			x.Paths = append(x.Paths, p)
		}
	}
	x.Accounts.Merge(o.Accounts)
	x.joined = append(x.joined, o.joined...)
	x.warned = append(x.warned, o.warned...)
	x.absorbed = append(x.absorbed, o.Inc.ID)
	o.into, o.why, o.Closed = x.Inc.ID, why, now
	o.joined, o.warned, o.ended = nil, nil, nil
}

// finding gives the live state behind a member; nil once it has been forgotten.
func (d *Detector) finding(k incident.FindingKey) *finding {
	for _, r := range d.rules {
		if r.Alert == k.Rule {
			return r.active[k]
		}
	}
	return nil
}

// news tells whether this step brought a subject (a service, a resource, an area) that was not in trouble here, a
// warning, or another incident. Further findings on the same subject join without an entry, so that the log stays readable.
func (x *tracked) news() bool {
	if len(x.absorbed) > 0 || len(x.warned) > 0 || !x.Inc.State.Open() {
		return true
	}
	for i := range x.joined {
		k := &x.joined[i].Finding.Key
		others := 0
		for j := range x.Members {
			m := &x.Members[j]
			if !slices.ContainsFunc(x.joined, func(a incident.Attached) bool { return a.Finding.Key == m.Finding.Key }) && sameSubject(k, &m.Finding.Key) {
				others++
			}
		}
		if others == 0 && !x.said(k) || x.joined[i].Finding.Kind == "saturation" {
			return true
		}
	}
	return len(x.joined) > 0 && x.Inc.State == incident.Mitigated
}

// said tells whether an earlier entry has named the subject.
func (x *tracked) said(k *incident.FindingKey) bool {
	return slices.ContainsFunc(x.Inc.Findings, func(a incident.Attached) bool { return sameSubject(k, &a.Finding.Key) })
}

func sameSubject(a, b *incident.FindingKey) bool {
	return a.Service == b.Service && a.Resource == b.Resource && (a.Service != "" || a.Resource != "" || a.Area == b.Area)
}

// gone are the findings that ended in this step and left their subject without any other.
func (x *tracked) gone() (out []incident.Finding) {
	for i := range x.ended {
		k := &x.ended[i].Key
		if !slices.ContainsFunc(x.Members, func(m member) bool { return m.Active && sameSubject(k, &m.Finding.Key) }) {
			out = append(out, x.ended[i])
		}
	}
	return out
}
