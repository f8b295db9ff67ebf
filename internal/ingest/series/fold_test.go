package series

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// memory is what a detector keeps of series from one tick to the next.
type memory struct {
	lasts    map[[2]int64]Last
	writers  map[[2]int64]int64
	families map[uint64]int64
	total    uint64
	latency  signal.Latency
}

func newMemory() *memory {
	return &memory{lasts: map[[2]int64]Last{}, writers: map[[2]int64]int64{}, families: map[uint64]int64{}}
}

func (m *memory) Writer(id uint64, start int64) (int64, bool) {
	first, ok := m.writers[[2]int64{int64(id), start}]
	return first, ok
}

func (m *memory) Family(id uint64) (int64, bool) {
	first, ok := m.families[id]
	return first, ok
}

func (m *memory) see(points []Sample) {
	earliest := func(id [2]int64, t int64) {
		if first, ok := m.writers[id]; !ok || t < first {
			m.writers[id] = t
		}
	}
	for _, p := range points {
		earliest([2]int64{int64(p.Writer), p.Start}, p.Time)
		earliest([2]int64{int64(p.Writer), 0}, p.Time)
		if first, ok := m.families[p.Family]; !ok || p.Time < first {
			m.families[p.Family] = p.Time
		}
	}
}

// tick folds points into what is known. Without store it is a tick whose detector died before it stored what it knew.
func (m *memory) tick(points []Sample, store bool) (added uint64) {
	m.see(points)
	all := slices.Clone(points)
	for _, l := range m.lasts {
		if slices.ContainsFunc(points, func(p Sample) bool { return p.Series == l.Series }) {
			all = append(all, Sample{Known: true, Series: l.Series, Start: l.Start, Time: l.Time, Count: l.Count, Latencies: l.Latencies})
		}
	}
	known := func(s Sample) int {
		if s.Known {
			return 0
		}
		return 1
	}
	slices.SortFunc(all, func(a, b Sample) int {
		return cmp.Or(cmp.Compare(a.Series, b.Series), cmp.Compare(known(a), known(b)), cmp.Compare(a.Time, b.Time), cmp.Compare(a.Start, b.Start), cmp.Compare(a.Count, b.Count))
	})
	f := NewFold(m)
	for i := range all {
		f.Add(&all[i])
	}
	cells, lasts := f.Result()
	for _, c := range cells {
		added += c.Cell.Total()
		if store {
			m.latency.Merge(&c.Cell.Latency)
		}
	}
	if store {
		m.total += added
		for _, l := range lasts {
			m.lasts[[2]int64{int64(l.Series), l.Start}] = l
		}
	}
	return added
}

const second = 1000

func point(at, start int64, count uint64) Sample {
	return Sample{Series: 1, Writer: 1, Family: 1, Time: at * second, Start: start * second, Count: count}
}

