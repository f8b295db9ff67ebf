package evidencebench

import (
	"fmt"
	"math"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// helpdesk is where customers of a quiet world write to: more by day and on workdays, in bursts after a mailing or an invoice,
// and now and then one account that writes and writes.
type helpdesk struct {
	r     random
	areas []*desk
	id    int
}

type desk struct {
	name    string
	volume  float64 // tickets a minute at the height of a workday
	wander  float64
	burst   float64 // times the usual
	burstTo int64
	angry   int // tickets that one account will still write
}

func newHelpdesk(seed uint64) *helpdesk {
	h := &helpdesk{r: newRandom(seed, 4)}
	for a := range services / inArea {
		h.areas = append(h.areas, &desk{name: areaName(a), volume: min(2, max(0.002, h.r.around(0.05, 1)))})
	}
	return h
}

func (h *helpdesk) minute(t int64, at time.Time) (out []signal.Ticket) {
	r := h.r
	for _, d := range h.areas {
		if t%10 == 0 {
			const rho = 0.985
			d.wander = rho*d.wander + math.Sqrt(1-rho*rho)*0.2*r.NormFloat64()
		}
		if r.Float64() < 2.0/(7*day) { // a mailing: for hours there is more to ask, beginning slowly
			d.burst, d.burstTo = r.between(1.5, 3), t+int64(r.between(60, 240))
		}
		if r.Float64() < 1.0/(7*day) {
			d.angry = 5 + r.IntN(30)
		}
		rate := d.volume * math.Exp(d.wander) * r.gamma(0.2) * (1 - 0.85*(1-math.Cos(2*math.Pi*(float64(t%day)-14*hour)/day))/2)
		if t/day%7 >= 5 {
			rate *= 0.3
		}
		if t < d.burstTo {
			rate *= d.burst
		}
		for range r.poisson(rate) {
			out = append(out, h.ticket(d.name, at, fmt.Sprintf("account-%d", r.IntN(50_000))))
		}
		if d.angry > 0 && r.Float64() < 0.5 {
			d.angry--
			out = append(out, h.ticket(d.name, at, "account-angry"))
		}
	}
	return out
}

func (h *helpdesk) ticket(area string, at time.Time, account string) signal.Ticket {
	h.id++
	return signal.Ticket{Time: at.Add(time.Duration(h.r.IntN(60)) * time.Second), ID: fmt.Sprintf("t-%d", h.id), Area: area, Account: account, Source: "helpdesk"}
}
