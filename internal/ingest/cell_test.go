package ingest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// Whatever is counted, one by one or by shape, a row holds what a signal.Cell would: also numbers beyond 32 bits.
func TestRowsAreCells(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 5))
	key := signal.Key{Path: signal.Path{Service: "s", Operation: "o"}}
	counts := []uint64{0, 1, 1, 1, 3, math.MaxUint32 - 1, math.MaxUint32, math.MaxUint32 + 1, 1 << 40}
	for round := range 150 {
		b := &batch{index: map[cellID]int{}, places: make(places, 64), number: 1}
		shared := NewKey(key, 1)
		want := map[int64]*signal.Cell{}
		for i := range 1 + r.IntN(60) {
			req := &signal.Request{Time: time.Unix(1_000_000_000, r.Int64N(25e9)).UTC(), Path: key.Path, Outcome: signal.Outcome(r.IntN(int(signal.NumOutcomes))),
				Count: counts[r.IntN(len(counts))], Attempt: uint32(r.IntN(3)), Latency: time.Duration(r.Int64N(2e9)) - 1e9, Estimated: r.IntN(30) == 0,
				Account: fmt.Sprint("a", r.IntN(99)), TraceID: fmt.Sprint(round, i), Error: "e"}
			bucket := req.Time.Unix() / 10 * 10
			if want[bucket] == nil {
				want[bucket] = &signal.Cell{Bucket: time.Unix(bucket, 0).UTC(), Key: key}
			}
			want[bucket].Count(req)
			if req.Outcome == signal.Failure || r.IntN(3) == 0 {
				b.request(req)
				continue
			}
			s := NewShape(req, shared)
			b.shapes([]Counted{{Shape: &s, End: req.Time.UnixNano(), Latency: req.Latency}})
		}
		b.sortCells()
		if len(b.cells) != len(want) {
			t.Fatalf("%d rows, %d are right", len(b.cells), len(want))
		}
		for i := range b.cells {
			got := b.cells[i].Signal()
			again := NewCell(got)
			for _, c := range []signal.Cell{got, again.Signal()} {
				if diff := cmp.Diff(*want[got.Bucket.Unix()], c, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("round %d:\n%s", round, diff)
				}
			}
		}
	}
}

// Keys that share a place, and keys without one, are counted apart; memory that served a batch shows nothing of it.
func TestPlacesAreNoIdentity(t *testing.T) {
	b := &batch{index: map[cellID]int{}, places: make(places, 64)}
	for number := range uint32(3) {
		*b = batch{index: b.index, places: b.places, cells: b.cells[:0], spare: b.spare, number: number + 1}
		clear(b.index)
		for i := range 400 {
			s := NewShape(&signal.Request{Path: signal.Path{Service: fmt.Sprint("s", i)}, Count: 1}, NewKey(signal.Key{Path: signal.Path{Service: fmt.Sprint("s", i)}}, uint32(i%7)*maxPlaces/2))
			b.shapes([]Counted{{&s, 1e18, -1}, {&s, 1e18 + 10e9, 5}, {&s, 1e18, -1}})
			if i%50 == 0 {
				b.request(&signal.Request{Time: time.Unix(1e9, 0), Path: signal.Path{Service: fmt.Sprint("s", i)}, Outcome: signal.Failure, Account: fmt.Sprint(number), Latency: -1})
			}
		}
		if len(b.cells) != 800 || b.rests != 8 {
			t.Fatalf("%d rows", len(b.cells))
		}
		for i := range b.cells {
			c := b.cells[i].Signal()
			successes, slow := uint64(2), uint64(0)
			if c.Bucket.Unix() != 1e9 {
				successes, slow = 1, 1
			}
			failed := c.Outcomes[signal.Failure] == 1
			if c.Outcomes[signal.Success] != successes || c.Latency.Total() != slow || len(c.Accounts) != len(c.Samples) || failed != (len(c.Samples) == 1) ||
				failed && c.Accounts[0] != signal.HashAccount(fmt.Sprint(number)) {
				t.Fatalf("%+v", c)
			}
		}
	}
}
