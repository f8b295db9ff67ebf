package evidencebench

import (
	"math"

	"github.com/tocsin-project/tocsin/internal/detect/evidence"
)

// Example is one incident minute by minute, to be drawn.
type Example struct {
	Name    string
	Class   Class
	From    float64 // minutes before the start
	To      float64
	Minutes []Minute
	Fired   float64 // minutes after the start; +Inf is never
}

// Minute is what was seen by the end of one.
type Minute struct {
	At, Share, Tolerated, Evidence float64
}

const exampleSeed = 3000

// examples begin with what is no incident: a deploy that is over in three minutes.
var examples = []Example{
	{Name: "A deploy that fails 10% for three minutes: no page", Class: Class{volume: 300, rate: 0.003, share: 0.1, lasts: 3, within: 240}, From: 15, To: 30},
	{Name: "Everything fails at once", Class: Classes[2], From: 15, To: 30},
	{Name: "A write begins to fail, 40% of 20 a minute", Class: Classes[0], From: 15, To: 30},
	{Name: "A creep to 0.3% in two hours, usually 0.02%", Class: Classes[4], From: 15, To: 90},
}

func (e Example) run(m *evidence.Model) Example {
	one := *m
	one.Ceiling = 3 // as shipped
	g := newGrid(&one, []int{one.Burst})
	c := e.Class
	c.within = e.To
	x, h, start := newIncident(g, &Wheres[0], &c, exampleSeed)
	x.look = func(now float64, w *watcher, minute counts) {
		if now < -e.From || now > e.To {
			return
		}
		k := w.tocsin.keys[0]
		e.Minutes = append(e.Minutes, Minute{now, float64(minute.f) / math.Max(1, float64(minute.n)), k.Tolerated(), k.Score()})
	}
	x.run(h, start)
	e.Fired = x.trace.Delay(g.find(Setting{Tocsin, one.Burst, floors[floor30], 0}), evidenceLevels.zero())
	return e
}
