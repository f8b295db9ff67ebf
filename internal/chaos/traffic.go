package chaos

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// The streams that a campaign writes.
const (
	spans   = "spans"
	gauges  = "gauges"
	tickets = "tickets"
)

var streams = []string{spans, gauges, tickets}

// tableOf tells the table of ClickHouse that each stream is stored in.
var tableOf = map[string]string{spans: "cells", gauges: "gauges", tickets: "tickets"}

// entry is what stands at one offset of a log: with it and the seed its record can be made again.
type entry struct {
	id uint64
	at int64 // Unix milliseconds of its making
}

const keySize = 16

func (e entry) key() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, keySize), e.id)
	return binary.BigEndian.AppendUint64(b, uint64(e.at))
}

func entryOf(key []byte) (entry, error) {
	if len(key) != keySize {
		return entry{}, fmt.Errorf("a record's key has %d bytes: it is none of the campaign's", len(key))
	}
	return entry{binary.BigEndian.Uint64(key), int64(binary.BigEndian.Uint64(key[8:]))}, nil
}

// generator makes records. What is at an entry is a function of the seed, so that truth needs no memory of what was made.
type generator struct {
	seed      uint64
	perRecord int // spans
}

// kind of record: most are ordinary.
type kind int

const (
	ordinary  kind = iota
	manyDays       // event times of the last days, all in one record
	replayed       // the record's own timestamp is days old, too
	fastClock      // some pods are minutes to hours ahead: their events are dead letters
	fasterYet      // more of them than dead letters are listed one by one
	ahead          // a little ahead, as is allowed
	garbage        // no spans at all
	empty
	nextYear // the record's own timestamp is far ahead
)

// odd are the kinds that are not ordinary, with how many records there are to one of them. They begin late, because the
// detector begins where the first records are.
var odd = []struct {
	kind
	in uint64
}{{manyDays, 97}, {replayed, 101}, {fastClock, 53}, {fasterYet, 211}, {ahead, 73}, {garbage, 149}, {empty, 307}, {nextYear, 401}}

const quietBeginning = 60 // records

func (e entry) kind() kind {
	if e.id < quietBeginning {
		return ordinary
	}
	for _, o := range odd {
		if e.id%o.in == o.in/2 {
			return o.kind
		}
	}
	return ordinary
}

func (g *generator) random(stream string, e entry) *rand.Rand {
	return rand.New(rand.NewPCG(g.seed, e.id<<8|uint64(stream[0])))
}

const day = 24 * time.Hour

// time is the record's own timestamp.
func (g *generator) time(r *rand.Rand, e entry) time.Time {
	at := time.UnixMilli(e.at).UTC()
	switch e.kind() {
	case replayed:
		return at.Add(-time.Duration(1+r.IntN(6)) * day).Add(-time.Duration(r.IntN(86_400_000)) * time.Millisecond)
	case nextYear:
		return at.Add(time.Duration(3+r.IntN(400)) * day)
	default:
	}
	return at
}

// span is one request as it is written and as it must be counted.
type span struct {
	key     int   // of paths
	end     int64 // Unix nanoseconds
	latency time.Duration
	outcome signal.Outcome
	account int
	reject  bool
}

// path is one key of the cells.
type path struct{ service, route, method, region string }

var paths = func() (all []path) {
	for _, s := range []string{"orders", "carts", "users", "search", "billing"} {
		for _, r := range []string{"", "/{id}", "/{id}/items", "/{id}/history", "/status"} {
			for _, m := range []string{"GET", "POST"} {
				for _, region := range []string{"eu-west-1", "us-east-1"} {
					all = append(all, path{s, "/api/" + s + r, m, region})
				}
			}
		}
	}
	return all
}()

func (p path) access() string {
	if p.method == "GET" {
		return "read"
	}
	return "write"
}

const listedMax = 16 // dead letters of one record that are listed one by one; one more stands for the others

// record walks through the spans of an entry; each is valid during the call only.
func (g *generator) record(e entry, each func(*span)) (at time.Time) {
	r, k := g.random(spans, e), e.kind()
	at = g.time(r, e)
	switch k {
	case garbage, empty, nextYear:
		return at
	default:
	}
	fast := map[kind]int{fastClock: 1 + r.IntN(listedMax), fasterYet: listedMax + 1 + r.IntN(40)}[k]
	var s span
	first := r.IntN(len(paths))
	for i := range g.perRecord {
		x := r.Uint64()
		s = span{key: (first + int(x&15)) % len(paths), account: int(x >> 4 & 1023), latency: time.Millisecond << (x >> 16 & 7)}
		switch y := x >> 20 & 1023; {
		case y < 5:
			s.outcome = signal.Failure
		case y < 25:
			s.outcome = signal.Rejected
		case y < 30:
			s.outcome = signal.Throttled
		default:
			s.outcome = signal.Success
		}
		end := at.Add(-time.Duration(x >> 40 % 3000 * uint64(time.Millisecond)))
		switch k {
		case manyDays:
			end = end.Add(-time.Duration(r.Int64N(int64(6*day + 20*time.Hour))))
		case ahead:
			end = end.Add(4 * time.Minute)
		default:
		}
		if i < fast {
			end, s.reject = end.Add(6*time.Minute+time.Duration(r.Int64N(int64(3*day)))), true
		}
		s.end = end.UnixNano()
		each(&s)
	}
	return at
}

// gauge values are the entry's id and the place in it, so that each is recognised.
const perGauges = 8

func gaugeValue(e entry, i int) uint64 { return e.id*perGauges + uint64(i) }

// gaugeTime tells when a measurement was, and whether that makes it a dead letter.
func (g *generator) gaugeTime(at time.Time, e entry, i int) (time.Time, bool) {
	if k := e.kind(); i == 0 && (k == fastClock || k == fasterYet) {
		return at.Add(time.Hour), true
	}
	return at.Add(-time.Duration(i) * time.Second), false
}

// ticketID repeats: half of the records are later events of a ticket that is known already.
func ticketID(e entry) string { return fmt.Sprintf("T-%d", e.id/2) }

// dead tells how many dead letters a record of a stream gives, and of how many rejections they tell.
func (g *generator) dead(stream string, e entry) (rows, rejected int) {
	switch k := e.kind(); {
	case k == garbage, k == empty, k == nextYear:
		return 1, 1
	case stream == spans && (k == fastClock || k == fasterYet):
		g.record(e, func(s *span) {
			if s.reject {
				rejected++
			}
		})
		return min(rejected, listedMax+1), rejected
	case stream == gauges && (k == fastClock || k == fasterYet):
		return 1, 1
	}
	return 0, 0
}

// events is how many are counted of a record.
func (g *generator) events(stream string, e entry) int {
	switch e.kind() {
	case garbage, empty, nextYear:
		return 0
	default:
	}
	_, rejected := g.dead(stream, e)
	return map[string]int{spans: g.perRecord, gauges: perGauges, tickets: 1}[stream] - rejected
}

// size is how many events a record holds, dead letters among them.
func (g *generator) size(stream string, e entry) int {
	switch e.kind() {
	case garbage, empty, nextYear:
		return 1
	default:
	}
	return map[string]int{spans: g.perRecord, gauges: perGauges, tickets: 1}[stream]
}
