package respond

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// providers are a pager with PagerDuty's semantics and a channel with Slack's, which lose answers and refuse at will.
type providers struct {
	rnd     *rand.Rand
	bad     bool
	open    map[string]bool
	opened  map[string]int
	pages   []time.Time // new alerts, summaries apart
	roots   map[string]int
	state   map[string]incident.State
	replies map[string]int
}

func (f *providers) send(now time.Time, s Step) (Receipt, *SendError) {
	d, id := s.Delivery, s.Incident
	lost := false
	if f.bad {
		switch f.rnd.IntN(4) {
		case 0:
			return Receipt{}, &SendError{Class: Retry, Reason: ReasonServer, Err: errors.New("500"), Unknown: true}
		case 1:
			return Receipt{}, &SendError{Class: RateLimited, Reason: ReasonRateLimited, After: 7 * time.Second, Err: errors.New("429")}
		case 2:
			lost = true
		}
	}
	switch {
	case s.Place == "pager" && (d.Action == ActionOpen || d.Action == ActionRaise):
		if !f.open[id] {
			f.open[id] = true
			f.opened[id]++
			if d.Notice.Summary == nil {
				f.pages = append(f.pages, now)
			}
		}
	case s.Place == "pager" && d.Action == ActionClose:
		f.open[id] = false
	case s.Place == "chat" && d.Action == ActionOpen:
		if !d.Uncertain || f.roots[id] == 0 { // the sender searches first
			f.roots[id]++
		}
		f.state[id] = d.Notice.Incident.State
	case s.Place == "chat" && d.Action == ActionNote:
		for k, n := range d.Notes {
			key := fmt.Sprintf("%s/%d", id, n.Sequence)
			last := fmt.Sprintf("%s/%d", id, d.Notes[len(d.Notes)-1].Sequence)
			if d.Uncertain && k == 0 && f.replies[last] > 0 {
				break
			}
			f.replies[key]++
		}
	case s.Place == "chat":
		f.state[id] = d.Notice.Incident.State
	}
	if lost {
		return Receipt{}, &SendError{Class: Retry, Reason: ReasonTimeout, Err: errors.New("lost"), Unknown: true}
	}
	return Receipt{Key: d.Key}, nil
}

// TestRandomLives puts incidents, broken providers, kills, lag, silences and mutes together by chance and holds the loop to its promises:
// what is open and may page is open at the pager, what is over is closed there, few pages in five minutes, one
// first message, each change told once, the channel shows the last state.
func TestRandomLives(t *testing.T) {
	for seed := range uint64(25) {
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { randomLife(t, seed) }) {
			break
		}
	}
}

