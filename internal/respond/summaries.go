package respond

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// maxLines bounds what a summary lists; the rest is counted.
const maxLines = 10

const (
	stormPrefix = "storm-"
	latePrefix  = "missed-"
)

// page wakes a place for an incident: with a page of its own, or, when there have been too many just now, as a line of
// the one summary page.
func (p *Planner) page(r *Record, pl *Place, t *tracked, now time.Time) {
	r.Want = Said{Status: Opened, Severity: t.event.After.Severity, Sequence: t.event.Sequence}
	r.TakenAt = t.event.After.AcknowledgedAt
	p.touch(r, true)
	if p.mayPageSingly(pl, now) {
		p.countPage(r, now)
		r.Joined = ""
		return
	}
	s := p.storm(pl, r, t, now)
	r.Joined, r.Got = s.Incident, r.Want
}

// rise pages again for an incident that became worse.
func (p *Planner) rise(r *Record, pl *Place, t *tracked, now time.Time) {
	if r.Joined != "" { // what was a line in a summary deserves a page of its own, if there is room
		r.Got = Said{}
		p.page(r, pl, t, now)
		return
	}
	r.Want.Severity, r.Want.Sequence = t.event.After.Severity, t.event.Sequence
	if r.Got.Status == None {
		return // the page that is still on its way says it
	}
	if p.mayPageSingly(pl, now) {
		p.countPage(r, now)
		return
	}
	p.storm(pl, r, t, now)
	r.Got.Severity = r.Want.Severity
}

func (p *Planner) mayPageSingly(pl *Place, now time.Time) bool {
	recent := slices.DeleteFunc(p.pages[pl.ID], func(at time.Time) bool { return now.Sub(at) >= p.set.PagesWindow.Std() })
	p.pages[pl.ID] = recent
	return len(recent) < p.set.PagesMax
}

func (p *Planner) countPage(r *Record, now time.Time) {
	p.pages[r.Place] = append(p.pages[r.Place], now)
	r.Pages = append(r.Pages, now)
	if over := len(r.Pages) - 4; over > 0 {
		r.Pages = slices.Clone(r.Pages[over:])
	}
}

// stormGap is the least time between two summaries that wake a place.
const stormGap = time.Minute

// storm tells a summary page for several incidents from other records.
func (r *Record) storm() bool {
	return len(r.Members) > 0 && strings.HasPrefix(r.Incident, stormPrefix)
}

// storm adds an incident to the place's newest open summary, or begins one. What has been said already wakes nobody a
// second time: providers fold what comes under a key that is open, and somebody may have acknowledged it. So what is worse
// than the summary said, and all that is critical, gets another summary under a key of its own, of which there is one a
// minute at most; the rest is told under the old key.
func (p *Planner) storm(pl *Place, r *Record, t *tracked, now time.Time) *Record {
	var s *Record
	for _, o := range p.byPlace[pl.ID] {
		if o.storm() && o.Want.Status == Opened && (s == nil || cmp.Or(o.CreatedAt.Compare(s.CreatedAt), strings.Compare(o.Incident, s.Incident)) > 0) {
			s = o
		}
	}
	i := t.event.After
	if s == nil || s.Got.Status != None && (i.Severity == incident.Critical || i.Severity > s.Got.Severity) {
		last := s
		id := stormPrefix + i.ID
		for n := 2; p.records[recordKey(id, pl.ID)] != nil; n++ {
			id = fmt.Sprintf("%s%s-%d", stormPrefix, i.ID, n) // it has begun a summary before
		}
		s = p.add(id, pl, r.Receiver, now)
		s.Want = Said{Status: Opened, Severity: i.Severity}
		if last != nil {
			s.NotBefore = cmp.Or(last.EditedAt, last.CreatedAt).Add(stormGap)
		}
	}
	if !slices.Contains(s.Members, i.ID) {
		s.Members = append(s.Members, i.ID)
	}
	s.Want.Severity = max(s.Want.Severity, i.Severity)
	p.describeStorm(s, now)
	return s
}

