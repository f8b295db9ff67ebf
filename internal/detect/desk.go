package detect

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// unclassified is the area of tickets that no word of the catalogue matches. A burst of them is still a burst.
const unclassified = "unclassified"

// area is the help desk's recent past for one area.
type area struct {
	Tickets []contact `json:",omitempty"` // of the last hour and a half, by time
	// Usual are contacts by distinct accounts per hour: sums that halve in a day.
	Usual      float64   `json:",omitempty"`
	UsualHours float64   `json:",omitempty"`
	LearntTo   time.Time `json:",omitzero"`
	// QuietTo is the end of a burst: contacts up to then are not usual.
	QuietTo time.Time `json:",omitzero"`
	// Heard are the steps at which accounts last wrote, for the rules that judge by evidence.
	Heard map[uint64]int64 `json:",omitempty"`
}

// contact is one ticket as the detector counts it. Who is the account, or the ticket itself where none is known.
type contact struct {
	At      time.Time
	Who     uint64
	Known   bool   `json:",omitempty"` // Who is an account
	Service string `json:",omitempty"`
	Seen    int64  // the step at which it came, which may be late
}

func (d *Detector) observeTicket(t *signal.Ticket, step int64) {
	name := t.Area
	if name == "" && t.Service != "" {
		name = d.cat.AreaOf(t.Service)
	}
	if name == "" {
		name = d.cat.Classify(t.Subject + "\n" + t.Text)
	}
	name = cmp.Or(name, unclassified)
	a := d.desk[name]
	if a == nil && len(d.desk) >= maxAreas && d.cat.Area(name) == nil {
		name = unclassified
		a = d.desk[name]
	}
	if a == nil {
		// That nobody wrote about it since the beginning is known, too.
		a = &area{LearntTo: timeOf(d.began)}
		a.learn(t.Time)
		d.desk[name] = a
	}
	c := contact{At: t.Time, Service: t.Service, Known: t.Account != "", Seen: step}
	if c.Known {
		c.Who = signal.HashAccount(t.Account)
	} else {
		c.Who = signal.HashAccount("ticket\x00" + t.ID)
	}
	i, _ := slices.BinarySearchFunc(a.Tickets, t.Time, func(c contact, t time.Time) int {
		if c.At.After(t) {
			return 1
		}
		return -1
	})
	a.Tickets = slices.Insert(a.Tickets, i, c)
	if all := d.hears(); len(all) > 0 && a.newlyHeard(&c, step) {
		for _, e := range all {
			e.count(d, name, step)
		}
	}
}

// within gives the contacts in (from, to].
func (a *area) within(from, to time.Time) []contact {
	lo := len(a.Tickets)
	for lo > 0 && a.Tickets[lo-1].At.After(from) {
		lo--
	}
	hi := len(a.Tickets)
	for hi > lo && a.Tickets[hi-1].At.After(to) {
		hi--
	}
	return a.Tickets[lo:hi]
}

// since gives the contacts from a time on that came after a step.
func (a *area) since(from time.Time, step int64) (out []contact) {
	for i := len(a.Tickets) - 1; i >= 0 && !a.Tickets[i].At.Before(from); i-- {
		if a.Tickets[i].Seen > step {
			out = append(out, a.Tickets[i])
		}
	}
	return out
}

// distinct counts who wrote: an account that writes thirty times counts once.
func distinct(cs []contact) uint64 {
	seen := make(map[uint64]struct{}, len(cs))
	for _, c := range cs {
		seen[c.Who] = struct{}{}
	}
	return uint64(len(seen))
}

// learn takes each quarter of an hour that is an hour old into what is usual.
func (a *area) learn(now time.Time) {
	const part = 15 * time.Minute
	for !a.LearntTo.Add(part + time.Hour).After(now) {
		from, to := a.LearntTo, a.LearntTo.Add(part)
		if from.Before(now.Add(-48*time.Hour)) && len(a.Tickets) == 0 {
			a.LearntTo = now.Add(-2 * time.Hour) // a long silence in one step
			decay := math.Pow(0.5, a.LearntTo.Sub(from).Hours()/24)
			a.Usual, a.UsualHours = a.Usual*decay, a.UsualHours*decay+24*(1-decay)
			continue
		}
		if !to.Before(a.QuietTo) {
			decay := math.Pow(0.5, part.Hours()/24)
			a.Usual = a.Usual*decay + float64(distinct(a.within(from, to)))
			a.UsualHours = a.UsualHours*decay + part.Hours()
		}
		a.LearntTo = to
	}
	keep := now.Add(-rule.MaxWindow - 30*time.Minute)
	n := 0
	for n < len(a.Tickets) && !a.Tickets[n].At.After(keep) {
		n++
	}
	a.Tickets = slices.Delete(a.Tickets, 0, n)
}

// expected is the usual number of accounts in a window. What is known of less than two hours is not divided by less.
func (a *area) expected(window time.Duration) float64 {
	return a.Usual / math.Max(a.UsualHours, 2) * window.Hours()
}
