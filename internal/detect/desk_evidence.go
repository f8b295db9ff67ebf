package detect

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect/evidence"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	// maxAreas bounds the areas that are told apart beside those of the catalogue: names come with tickets, and whoever sends them may send
	// anything.
	maxAreas = 1000
	// maxEars bounds the areas that one rule judges by evidence.
	maxEars = 2 * maxAreas
	// writesAgain is after how long without a word an account counts anew. One that writes all day counts once.
	writesAgain = int64(6 * time.Hour / signal.BucketSize)
	// maxHeard bounds the accounts that are remembered for an area.
	maxHeard = 20_000
	// ownSeason is how many tickets an area has to have had in an hour to weigh as much as that all areas keep the same hours.
	ownSeason = 100
	// silentBefore is how much silence an area is taken to have had before its first ticket, as far as the detector was there.
	silentBefore = 2 * 24 * 60
)

// ears is what one support rule that judges by evidence knows of the areas it selects.
type ears struct {
	rule   *compiled
	areas  []string
	model  evidence.Model
	budget float64 // false alarms a minute
	floor  float64
	places evidence.Shares
	season evidence.HourOfWeek // of all areas: when customers are awake
	by     map[string]*ear
	missed uint64 // minutes in which the stream was partial, since it was last whole
}

// ear is the evidence about one area.
type ear struct {
	key    *evidence.Key
	season evidence.HourOfWeek // its own, beside that of all
	place  int
	fresh  bool
	held   uint64 // accounts that wrote while the stream was partial
}

var _ recall = (*ears)(nil)

// newEars gives nil for a rule with a threshold.
func newEars(c *compiled) recall {
	p := c.Params.(*rule.Support)
	if p.FalsePages == (rule.Budget{}) {
		return nil
	}
	e := &ears{
		rule: c, areas: p.Areas, model: evidence.Arrivals(), budget: p.FalsePages.PerMinute(), floor: float64(p.MinExcess),
		by: map[string]*ear{},
	}
	e.model.Burst = int(p.Blips.Std().Minutes())
	return e
}

// hears lists the memories of the support rules that judge by evidence.
func (d *Detector) hears() (out []*ears) {
	for _, r := range d.rules {
		if e, ok := r.recall.(*ears); ok {
			out = append(out, e)
		}
	}
	return out
}

func (e *ears) selects(area string) bool { return rule.MatchesAny(e.areas, area) }

func (e *ears) share(place int) float64 { return e.budget * evidence.ShareOfArea(place) }

func (x *ear) seasons(e *ears) evidence.Season {
	return evidence.Within{Wide: &e.season, Own: &x.season}
}

// of finds or makes what is known of an area. That nobody wrote about it before is known, too.
func (e *ears) of(area string, began, minute int64) *ear {
	x := e.by[area]
	if x == nil && e.selects(area) && len(e.by) < maxEars {
		x = &ear{place: e.places.Take()}
		x.season.Prior = ownSeason
		born := max(began, minute-silentBefore)
		x.key = evidence.New(&e.model, e.share(x.place), born, x.seasons(e))
		for m := born; m < minute; m++ {
			x.key.Observe(m, 1, 0)
		}
		e.by[area] = x
	}
	return x
}

// newlyHeard tells whether a contact counts: an account counts once until it has been silent for a while.
func (a *area) newlyHeard(c *contact, step int64) bool {
	if !c.Known {
		return true
	}
	last, known := a.Heard[c.Who]
	if a.Heard == nil {
		a.Heard = map[uint64]int64{}
	}
	if known || len(a.Heard) < maxHeard {
		a.Heard[c.Who] = step
	}
	return !known || step-last > writesAgain
}

// count lets a contact prove something.
func (e *ears) count(d *Detector, area string, step int64) {
	minute := minuteOf(step - 1)
	x := e.of(area, minuteOf(d.began), minute)
	switch {
	case x == nil:
	case d.partial(signal.Tickets):
		x.held++
	default:
		x.key.Observe(minute, 0, 1)
		x.fresh = true
		d.touchArea(area)
	}
}

