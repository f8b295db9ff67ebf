package respond

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/respond/route"
)

// Planner holds what is known of incidents and what each place was told, and computes what is left to say. It is
// pure: time is an argument, and the same calls give the same records. It is not safe for concurrent use; the loop
// guards it. Alertmanager reacts to alerts one by one; here everything is derived anew from state, so that the end of
// a silence, a restart, a reload and a provider that was down need no code of their own.
type Planner struct {
	cfg       *route.Config
	set       Settings
	places    map[string]*Place
	receivers map[string][]*Place
	silences  []Silence

	head      Head
	known     bool
	incidents map[string]*tracked
	records   map[string]*Record
	byPlace   map[string]map[string]*Record
	byID      map[string][]*Record
	pages     map[string][]time.Time // of each place, within the window
	told      map[string]bool        // incidents that a late summary named
	gates     map[string]*gate
	dirty     map[string]bool
	abandoned []*Record // closes that were given up since the loop last asked
}

type tracked struct {
	event     incident.Event
	notice    Notice
	firstSeen time.Time
	// seenOpen: a plan has seen it open, so whether it was told was a decision. Only what was over at first sight
	// belongs into a summary of what was missed.
	seenOpen bool
	fresh    bool // learnt from the log after the cursor, not from the picture taken at start
}

// NewPlanner makes a planner without memory.
func NewPlanner(cfg *route.Config, places []Place, set Settings) *Planner {
	p := &Planner{
		set: set.withDefaults(), incidents: map[string]*tracked{}, records: map[string]*Record{},
		byPlace: map[string]map[string]*Record{}, byID: map[string][]*Record{}, pages: map[string][]time.Time{},
		told: map[string]bool{}, gates: map[string]*gate{}, dirty: map[string]bool{},
	}
	p.SetRoutes(cfg, places)
	return p
}

// SetRoutes takes a new routes file. What was said stays said: only what differs is sent. A place that is gone from the
// file stays for as long as it has records: nothing new is said there, but what was opened is closed.
func (p *Planner) SetRoutes(cfg *route.Config, places []Place) {
	before := p.places
	p.cfg, p.places, p.receivers = cfg, map[string]*Place{}, map[string][]*Place{}
	for id, pl := range before {
		if len(p.byPlace[id]) > 0 {
			gone := *pl
			gone.Receivers = nil
			p.places[id] = &gone
		}
	}
	for i := range places {
		pl := &places[i]
		p.places[pl.ID] = pl
		for _, name := range pl.Receivers {
			p.receivers[name] = append(p.receivers[name], pl)
		}
	}
}

// SetSilences takes the silences in force from now on.
func (p *Planner) SetSilences(s []Silence) { p.silences = s }

// SetHead says how far the detector has come.
func (p *Planner) SetHead(h Head) { p.head, p.known = h, true }

// Behind tells whether event time is so far behind the clock that nothing new may be said.
func (p *Planner) Behind() bool { return p.known && p.head.Lag() > p.set.BehindAfter.Std() }

// Observe takes one event. fresh says that it comes from the log after the cursor, not from the picture at start.
func (p *Planner) Observe(e incident.Event, fresh bool) {
	t := p.incidents[e.Incident]
	if t == nil {
		t = &tracked{}
		p.incidents[e.Incident] = t
	}
	if text := noteText(e); fresh && text != "" {
		for _, r := range p.byID[e.Incident] {
			if before := r.Noted; r.Kind != "" {
				r.addNote(Note{Sequence: e.Sequence, At: e.At, Type: e.Type, By: e.By, Text: text})
				p.touch(r, r.Noted != before)
			}
		}
	}
	t.fresh = t.fresh || fresh
	if e.Sequence > t.event.Sequence || t.event.Incident == "" {
		t.event, t.notice = e, NewNotice(e)
	}
}

// Plan brings every record up to what should be said by now.
func (p *Planner) Plan(now time.Time) {
	if !p.known || p.Behind() {
		return
	}
	var late []*tracked
	for _, t := range p.worstFirst() {
		if t.firstSeen.IsZero() {
			t.firstSeen = now
		}
		p.planIncident(t, now)
		i := t.event.After
		if i.State.Open() {
			t.seenOpen = true
		} else if t.fresh && !t.seenOpen && !i.DeclaredAt.IsZero() && len(p.byID[i.ID]) == 0 && !p.told[i.ID] && i.Labels["drill"] == "" {
			late = append(late, t)
		}
	}
	p.planStorms(now)
	p.planLate(late, now)
	p.forget(now)
}