func TestIncrements(t *testing.T) {
	other := func(s Sample, series, writer uint64) Sample {
		s.Series, s.Writer = series, writer
		return s
	}
	moved := func(s Sample, start int64) Sample {
		s.Start += start
		return s
	}
	watched := other(point(5, 1, 1), 9, 9)
	ticks := func(points ...Sample) (out [][]Sample) {
		for _, p := range points {
			out = append(out, []Sample{p})
		}
		return out
	}
	for name, tt := range map[string]struct {
		ticks [][]Sample
		want  uint64
	}{
		"the first total of what has run long is nobody's news": {ticks(point(100, 10, 5000)), 0},
		"increments":                                     {ticks(point(100, 10, 5000), point(110, 10, 5007), point(120, 10, 5010)), 10},
		"all in one tick":                                {[][]Sample{{point(100, 10, 5000), point(110, 10, 5007), point(120, 10, 5010)}}, 10},
		"a duplicated scrape":                            {ticks(point(100, 10, 5000), point(110, 10, 5007), point(110, 10, 5007), point(120, 10, 5010)), 10},
		"out of order":                                   {ticks(point(100, 10, 5000), point(120, 10, 5010), point(110, 10, 5007), point(130, 10, 5011)), 11},
		"a gap":                                          {ticks(point(100, 10, 5000), point(4000, 10, 9000)), 4000},
		"a restart that says so":                         {ticks(point(100, 10, 5000), point(110, 10, 5007), point(130, 120, 3), point(140, 120, 4)), 11},
		"a restart whose old end comes late":             {ticks(point(100, 10, 5000), point(130, 120, 3), point(110, 10, 5007)), 10},
		"a restart beyond the old total":                 {ticks(point(100, 10, 50), point(130, 120, 70)), 70},
		"a restart that does not say so":                 {ticks(point(100, 0, 5000), point(110, 0, 5007), point(130, 0, 3), point(140, 0, 4)), 11},
		"a start that is wrongly kept":                   {ticks(point(100, 10, 5000), point(110, 10, 5007), point(130, 10, 3)), 10},
		"a clock that was set back":                      {ticks(point(1000, 10, 5000), point(500, 10, 5007), point(510, 10, 5009)), 9},
		"two writers under one name":                     {ticks(point(100, 10, 50), point(101, 20, 7), point(110, 10, 55), point(111, 20, 8)), 6},
		"a scraper without starts is restarted":          {ticks(point(100, 100, 5000), point(110, 100, 5007), point(130, 130, 5010), point(140, 130, 5011)), 11},
		"both restart":                                   {ticks(point(100, 100, 5000), point(110, 100, 5007), point(130, 130, 3), point(140, 130, 4)), 11},
		"what a writer had not had before began at zero": {ticks(point(100, 10, 5000), other(point(110, 10, 3), 2, 1), other(point(120, 10, 5), 2, 1)), 5},
		"the same without starts":                        {ticks(point(100, 0, 5000), other(point(110, 0, 3), 2, 1), other(point(120, 0, 5), 2, 1)), 5},
		"the same of a scraper":                          {ticks(point(100, 100, 5000), other(point(110, 110, 3), 2, 1), other(point(120, 110, 5), 2, 1)), 5},
		"the same in one tick":                           {[][]Sample{{point(100, 10, 5000), other(point(110, 10, 3), 2, 1), other(point(120, 10, 5), 2, 1)}}, 5},
		"what came with the first was there before":      {[][]Sample{{point(100, 10, 5000), other(point(100, 10, 3), 2, 1)}}, 0},
		"a new process of a metric that is watched":      {ticks(point(100, 10, 5000), other(point(110, 105, 3), 2, 2)), 3},
		"an old process that is seen for the first time": {ticks(point(100, 10, 5000), other(point(110, 95, 3), 2, 2)), 0},
		"starts that tremble":                            {ticks(watched, point(100, 50, 5000), moved(point(110, 50, 5007), 3), moved(point(120, 50, 5010), -2), moved(point(130, 50, 5011), 1)), 5011},
		"the same in one tick and out of order":          {[][]Sample{{watched}, {point(100, 50, 5000), moved(point(120, 50, 5010), -2)}, {moved(point(110, 50, 5007), 3), moved(point(130, 50, 5011), 1)}}, 5011},
		"a restart at once":                              {ticks(watched, point(100, 99, 5000), moved(point(101, 100, 3), 0), point(110, 100, 4)), 5004},
		"two nameless processes that begin at once":      {ticks(watched, point(110, 105, 10), moved(point(111, 105, 7), 500), point(120, 105, 20), moved(point(121, 105, 9), 500)), 22},
		"zero is a total, too":                           {ticks(point(100, 10, 0), point(110, 10, 4)), 4},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory()
			for _, points := range tt.ticks {
				m.tick(points, true)
			}
			if m.total != tt.want {
				t.Errorf("counted %d, want %d", m.total, tt.want)
			}
		})
	}
}

