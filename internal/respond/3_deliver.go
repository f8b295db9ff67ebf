package respond

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

// gate holds back a whole place: its pace, its rate limit, its being down.
type gate struct {
	until    time.Time
	failures int
}

// Step is work handed to a place's worker, with what it will have said when it succeeds.
type Step struct {
	Record   string // key of the record
	Place    string
	Incident string
	Receiver string
	Said     Said
	Delivery Delivery

	bare *SendError // why the full message was refused, where a bare one went out
}

// wakes tells messages that make a pager sound. A summary that grows does not: it is told under the key that is open.
func (d *Delivery) wakes() bool {
	return d.Action == ActionOpen || d.Action == ActionRaise && d.Notice.Summary == nil
}

// Restore takes the records that a store kept. What was in flight when the process ended is uncertain now. Recent
// closes of paging places are sent once more, because a late open of the process before us could have undone them.
func (p *Planner) Restore(values map[string][]byte, now time.Time) (unreadable []string) {
	for key, value := range values {
		if key == cursorKey {
			continue
		}
		r := &Record{}
		if err := json.Unmarshal(value, r); err != nil || r.key() != key {
			unreadable = append(unreadable, key)
			continue
		}
		if r.InFlight {
			r.InFlight, r.Uncertain = false, r.Uncertain || r.Step == ActionOpen || r.Step == ActionClose
			r.NextAt = time.Time{}
		}
		if pl := p.places[r.Place]; pl != nil && pl.Pages && r.Joined == "" && r.Want.Status == Closed && r.Got.Status == Closed &&
			now.Sub(r.ClosedAt) < resendCloses {
			r.Got.Status, r.Uncertain = Opened, true
			r.step(ActionClose, now)
			r.NextAt = now.Add(p.set.TakeoverDelay.Std())
		}
		p.index(r)
		p.pages[r.Place] = append(p.pages[r.Place], r.Pages...)
		if len(r.Members) > 0 && r.Incident[:min(len(r.Incident), len(latePrefix))] == latePrefix {
			for _, id := range r.Members {
				p.told[id] = true
			}
		}
	}
	slices.Sort(unreadable)
	return unreadable
}

// Take gives the most urgent step of a place that is due, or when to ask again; a zero time means when something
// changes. The record counts as in flight until Done.
func (p *Planner) Take(place string, now time.Time) (Step, bool, time.Time) {
	pl := p.places[place]
	if pl == nil {
		return Step{}, false, time.Time{}
	}
	g := p.gate(place)
	var best *Record
	var wake time.Time
	later := func(t time.Time) {
		if wake.IsZero() || t.Before(wake) {
			wake = t
		}
	}
	for _, r := range p.byPlace[place] {
		a := r.next(pl)
		if a == "" || r.InFlight || p.Behind() && (a == ActionNote || a == ActionUpdate) {
			continue
		}
		if r.Step == a && r.Permanent && (r.Failure == ReasonRefused || r.Failure == ReasonTooLarge || r.Failure == ReasonInternal) && r.Want.Sequence != r.Got.Sequence && r.Notice.At.After(r.Since) {
			r.Step = "" // new content may pass
		}
		r.step(a, now)
		due := r.NextAt
		if a == ActionUpdate && r.Want.Status == r.Got.Status && r.Want.Severity == r.Got.Severity {
			if soon := r.EditedAt.Add(cmp.Or(r.interval, p.set.EditInterval.Std())); soon.After(due) {
				due = soon
			}
		}
		if end := p.heldUntil(r, a, now); end.After(due) {
			due = end
		}
		if r.storm() {
			if soon := r.EditedAt.Add(stormGap); a == ActionRaise && soon.After(due) {
				due = soon
			}
			if a == ActionOpen && r.NotBefore.After(due) {
				due = r.NotBefore
			}
		}
		if g.until.After(due) {
			due = g.until
		}
		if due.After(now) {
			later(due)
			continue
		}
		if best == nil || urgency(r, best) < 0 {
			best = r
		}
	}
	if best == nil {
		return Step{}, false, wake
	}
	if p.takeBack(best, pl, now) {
		return p.Take(place, now) // one step fewer, so this ends
	}
	best.InFlight = true
	best.Attempts++
	p.touch(best, true)
	d := Delivery{Action: best.Step, Key: best.Key, Since: best.Since, Notice: best.Notice, Dropped: best.Dropped}
	switch best.Step {
	case ActionOpen:
		d.Uncertain = best.Uncertain
	case ActionNote:
		d.Notes, d.Uncertain = best.batch(now)
		d.Since = best.BatchSince
	case ActionRaise, ActionUpdate, ActionAcknowledge, ActionClose: // they repeat harmlessly
	}
	return Step{Record: best.key(), Place: place, Incident: best.Incident, Receiver: best.Receiver, Said: best.Want, Delivery: d}, true, time.Time{}
}

