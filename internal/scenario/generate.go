package scenario

import (
	"iter"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// Generator plays a scenario once, for one seed. It is not safe for concurrent use; it holds no resources and need not
// be closed.
type Generator struct {
	scenario *Scenario
	seed     int64
	now      time.Duration // since midnight: the start of the next slice
	curves   map[string]*curve
	shifts   map[string]time.Duration

	streams []*stream
	retries retryQueue
	draws   []draw   // of the current second
	order   []uint64 // their times and indexes, for sorting
	traces  tracer
	gauges  []*gauge
	tickets []signal.Ticket // the day's, not yet emitted
	changes []signal.Change
	truth   *Truth
}

// NewGenerator draws what belongs to the whole day and stands before its first slice.
func NewGenerator(s *Scenario, seed int64) *Generator {
	g := &Generator{scenario: s, seed: seed, now: time.Duration(s.file.Start), curves: map[string]*curve{}, shifts: map[string]time.Duration{}}
	g.drawShifts()
	for _, d := range s.file.Drivers {
		g.curves[d.Name] = &curve{name: d.Name, points: d.Points, shift: g.shifts[d.Shift]}
	}
	g.truth = newTruth(s, seed)
	g.makeStreams()
	g.makeGauges()
	g.changes = g.makeChanges()
	g.tickets = g.makeTickets()
	g.traces = tracer{random: newRand(seed, "trace ids")}
	return g
}

// Generate plays the scenario from beginning to end.
func (s *Scenario) Generate(seed int64) iter.Seq[*Slice] {
	return func(yield func(*Slice) bool) {
		for g := NewGenerator(s, seed); ; {
			slice, ok := g.Next()
			if !ok || !yield(slice) {
				return
			}
		}
	}
}

// Next makes the next slice; false after the last one.
func (g *Generator) Next() (*Slice, bool) {
	end := time.Duration(g.scenario.file.End)
	if g.now >= end {
		return nil, false
	}
	from := g.now
	to := min(from.Truncate(SliceSize)+SliceSize, end)
	out := &Slice{From: g.at(from), To: g.at(to)}
	out.Requests = g.requests(from, to)
	out.Gauges = g.measure(from, to)
	out.Tickets, g.tickets = cut(g.tickets, out.To)
	out.Changes, g.changes = cut(g.changes, out.To)
	g.truth.add(out)
	g.now = to
	return out, true
}

// Truth is what was the case so far; it is complete after the last slice, and grows with each.
func (g *Generator) Truth() *Truth { return g.truth }

// at is the instant that is so long after the scenario's midnight.
func (g *Generator) at(d time.Duration) time.Time { return g.scenario.midnight.Add(d) }

func (g *Generator) drawShifts() {
	for name, by := range g.scenario.file.Shifts {
		r := newRand(g.seed, "shift "+name)
		g.shifts[name] = time.Duration((2*r.Float64() - 1) * float64(by)).Truncate(time.Second)
	}
}

// cut splits a list in order of time into what is before an instant and the rest.
func cut[E any, P interface {
	*E
	signal.Event
}](list []E, end time.Time) (before, rest []E) {
	n := 0
	for n < len(list) && P(&list[n]).At().Before(end) {
		n++
	}
	return list[:n:n], list[n:]
}