// process is a program that counts, restarts now and then, and is scraped.
type process struct {
	series, writer uint64
	start          int64
	total          uint64
	latency        signal.Latency
}

// Whatever the partitions and ticks that points come by, and however often: the totals are what happened.
func TestTotalsAreRight(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		starts := rnd.IntN(2) == 0 // whether writers tell theirs
		var processes []*process
		for i := range uint64(1 + rnd.IntN(4)) {
			processes = append(processes, &process{series: i, writer: i / 2, start: 5 * second})
		}
		var points []Sample
		var truth uint64
		var latency signal.Latency
		for now := int64(10); now < 400; now += 10 {
			for _, p := range processes {
				if rnd.IntN(15) == 0 && now > 20 { // what was counted since the last scrape is gone with the process
					p.start, p.total, p.latency = now*second-3*second, 0, signal.Latency{}
				}
				if rnd.IntN(5) == 0 && now > 10 && (starts || p.total > 0) {
					continue // not scraped, but counted the next time
				}
				n := uint64(1 + rnd.IntN(50))
				bucket := rnd.IntN(signal.LatencyBuckets)
				p.total += n
				p.latency[bucket] += n
				if now > 10 {
					truth += n
					latency[bucket] += n
				}
				s := Sample{Series: p.series, Writer: p.writer, Family: 1, Start: p.start, Time: now * second, Count: p.total, Latencies: p.latency}
				if !starts {
					// Without starts a restart shows by a total that is lower.
					if p.latency == (signal.Latency{}) || p.total == n && now > 10 {
						truth -= n
						latency[bucket] -= n
						p.total, p.latency = 0, signal.Latency{}
						s.Count, s.Latencies = 0, signal.Latency{}
					}
					s.Start = 0
				}
				points = append(points, s)
				for rnd.IntN(6) == 0 {
					points = append(points, s)
				}
			}
		}
		if starts { // without them order matters across a restart
			for i := range points {
				j := i + rnd.IntN(min(12, len(points)-i))
				points[i], points[j] = points[j], points[i]
			}
			// The first points say what was there before anybody looked.
			slices.SortStableFunc(points, func(a, b Sample) int { return cmp.Compare(min(a.Time, 20*second), min(b.Time, 20*second)) })
		}
		m := newMemory()
		for len(points) > 0 {
			n := min(1+rnd.IntN(20), len(points))
			if rnd.IntN(3) == 0 { // a detector that dies, and the tick again
				a, b := m.tick(points[:n], false), m.tick(points[:n], false)
				if a != b {
					t.Fatalf("seed %d: the same tick counted %d and then %d", seed, a, b)
				}
			}
			m.tick(points[:n], true)
			if again := m.tick(points[:n], false); again != 0 && starts {
				t.Fatalf("seed %d: a tick whose knowledge is stored counts %d again", seed, again)
			}
			points = points[n:]
		}
		if m.total != truth || m.latency != latency {
			t.Errorf("seed %d, starts %v: counted %d, %d happened; latencies %v, want %v", seed, starts, m.total, truth, m.latency, latency)
		}
	}
}

// A histogram that is cut into other buckets under way keeps its number of requests.
func TestOtherBucketsKeepTheTotal(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		var a, b signal.Latency
		for range 20 {
			i := rnd.IntN(signal.LatencyBuckets)
			a[i]++
			b[max(0, i-rnd.IntN(2))]++
		}
		for range rnd.IntN(10) {
			b[rnd.IntN(signal.LatencyBuckets)]++
		}
		got := since(&a, &b)
		if got.Total() != b.Total()-a.Total() {
			t.Fatalf("%v to %v gained %v", a, b, got)
		}
	}
	if got := since(&signal.Latency{5}, &signal.Latency{3, 1}); got != (signal.Latency{3, 1}) {
		t.Errorf("after a restart %v", got)
	}
}
