package chaos

import (
	"fmt"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// cell is a path in a bucket of ten seconds.
type cell struct {
	bucket int64 // Unix seconds
	path   int
}

const outcomes = 4

// tally is what was counted, or what should have been: of one part of one log, or of all together.
type tally struct {
	cells  map[cell][outcomes]uint64
	values map[uint64]int // gauges by value
	ids    map[string]int // tickets by id, all their events
	dead   map[int64]int  // dead letters by offset
}

func newTally() *tally {
	return &tally{cells: map[cell][outcomes]uint64{}, values: map[uint64]int{}, ids: map[string]int{}, dead: map[int64]int{}}
}

const bucketSeconds = 10

func bucketOf(nanos int64) int64 {
	s := nanos / int64(time.Second)
	return s - s%bucketSeconds
}

func (t *tally) add(c cell, o signal.Outcome, n uint64) {
	of := t.cells[c]
	of[o] += n
	t.cells[c] = of
}

// count adds what an entry's record must give, its dead letters aside.
func (t *tally) count(g *generator, stream string, e entry) {
	switch e.kind() {
	case garbage, empty, nextYear:
		return
	default:
	}
	switch stream {
	case spans:
		g.record(e, func(s *span) {
			if !s.reject {
				t.add(cell{bucketOf(s.end), s.key}, s.outcome, 1)
			}
		})
	case gauges:
		at := g.time(g.random(stream, e), e)
		for i := range perGauges {
			if _, dead := g.gaugeTime(at, e, i); !dead {
				t.values[gaugeValue(e, i)]++
			}
		}
	case tickets:
		t.ids[ticketID(e)]++
	}
}

// difference is one thing that is stored too seldom or too often.
type difference struct {
	what      string
	want, got uint64
	cell      *cell // where it is one of the cells'
	outcome   int
}

func (d difference) missing() uint64 { return d.want - min(d.want, d.got) }
func (d difference) double() uint64  { return d.got - min(d.want, d.got) }

func (d difference) String() string {
	return fmt.Sprintf("%s: stored %d, must be %d", d.what, d.got, d.want)
}

func (c cell) String() string {
	p := paths[c.path]
	return fmt.Sprintf("%s %s %s %s %s", time.Unix(c.bucket, 0).UTC().Format("2006-01-02T15:04:05Z"), p.service, p.method, p.route, p.region)
}

// differences lists what other has less or more of than t. Each event counts once, whichever of its numbers is off.
func (t *tally) differences(other *tally) (out []difference) {
	for c, want := range t.cells {
		got := other.cells[c]
		for o := range want {
			if want[o] != got[o] {
				out = append(out, difference{what: fmt.Sprintf("%s of %s", signal.Outcome(o), c), want: want[o], got: got[o], cell: &c, outcome: o})
			}
		}
	}
	for c, got := range other.cells {
		if _, ok := t.cells[c]; ok {
			continue
		}
		for o := range got {
			if got[o] > 0 {
				out = append(out, difference{what: fmt.Sprintf("%s of %s", signal.Outcome(o), c), got: got[o], cell: &c, outcome: o})
			}
		}
	}
	out = append(out, unequal("gauge", t.values, other.values)...)
	out = append(out, unequal("ticket", t.ids, other.ids)...)
	return append(out, unequal("dead letter at offset", t.dead, other.dead)...)
}

func unequal[K comparable](what string, want, got map[K]int) (out []difference) {
	for k, n := range want {
		if got[k] != n {
			out = append(out, difference{what: fmt.Sprint(what, " ", k), want: uint64(n), got: uint64(got[k])})
		}
	}
	for k, n := range got {
		if _, ok := want[k]; !ok {
			out = append(out, difference{what: fmt.Sprint(what, " ", k), got: uint64(n)})
		}
	}
	return out
}