func urgency(a, b *Record) int {
	return cmp.Or(
		cmp.Compare(slices.Index(order, a.Step), slices.Index(order, b.Step)),
		cmp.Compare(min(a.Attempts, 5), min(b.Attempts, 5)), // what keeps failing does not stand in the way of the rest
		cmp.Compare(b.Want.Severity, a.Want.Severity),
		a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Incident, b.Incident))
}

var order = []Action{ActionOpen, ActionRaise, ActionClose, ActionAcknowledge, ActionUpdate, ActionNote}

// takeBack undoes the decision of a page, or of a first message, that must no longer be sent. Once what holds it back is
// over, the next plan decides anew.
func (p *Planner) takeBack(r *Record, pl *Place, now time.Time) bool {
	if r.storm() {
		return p.takeBackStorm(r, now)
	}
	first := r.Step == ActionOpen && r.Got.Status == None
	again := pl.Pages && (r.Step == ActionRaise || r.Step == ActionOpen && r.Got.Status == Closed)
	if !first && !again || r.Uncertain || !p.withheld(r, now) {
		return false
	}
	if n := len(r.Pages); n > 0 {
		if i := slices.Index(p.pages[r.Place], r.Pages[n-1]); i >= 0 {
			p.pages[r.Place] = slices.Delete(p.pages[r.Place], i, i+1)
		}
		r.Pages = r.Pages[:n-1]
	}
	switch {
	case first:
		p.drop(r)
	case r.Step == ActionRaise:
		r.Want.Severity = r.Got.Severity
	default:
		r.Want.Status = Closed
	}
	p.touch(r, !first)
	r.step("", now)
	return true
}

// heldUntil is the end of the silence that holds a page back of which only the outbox knows, because the log has not been
// read since the start. Taking it back would lose it until the log can be read.
func (p *Planner) heldUntil(r *Record, a Action, now time.Time) (end time.Time) {
	if a != ActionOpen && a != ActionRaise || p.incidents[r.Incident] != nil || len(r.Members) > 0 || r.Uncertain || !r.Notice.Incident.State.Open() {
		return end
	}
	labels := Labels(r.Notice.Incident)
	for _, s := range p.silences {
		if s.Holds(labels, now) && s.EndsAt.After(end) {
			end = s.EndsAt
		}
	}
	return end
}

// takeBackStorm takes out of a summary that nobody has heard yet what must no longer be told, and drops it when nothing
// is left.
func (p *Planner) takeBackStorm(s *Record, now time.Time) bool {
	if s.Step != ActionOpen || s.Got.Status != None || s.Uncertain {
		return false
	}
	told := s.Members[:0:0]
	for _, id := range s.Members {
		r := p.records[recordKey(id, s.Place)]
		if r == nil || r.Joined != s.Incident || !p.withheld(r, now) {
			told = append(told, id)
			continue
		}
		p.drop(r)
	}
	if len(told) == len(s.Members) {
		return false
	}
	if s.Members = told; len(told) == 0 {
		p.drop(s)
		return true
	}
	p.describeStorm(s, now)
	return false
}

// withheld checks at the last moment whether a silence, a mute or an interval came between decision and sending.
func (p *Planner) withheld(r *Record, now time.Time) bool {
	t := p.incidents[r.Incident]
	if t == nil || !t.event.After.State.Open() {
		return false
	}
	labels := Labels(t.event.After)
	if p.silenced(labels, now) {
		return true
	}
	if pl := p.places[r.Place]; pl.Pages && !wakes(t.event.After) {
		return true
	}
	return !p.reaches(r, p.cfg.Match(labels, now))
}

