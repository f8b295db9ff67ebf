package detect

import (
	"math/rand/v2"
	"testing"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// A series answers for any window what adding up all of its rows would, whatever their size and order, and the sums that are kept as
// windows slide are those that would be made anew.
func TestSeriesAddsUp(t *testing.T) {
	pl := &plan{columns: columnsFor(2), windows: []int{1, 6, 30, 90, 360}, settles: true, bad: [signal.NumOutcomes]bool{signal.Failure: true}}
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		s, rows := &series{}, map[int64]*tally{}
		sum := func(from, to int64, of func(*tally) uint64) (n uint64) {
			for b := max(from, s.last+1-ringBuckets); b < to; b++ {
				if x := rows[b]; x != nil {
					n += of(x)
				}
			}
			return n
		}
		now := int64(100_000) + r.Int64N(1000)
		largest := []uint64{3, 200, 300, 70_000, 1 << 33}[seed%5]
		for step := 0; step < 1500; step++ {
			now++
			if r.IntN(300) == 0 {
				now += r.Int64N(500)
			}
			for range r.IntN(3) {
				b := now - 1
				if r.IntN(20) == 0 {
					b -= r.Int64N(450)
				}
				x := &tally{slow: make([]uint64, 2)}
				for o := range x.outcomes {
					if r.IntN(3) == 0 {
						x.outcomes[o] = r.Uint64N(largest)
						x.total += x.outcomes[o]
					}
				}
				x.timed = x.total
				if seed%2 == 0 && r.IntN(50) == 0 {
					x.timed = r.Uint64N(x.total + 1)
				}
				x.slow[r.IntN(2)] = r.Uint64N(x.timed + 1)
				kept := b > s.last-ringBuckets
				s.add(b, x, pl)
				if !kept {
					continue
				}
				y := rows[b]
				if y == nil {
					y = &tally{slow: make([]uint64, 2)}
					rows[b] = y
				}
				for o, n := range x.outcomes {
					y.outcomes[o] += n
				}
				y.total, y.timed = y.total+x.total, y.timed+x.timed
				y.slow[0], y.slow[1] = y.slow[0]+x.slow[0], y.slow[1]+x.slow[1]
			}
			if s.cols == nil {
				continue
			}
			if r.IntN(100) > 0 {
				s.slide(now, pl)
				for i, w := range pl.windows {
					for c := range s.cols {
						if c == colTimed && !s.timed || s.huge() {
							continue
						}
						from, to := s.within(now-int64(w), now)
						if want := s.ring.sum(c, from, to); s.lane(c, i, len(pl.windows)+1) != want {
							t.Fatalf("seed %d: at %d column %d has %d in the last %d, the ring %d", seed, now, c, s.lane(c, i, len(pl.windows)+1), w, want)
						}
					}
				}
				from, to := s.within(unsettled(now), now)
				if got, want := s.lane(0, len(pl.windows), len(pl.windows)+1), s.ring.sum(0, from, to); got != want && !s.huge() {
					t.Fatalf("seed %d: at %d %d are not summed up, the ring has %d", seed, now, got, want)
				}
			}
			from := now - r.Int64N(400)
			to := from + r.Int64N(now-from+1)
			c := s.sum(from, to, 1)
			for o := range c.outcomes {
				if want := sum(from, to, func(x *tally) uint64 { return x.outcomes[o] }); c.outcomes[o] != want {
					t.Fatalf("seed %d: %d of outcome %d in [%d, %d), want %d", seed, c.outcomes[o], o, from, to, want)
				}
			}
			if want := sum(from, to, func(x *tally) uint64 { return x.timed }); c.timed != want {
				t.Fatalf("seed %d: %d with a latency, want %d", seed, c.timed, want)
			}
			if want := sum(from, to, func(x *tally) uint64 { return x.slow[1] }); c.slow != want {
				t.Fatalf("seed %d: %d slow, want %d", seed, c.slow, want)
			}
			if want := sum(s.last+1-keepBuckets, s.last+1, func(x *tally) uint64 { return x.total }); s.hour != want {
				t.Fatalf("seed %d: %d in the last hour, want %d", seed, s.hour, want)
			}
		}
	}
}