func randomLife(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 7))
	f := &providers{rnd: rnd, open: map[string]bool{}, opened: map[string]int{}, roots: map[string]int{}, state: map[string]incident.State{}, replies: map[string]int{}}
	cfg := testConfig(t)
	places := testPlaces(cfg)
	p := NewPlanner(cfg, places, Settings{})
	log, stored := &MemoryLog{}, map[string][]byte{}
	now, tick, cursor := testStart, uint64(0), Cursor{}
	var lag time.Duration
	incidents := map[string]*incident.Incident{}
	save := func() {
		for k, v := range p.Dirty() {
			if v == nil {
				delete(stored, k)
			} else {
				stored[k] = v
			}
		}
	}
	turn := func(kill bool) {
		events, next, _, _ := log.After(t.Context(), cursor, 1000)
		for _, e := range events {
			p.Observe(e, true)
		}
		p.SetHead(Head{Tick: tick, To: now.Add(-lag), Clock: now})
		p.Plan(now)
		save()
		if !p.Behind() {
			cursor = next
		}
		for _, pl := range places {
			for range 20 {
				s, ok, _ := p.Take(pl.ID, now)
				if !ok {
					break
				}
				save()
				receipt, err := f.send(now, s)
				if kill && rnd.IntN(3) == 0 {
					break // after sending, before writing it down
				}
				p.Done(s, receipt, err, now)
				save()
			}
		}
		if kill {
			saved := cursor
			p = NewPlanner(cfg, places, Settings{})
			values := map[string][]byte{}
			for k, v := range stored {
				values[k] = v
			}
			p.Restore(values, now)
			picture, _ := log.Open(t.Context(), now.Add(-24*time.Hour))
			for _, e := range picture {
				p.Observe(e, false)
			}
			cursor = saved
		}
	}
	emit := func(id string, typ incident.EventType, change func(*incident.Incident)) {
		i := incidents[id]
		change(i)
		i.Sequence++
		tick++
		log.Append(incident.Event{Incident: id, Sequence: i.Sequence, At: now.Add(-lag), Clock: now, Tick: tick, Type: typ, After: *i})
	}
	for range 400 {
		now = now.Add(time.Duration(rnd.IntN(30)) * time.Second)
		id := fmt.Sprintf("i%d", rnd.IntN(6))
		i := incidents[id]
		switch rnd.IntN(12) {
		case 0:
			f.bad = !f.bad
		case 1:
			lag = []time.Duration{0, 0, time.Hour}[rnd.IntN(3)]
		case 2, 3:
			if i == nil {
				incidents[id] = &incident.Incident{ID: id}
				emit(id, incident.EventDeclared, func(i *incident.Incident) {
					i.State, i.Page, i.DeclaredAt, i.Severity = incident.Declared, true, now, incident.Severity(rnd.IntN(3))
				})
			}
		case 4, 5:
			if i != nil {
				emit(id, incident.EventSeverity, func(i *incident.Incident) { i.Severity = incident.Severity(rnd.IntN(3)) })
			}
		case 6:
			if i != nil && i.State.Open() {
				emit(id, incident.EventAcknowledged, func(i *incident.Incident) { i.State, i.AcknowledgedAt = incident.Acknowledged, now })
			}
		case 7:
			if i != nil && i.State.Open() {
				emit(id, incident.EventResolved, func(i *incident.Incident) { i.State, i.ResolvedAt = incident.Resolved, now })
			}
		case 8:
			if i != nil && !i.State.Open() {
				emit(id, incident.EventReopened, func(i *incident.Incident) { i.State = incident.Declared })
			}
		case 9:
			if i != nil {
				emit(id, incident.EventMuted, func(i *incident.Incident) { i.Muted = []string{"", "maintenance"}[rnd.IntN(2)] })
			}
		}
		turn(rnd.IntN(15) == 0)
	}
	settle := func() {
		f.bad, lag = false, 0
		for range 60 {
			now = now.Add(20 * time.Second)
			turn(false)
		}
	}
	settle()
	told := func(id string) bool {
		if f.open[id] {
			return true
		}
		for _, r := range p.byPlace["pager"] {
			if slices.Contains(r.Members, id) && f.open[r.Incident] {
				return true
			}
		}
		return false
	}
	for id, i := range incidents {
		if wakes(*i) && !told(id) {
			for _, r := range p.byPlace["pager"] {
				t.Logf("%s want %+v got %+v joined %q members %v uncertain %v step %s closed %s next %s now %s", r.Incident, r.Want, r.Got, r.Joined, r.Members, r.Uncertain, r.Step, r.ClosedAt, r.NextAt, now)
			}
			t.Errorf("%s is %s and nobody has been told", id, i.State)
		}
		if !i.State.Open() && f.open[id] {
			t.Errorf("%s is %s and open at the pager", id, i.State)
		}
	}
	for id, i := range incidents {
		if i.State.Open() {
			emit(id, incident.EventResolved, func(i *incident.Incident) { i.State, i.ResolvedAt = incident.Resolved, now })
		}
	}
	settle()
	for id, open := range f.open {
		if open {
			t.Errorf("%s is open at the pager after all is over", id)
		}
	}
	for id, n := range f.roots {
		if n != 1 {
			t.Errorf("%s has %d first messages", id, n)
		}
		if incidents[id] != nil && f.state[id] != incident.Resolved {
			t.Errorf("the channel shows %s as %s", id, f.state[id])
		}
	}
	for key, n := range f.replies {
		if n != 1 {
			t.Errorf("%s was told %d times", key, n)
		}
	}
	for k := range f.pages {
		if k >= 4 && f.pages[k].Sub(f.pages[k-4]) < 3*time.Minute {
			t.Errorf("five pages within %s", f.pages[k].Sub(f.pages[k-4]))
		}
	}
}