func (p *Planner) describeStorm(s *Record, now time.Time) {
	sum := &Summary{Title: fmt.Sprintf("%d more incidents within minutes", len(s.Members))}
	if len(s.Members) == 1 {
		sum.Title = "1 more incident within minutes"
	}
	for _, id := range s.Members {
		t := p.incidents[id]
		if t == nil {
			continue
		}
		if len(sum.Lines) == maxLines {
			sum.More++
			continue
		}
		sum.Lines = append(sum.Lines, cut(Headline(t.notice), 200))
	}
	if len(sum.Lines) > 0 {
		sum.Title += ": " + sum.Lines[0]
	}
	state := incident.Declared
	if s.Want.Status == Closed {
		state = incident.Resolved
	}
	s.Notice = Notice{At: now, Summary: sum, Incident: incident.Incident{
		ID: s.Incident, Title: sum.Title, State: state, Severity: s.Want.Severity, StartedAt: s.CreatedAt, Page: true}}
	s.Want.Sequence++
	p.touch(s, true)
}

// planStorms closes summaries when nothing that they stand for is open any more.
func (p *Planner) planStorms(now time.Time) {
	for _, s := range p.records {
		if len(s.Members) == 0 || s.Want.Status != Opened {
			continue
		}
		open := slices.ContainsFunc(s.Members, func(id string) bool {
			t := p.incidents[id]
			return t != nil && t.event.After.State.Open()
		})
		if !open {
			s.Want.Status, s.ClosedAt = Closed, now
			p.describeStorm(s, now)
		}
	}
}

// planLate tells, once and without waking anybody, of incidents that were over before they could be told: after
// a backlog or an outage of our own.
func (p *Planner) planLate(late []*tracked, now time.Time) {
	if len(late) == 0 {
		return
	}
	slices.SortFunc(late, func(a, b *tracked) int { return a.event.After.DeclaredAt.Compare(b.event.After.DeclaredAt) })
	byPlace := map[string][]*tracked{}
	receiver := map[string]string{}
	var order []string
	for _, t := range late {
		p.told[t.event.Incident] = true
		for _, m := range p.cfg.Match(Labels(t.event.After), now) {
			for _, pl := range p.receivers[m.Receiver] {
				if pl.Pages {
					continue
				}
				if _, ok := byPlace[pl.ID]; !ok {
					order = append(order, pl.ID)
					receiver[pl.ID] = m.Receiver
				}
				if n := len(byPlace[pl.ID]); n == 0 || byPlace[pl.ID][n-1] != t {
					byPlace[pl.ID] = append(byPlace[pl.ID], t)
				}
			}
		}
	}
	for _, id := range order {
		p.addLate(byPlace[id], p.places[id], receiver[id], now)
	}
}

func (p *Planner) addLate(late []*tracked, pl *Place, receiver string, now time.Time) {
	first := late[0].event
	id := latePrefix + first.Incident
	if p.records[recordKey(id, pl.ID)] != nil {
		return
	}
	sum := &Summary{Title: fmt.Sprintf("%d incidents came and went before they could be told; nobody was paged", len(late))}
	if len(late) == 1 {
		sum.Title = "1 incident came and went before it could be told; nobody was paged"
	}
	r := p.add(id, pl, receiver, now)
	worst := incident.Minor
	for _, t := range late {
		i := t.event.After
		worst = max(worst, i.Severity)
		r.Members = append(r.Members, i.ID)
		if len(sum.Lines) == maxLines {
			sum.More++
			continue
		}
		sum.Lines = append(sum.Lines, fmt.Sprintf("%s to %s UTC [%s] %s", i.StartedAt.UTC().Format("2006-01-02 15:04"),
			i.ResolvedAt.UTC().Format("15:04"), i.Severity, cut(Title(i), 150)))
	}
	r.ClosedAt = now
	r.Notice = Notice{At: first.At, Summary: sum, Incident: incident.Incident{ID: id, Title: sum.Title, State: incident.Resolved, Severity: worst}}
	r.Want = Said{Status: Closed, Severity: worst, Sequence: 1}
}
