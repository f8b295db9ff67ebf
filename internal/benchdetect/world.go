package main

import (
	"fmt"
	"math"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// regions is how many slices a path has, by the values of one attribute. So the slices that rules name are the keys that cells
// count, and both sides judge the same series.
const regions = 20

// began is an hour's start, so that minutes and hours of the clock fall on ticks.
var began = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// slow is what a slow request takes, slowerThan what a rule calls slow; quick ones take fastest to some times that.
const (
	slow       = 2 * time.Second
	slowerThan = time.Second
	fastest    = 40 * time.Millisecond
)

// trouble is what is wrong with one path-slice from some tick on, or always.
type trouble struct {
	from          int
	failing, late float64 // share of its requests
}

// world is the made-up traffic: each path-slice has requests in every bucket. It is a function of its size and length alone.
type world struct {
	keys  []signal.Key // in order
	base  []float64    // usual requests in a bucket
	bad   []trouble
	paths int
}

// newWorld has n path-slices, some in trouble from the given tick on. Of 1,000 paths two fail everywhere, two a little everywhere and
// twenty in one region; one is slow everywhere and ten in one region; at least one of each.
func newWorld(n, from int) (*world, error) {
	if n < 10*regions || n%regions != 0 {
		return nil, fmt.Errorf("%d path-slices: want a multiple of %d, %d at least", n, regions, 10*regions)
	}
	w := &world{paths: n / regions}
	for p := range w.paths {
		path := signal.Path{
			Service: fmt.Sprintf("service-%04d", p/20), Operation: fmt.Sprintf("operation-%02d", p%20/2), Access: signal.Access(p % 2),
		}
		usual := 3 * math.Pow(60, mix(uint64(p), 1)) // 3 to 180 a bucket in each region, mostly few
		kind, one := w.troubleOf(p, from)
		if kind.from > 0 {
			usual = max(usual, 12) // enough to be judged within a minute
		}
		for r := range regions {
			t := kind
			if one >= 0 && r != one {
				t = trouble{}
			}
			w.keys = append(w.keys, signal.Key{Path: path, Attributes: signal.AttributesOf(signal.Attr{Name: "region", Value: fmt.Sprintf("region-%02d", r)})})
			w.base, w.bad = append(w.base, usual), append(w.bad, t)
		}
	}
	return w, nil
}

// troubleOf is what is wrong with a path, and in which region, −1 for all.
func (w *world) troubleOf(p, from int) (t trouble, one int) {
	place := (p*7919 + 13) % w.paths // spreads them over services
	for _, x := range []struct {
		permille      int
		failing, late float64
		one           bool
	}{
		{2, 0.3, 0, false}, {2, 0.03, 0, false}, {20, 0.5, 0, true}, {1, 0, 0.4, false}, {10, 0, 0.6, true},
	} {
		count := max(1, w.paths*x.permille/1000)
		switch {
		case place >= count:
			place -= count
		case x.one:
			return trouble{from, x.failing, x.late}, int(mix(uint64(p), 2) * regions)
		default:
			return trouble{from, x.failing, x.late}, -1
		}
	}
	return trouble{}, -1
}

// counts are what one path-slice counted in one bucket.
type counts struct{ requests, failures, slow uint64 }

// at counts path-slice i in bucket k: usual traffic give or take a quarter, one failure and two slow ones in a thousand, and trouble.
func (w *world) at(i, k int) (c counts) {
	h := uint64(i)<<20 + uint64(k)
	c.requests = max(1, uint64(w.base[i]*(0.75+mix(h, 3)/2)+0.5))
	failing, late := 0.001, 0.002
	if t := w.bad[i]; t.from > 0 && k >= t.from {
		failing, late = failing+t.failing, late+t.late
	}
	n := float64(c.requests)
	c.failures = min(c.requests, uint64(n*failing+mix(h, 4)))
	c.slow = min(c.requests, uint64(n*late+mix(h, 5)))
	return c
}

// cells are bucket k as the detector gets it, in order.
func (w *world) cells(k int) []signal.Cell {
	bucket := began.Add(time.Duration(k) * signal.BucketSize)
	quick := signal.LatencyBucket(fastest)
	hung := signal.LatencyBucket(slow)
	cells := make([]signal.Cell, len(w.keys))
	for i := range cells {
		x, c := w.at(i, k), &cells[i]
		c.Bucket, c.Key = bucket, w.keys[i]
		c.Outcomes[signal.Success], c.Outcomes[signal.Failure] = x.requests-x.failures, x.failures
		rest := x.requests - x.slow
		for b := range 4 {
			c.Latency[quick+b] = rest / 5
		}
		c.Latency[quick+4] = rest - 4*(rest/5)
		c.Latency[hung] = x.slow
		for a := range min(x.failures, 8) {
			c.Accounts.Add(hash(uint64(i%1000)*16+a, 6))
		}
	}
	return cells
}

// hash is splitmix64's.
func hash(x, salt uint64) uint64 {
	x = x*0x9e3779b97f4a7c15 + salt*0xbf58476d1ce4e5b9
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// mix is a number from 0 to 1 that is the same in each run.
func mix(x, salt uint64) float64 { return float64(hash(x, salt)>>11) / (1 << 53) }