func (p *Planner) worstFirst() []*tracked {
	all := slices.Collect(maps.Values(p.incidents))
	slices.SortFunc(all, func(a, b *tracked) int {
		x, y := a.event.After, b.event.After
		return cmp.Or(cmp.Compare(y.Severity, x.Severity), x.DeclaredAt.Compare(y.DeclaredAt), cmp.Compare(x.ID, y.ID))
	})
	return all
}

func (p *Planner) planIncident(t *tracked, now time.Time) {
	i := t.event.After
	labels := Labels(i)
	matches := p.cfg.Match(labels, now)
	silenced := p.silenced(labels, now)
	for _, r := range slices.Clone(p.byID[i.ID]) {
		p.advance(r, t, matches, silenced, now)
	}
	if !i.State.Open() {
		return
	}
	for _, m := range matches {
		if m.Quiet != "" || silenced {
			continue
		}
		for _, pl := range p.receivers[m.Receiver] {
			p.begin(t, m, pl, now)
		}
	}
	p.fallBack(t, now)
}

// begin makes the record of a place that is to hear of the incident for the first time.
func (p *Planner) begin(t *tracked, m route.Match, pl *Place, now time.Time) {
	i := t.event.After
	if p.records[recordKey(i.ID, pl.ID)] != nil {
		return
	}
	if pl.Pages && !wakes(i) || !pl.Pages && now.Sub(t.firstSeen) < m.GroupWait {
		return
	}
	r := p.add(i.ID, pl, m.Receiver, now)
	r.Noted, r.Notice, r.interval = t.event.Sequence, t.notice, m.GroupInterval
	if pl.Pages {
		p.page(r, pl, t, now)
		return
	}
	r.Want = Said{Status: statusOf(i), Severity: i.Severity, Sequence: t.event.Sequence}
}

// advance moves what a place should have been told on to the incident's present state.
func (p *Planner) advance(r *Record, t *tracked, matches []route.Match, silenced bool, now time.Time) {
	i, pl, before := t.event.After, p.places[r.Place], r.Want
	status := statusOf(i)
	if pl == nil { // its place is gone from the file: nothing can be sent there, but the truth is kept
		pl = &Place{ID: r.Place, Pages: r.Kind == "pagerduty"}
	}
	if r.interval == 0 {
		for _, m := range matches {
			if m.Receiver == r.Receiver {
				r.interval = m.GroupInterval
			}
		}
	}
	rose := i.Severity > r.Want.Severity
	allowed := !silenced && p.reaches(r, matches)
	switch {
	case status == Closed:
		if r.Want.Status != Closed {
			r.ClosedAt = now
		}
		r.Want.Status, r.Want.Sequence, r.Notice = Closed, t.event.Sequence, t.notice
		if r.Joined != "" {
			r.Got = r.Want
		}
	case !pl.Pages:
		r.Want = Said{Status: status, Severity: i.Severity, Sequence: t.event.Sequence}
		r.Notice = t.notice
	case r.Want.Status == Closed && r.Uncertain && r.Got.Status != None:
		// A close is under way and may have arrived: it is finished first, and what follows starts from what is certain.
	case r.Want.Status == Closed && r.Got.Status != Closed && r.Joined == "":
		// It came back before the close was sent: to the place it was never over.
		r.Want.Status = Opened
	case r.Want.Status == Closed:
		if quiet := now.Sub(r.ClosedAt) < p.set.FlapWindow.Std() && !rose; !quiet && allowed && wakes(i) {
			r.Notice = t.notice
			p.page(r, pl, t, now)
		}
	case rose && allowed && wakes(i):
		r.Notice = t.notice
		p.rise(r, pl, t, now)
	default:
		if status == Acknowledged && (r.TakenAt.IsZero() || i.AcknowledgedAt.After(r.TakenAt)) {
			r.Want.Status = Acknowledged
		}
		if r.Got.Status == None {
			r.Notice = t.notice // not sent yet: the newest text goes out
		}
	}
	p.touch(r, before != r.Want)
}

// wakes tells whether the incident may wake somebody who has not heard of it. When customers are served again,
// it is no longer worth it.
func wakes(i incident.Incident) bool {
	return i.Page && i.Muted == "" && (i.State == incident.Declared || i.State == incident.Acknowledged)
}

func statusOf(i incident.Incident) Status {
	switch {
	case !i.State.Open():
		return Closed
	case i.State == incident.Acknowledged, i.State == incident.Mitigated && !i.AcknowledgedAt.IsZero():
		return Acknowledged
	}
	return Opened
}