// listen begins a minute for each area: that nobody writes is evidence as well. While a part of the tickets is missing, silence
// says nothing, and what comes says too much once the rest comes, too: both wait until the stream is whole, and are then one long minute.
func (d *Detector) listen(t int64) {
	minute := minuteOf(t - 1)
	if minuteOf(t-2) == minute {
		return
	}
	all := d.hears()
	if len(all) == 0 {
		return
	}
	for _, e := range all {
		if d.partial(signal.Tickets) {
			e.missed++
			continue
		}
		for _, name := range sortedKeys(e.by) {
			x := e.by[name]
			x.key.Observe(minute, 1+e.missed, x.held)
			if x.held > 0 {
				x.held, x.fresh = 0, true
				d.touchArea(name)
			}
		}
		e.missed = 0
	}
	if minute%60 == 0 {
		for _, a := range d.desk {
			maps.DeleteFunc(a.Heard, func(_ uint64, last int64) bool { return t-last > writesAgain })
		}
	}
}

// evalSupportEvidence judges areas about which somebody wrote, and those with a finding. Evidence about others only fades.
func evalSupportEvidence(d *Detector, r *compiled, e *ears, t int64, yield func(verdict)) {
	for _, name := range sortedKeys(e.by) {
		x := e.by[name]
		if v, ok := e.judge(d, r, name, x, t); ok {
			yield(v)
		}
		x.fresh = false
	}
}

func (e *ears) judge(d *Detector, r *compiled, name string, x *ear, t int64) (v verdict, ok bool) {
	v.key.Rule, v.key.Area, v.stream = r.Alert, name, signal.Tickets
	active := r.active[v.key] != nil
	if !active && !x.fresh {
		return v, false
	}
	over := x.key.Score() >= 0
	if !over && !active {
		return v, false
	}
	b := x.key.Excess()
	from := timeOf(t).Add(-time.Duration(b.Minutes) * time.Minute)
	v.abnormal, v.value, v.requests = over && b.Beyond >= e.floor, float64(b.F), b.F
	v.accounts = func() signal.Sketch { return accounts(d.desk[name].within(from, timeOf(t))) }
	said := func() evidence.Explanation { return x.key.Explain(wroteAbout(name)) }
	v.explain = func() string { return said().Sentence }
	v.table = func() []incident.EvidenceRow { return rowsOf("", said().Rows) }
	return v, v.abnormal || active
}

func wroteAbout(area string) evidence.Words {
	return evidence.Words{Things: "accounts wrote about " + area, Bad: "wrote"}
}

// earsState is ears in a snapshot, areas by name.
type earsState struct {
	Season []byte
	Missed uint64 `json:",omitempty"`
	Areas  map[string]earState
}

type earState struct {
	Place  int
	Held   uint64 `json:",omitempty"`
	Fresh  bool   `json:",omitempty"`
	Key    []byte
	Season []byte
}

func (e *ears) save() ([]byte, error) {
	s := earsState{Missed: e.missed, Areas: map[string]earState{}}
	var err error
	if s.Season, err = e.season.AppendBinary(nil); err != nil {
		return nil, err
	}
	for name, x := range e.by {
		a := earState{Place: x.place, Held: x.held, Fresh: x.fresh}
		if a.Key, err = x.key.AppendBinary(nil); err != nil {
			return nil, err
		}
		if a.Season, err = x.season.AppendBinary(nil); err != nil {
			return nil, err
		}
		s.Areas[name] = a
	}
	return json.Marshal(s)
}

func (e *ears) load(data []byte) error {
	var s earsState
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	season, err := evidence.DecodeSeason(s.Season)
	if err != nil {
		return err
	}
	e.season, e.missed = *season, s.Missed
	for _, name := range sortedKeys(s.Areas) {
		a := s.Areas[name]
		if !e.selects(name) || len(e.by) >= maxEars {
			continue // the rule was edited
		}
		if a.Place < 0 || a.Place > maxPlaces {
			return fmt.Errorf("%s has place %d", name, a.Place)
		}
		x := &ear{place: a.Place, held: a.Held, fresh: a.Fresh}
		own, err := evidence.DecodeSeason(a.Season)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		x.season, x.season.Prior = *own, ownSeason
		if x.key, err = evidence.Decode(&e.model, x.seasons(e), a.Key); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		x.key.Rescale(e.share(x.place))
		e.places.Claim(x.place)
		e.by[name] = x
	}
	return nil
}