// Done takes the outcome of a step.
func (p *Planner) Done(s Step, receipt Receipt, sendErr *SendError, now time.Time) {
	r := p.records[s.Record]
	if r == nil {
		return
	}
	r.InFlight = false
	p.touch(r, true)
	g, pl := p.gate(s.Place), p.places[s.Place]
	if sendErr != nil {
		p.failed(r, g, s.Delivery, sendErr, now)
		return
	}
	g.failures = 0
	if pl != nil {
		g.until = now.Add(pl.Pace)
	}
	if receipt.Key != "" {
		r.Key = receipt.Key
	}
	edits := pl != nil && pl.Edits
	switch a := s.Delivery.Action; {
	case a == ActionNote:
		last := uint64(0)
		if n := len(s.Delivery.Notes); n > 0 {
			last = s.Delivery.Notes[n-1].Sequence
		}
		r.Notes = slices.DeleteFunc(r.Notes, func(n Note) bool { return n.Sequence <= last })
		r.Dropped, r.Batch = max(0, r.Dropped-s.Delivery.Dropped), 0
	case edits:
		r.Got, r.EditedAt = s.Said, now
	case a == ActionOpen:
		r.Got = Said{Status: Opened, Severity: s.Said.Severity, Sequence: s.Said.Sequence}
	case a == ActionRaise:
		r.Got.Severity, r.Got.Sequence = s.Said.Severity, s.Said.Sequence
	case a == ActionAcknowledge:
		r.Got.Status = Acknowledged
	case a == ActionClose:
		r.Got.Status, r.Got.Sequence = Closed, s.Said.Sequence
	}
	if a := s.Delivery.Action; a == ActionOpen || a == ActionClose {
		r.Uncertain = false
	}
	if a := s.Delivery.Action; r.storm() && (a == ActionOpen || a == ActionRaise) {
		r.EditedAt = now
	}
	r.Step, r.Since, r.Attempts, r.NextAt, r.Failure, r.Permanent = "", time.Time{}, 0, time.Time{}, "", false
}

func (p *Planner) failed(r *Record, g *gate, d Delivery, e *SendError, now time.Time) {
	r.Failure = e.Reason
	switch {
	case d.Action == ActionOpen, d.Action == ActionClose:
		r.Uncertain = r.Uncertain || e.Unknown
	case d.Action == ActionNote && !e.Unknown && !d.Uncertain:
		r.Batch = 0 // it has not arrived for certain
	}
	r.Permanent = e.Class == Permanent
	switch e.Class {
	case Permanent:
		r.NextAt = now.Add(recheckPermanent)
	case RateLimited:
		wait := e.After
		if wait <= 0 {
			wait = p.backoff(r.Attempts)
		}
		g.until, r.NextAt = now.Add(wait), now.Add(wait)
	default:
		g.failures++
		r.NextAt = now.Add(max(e.After, p.backoff(r.Attempts)))
		g.until = now.Add(max(e.After, min(p.backoff(g.failures), p.set.RetryMax.Std()/2)))
	}
}

func (p *Planner) backoff(n int) time.Duration {
	d := p.set.RetryMin.Std()
	for range min(n-1, 20) {
		d *= 2
	}
	return min(d, p.set.RetryMax.Std())
}

func (p *Planner) gate(place string) *gate {
	g := p.gates[place]
	if g == nil {
		g = &gate{}
		p.gates[place] = g
	}
	return g
}

// Dirty gives the records that changed since the last call, marshalled with a higher revision; nil means forget.
func (p *Planner) Dirty() map[string][]byte {
	if len(p.dirty) == 0 {
		return nil
	}
	out := make(map[string][]byte, len(p.dirty))
	for key := range p.dirty {
		r := p.records[key]
		if r == nil {
			out[key] = nil
			continue
		}
		r.Revision++
		value, err := json.Marshal(r)
		if err != nil { // only numbers that JSON lacks can do this; the record without its text still closes what it opened
			bare := *r
			bare.Notice = Notice{}
			value, _ = json.Marshal(bare)
		}
		out[key] = value
	}
	clear(p.dirty)
	return out
}