// Labels are what routes and silences see.
func Labels(i incident.Incident) map[string]string {
	labels := maps.Clone(i.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	fill := func(name string, values ...string) {
		if labels[name] == "" && len(values) > 0 && values[0] != "" {
			labels[name] = values[0]
		}
	}
	labels["severity"], labels["state"] = i.Severity.String(), i.State.String()
	labels["page"] = strconv.FormatBool(i.Page && i.Muted == "")
	fill("service", i.Services...)
	fill("area", i.Areas...)
	fill("resource", i.Resources...)
	return labels
}

func (p *Planner) silenced(labels map[string]string, now time.Time) bool {
	return slices.ContainsFunc(p.silences, func(s Silence) bool { return s.Holds(labels, now) })
}

// reaches tells whether a route that may speak now leads to the record's place.
func (p *Planner) reaches(r *Record, matches []route.Match) bool {
	for _, m := range matches {
		if m.Quiet != "" {
			continue
		}
		for _, pl := range p.receivers[m.Receiver] {
			if pl.ID == r.Place {
				return true
			}
		}
		if second := p.cfg.Receiver(m.Receiver); second != nil && second.Fallback.Value == r.Receiver {
			return true
		}
	}
	return false
}

// fallBack pages the second receiver where the first has not been reached for too long, or never will.
func (p *Planner) fallBack(t *tracked, now time.Time) {
	for _, r := range slices.Clone(p.byID[t.event.Incident]) {
		rcv := p.cfg.Receiver(r.Receiver)
		if pl := p.places[r.Place]; rcv == nil || rcv.Fallback.Value == "" || pl == nil || !pl.Pages {
			continue
		}
		stuck := r
		if r.Joined != "" {
			stuck = p.records[recordKey(r.Joined, r.Place)]
		}
		if stuck == nil || stuck.Step != ActionOpen && stuck.Step != ActionRaise || stuck.Failure == "" && p.gate(r.Place).failures == 0 {
			continue
		}
		if !stuck.Permanent && now.Sub(stuck.Since) < rcv.FallbackAfter.Std() {
			continue
		}
		for _, pl := range p.receivers[rcv.Fallback.Value] {
			p.begin(t, route.Match{Receiver: rcv.Fallback.Value}, pl, now)
		}
	}
}

func (p *Planner) add(id string, pl *Place, receiver string, now time.Time) *Record {
	r := &Record{Incident: id, Place: pl.ID, Receiver: receiver, Kind: pl.Kind, CreatedAt: now}
	if pl.Sender != nil {
		r.Key = pl.Sender.Key(id)
	}
	p.index(r)
	p.touch(r, true)
	return r
}

func (p *Planner) index(r *Record) {
	p.records[r.key()] = r
	if p.byPlace[r.Place] == nil {
		p.byPlace[r.Place] = map[string]*Record{}
	}
	p.byPlace[r.Place][r.Incident] = r
	p.byID[r.Incident] = append(p.byID[r.Incident], r)
}

func (p *Planner) drop(r *Record) {
	delete(p.records, r.key())
	delete(p.byPlace[r.Place], r.Incident)
	p.byID[r.Incident] = slices.DeleteFunc(p.byID[r.Incident], func(o *Record) bool { return o == r })
	if len(p.byID[r.Incident]) == 0 {
		delete(p.byID, r.Incident)
	}
	p.dirty[r.key()] = true
}

func (p *Planner) touch(r *Record, changed bool) {
	if changed {
		p.dirty[r.key()] = true
	}
}

// forget drops what has been over for the retention, so that memory and outbox stay bounded. A close that has not arrived
// is kept longer, and given up aloud.
func (p *Planner) forget(now time.Time) {
	old := func(t time.Time) bool { return !t.IsZero() && now.Sub(t) > p.set.Retention.Std() }
	for id, t := range p.incidents {
		if !t.event.After.State.Open() && old(t.firstSeen) {
			delete(p.incidents, id)
			delete(p.told, id)
		}
	}
	for _, r := range slices.Collect(maps.Values(p.records)) {
		over := cmp.Or(r.ClosedAt, r.CreatedAt)
		if r.Want.Status != Closed || !old(over) || r.InFlight {
			continue
		}
		if r.owesClose() {
			if now.Sub(over) <= keepUndelivered {
				continue
			}
			p.abandoned = append(p.abandoned, r)
		}
		p.drop(r)
	}
}
