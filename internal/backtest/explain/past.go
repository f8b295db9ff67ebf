package explain

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect/localise"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	// Lookback is how much of the time before a symptom is read. Changes are read from ChangesBack on.
	Lookback    = 4 * time.Hour
	ChangesBack = 24 * time.Hour
	// unit is the width of what is kept; blocks are multiples of it.
	unit = time.Minute
	// maxLeaves bounds the combinations of attributes that are kept apart, by traffic.
	maxLeaves = 2000
	// maxKept bounds what is held before the lightest are merged.
	maxKept = 50_000
)

// Past is what happened up to a symptom. Feed it in any order, then Explain. It is not safe for concurrent use.
type Past struct {
	symptom Symptom
	paths   map[signal.Path]*series
	leaves  map[signal.Key]*series // of the symptom's service
	gauges  map[gaugeKey][]sample
	changes map[string]*signal.Change
	ended   map[string]*signal.Change
}

type gaugeKey struct {
	resource, metric string
	attributes       signal.Attributes
}

type sample struct {
	at           time.Time
	value, limit float64
}

// series counts by minute before the symptom; minute 0 ends with it.
type series map[int]*counts

type counts struct {
	total, failures uint64
	latency         *signal.Latency
}

// NewPast makes an empty past of a symptom.
func NewPast(s Symptom) *Past {
	return &Past{
		symptom: s, paths: map[signal.Path]*series{}, leaves: map[signal.Key]*series{}, gauges: map[gaugeKey][]sample{},
		changes: map[string]*signal.Change{}, ended: map[string]*signal.Change{},
	}
}

// Add takes in one event. What is later than the symptom, or too old to matter, is left out.
func (p *Past) Add(e signal.Event) {
	age := p.symptom.At.Sub(e.At())
	if age < 0 {
		return
	}
	switch e := e.(type) {
	case *signal.Request:
		if age < Lookback {
			var c signal.Cell
			c.Count(e)
			p.count(signal.Key{Path: e.Path, Attributes: e.Attributes}, age, &c)
		}
	case *signal.Gauge:
		if age < Lookback {
			k := gaugeKey{e.Resource, e.Metric, e.Attributes}
			p.gauges[k] = append(p.gauges[k], sample{e.Time, e.Value, e.Limit})
		}
	case *signal.Change:
		if age < ChangesBack {
			p.addChange(e)
		}
	}
}

func (p *Past) addChange(e *signal.Change) {
	c, of := *e, p.changes
	if e.Phase != signal.Started {
		of = p.ended
	}
	if old := of[e.ID]; old == nil || e.Time.Before(old.Time) {
		of[e.ID] = &c
	}
}

// AddCell takes in one cell; it counts if its bucket has ended by the symptom.
func (p *Past) AddCell(c *signal.Cell) {
	if age := p.symptom.At.Sub(c.Bucket); age >= signal.BucketSize && age < Lookback {
		p.count(c.Key, age, c)
	}
}

func (p *Past) count(k signal.Key, age time.Duration, c *signal.Cell) {
	at := int(age / unit)
	add(p.paths, k.Path, at, c)
	if p.symptom.covers(k.Path) {
		add(p.leaves, k, at, c)
		if len(p.leaves) > maxKept {
			p.lighten(maxKept / 2)
		}
	}
}

func add[K comparable](to map[K]*series, k K, at int, c *signal.Cell) {
	s := to[k]
	if s == nil {
		s = &series{}
		to[k] = s
	}
	s.add(at, c.Outcomes[signal.Success]+c.Outcomes[signal.Failure], c.Outcomes[signal.Failure], &c.Latency)
}

func (s series) add(at int, total, failures uint64, l *signal.Latency) {
	x := s[at]
	if x == nil {
		x = &counts{}
		s[at] = x
	}
	x.total += total
	x.failures += failures
	if l != nil && l.Total() > 0 {
		if x.latency == nil {
			x.latency = &signal.Latency{}
		}
		x.latency.Merge(l)
	}
}

func (s series) total() (n uint64) {
	for _, x := range s {
		n += x.total
	}
	return n
}

// lighten keeps the heaviest leaves apart and merges the others of each path into one without attributes, which no slice
// contains but the whole.
func (p *Past) lighten(most int) {
	if len(p.leaves) <= most {
		return
	}
	keys := slices.SortedFunc(maps.Keys(p.leaves), func(a, b signal.Key) int {
		return cmp.Or(cmp.Compare(p.leaves[b].total(), p.leaves[a].total()), a.Compare(b))
	})
	for _, k := range keys[most:] {
		s := p.leaves[k]
		delete(p.leaves, k)
		rest := signal.Key{Path: k.Path}
		if p.leaves[rest] == nil {
			p.leaves[rest] = &series{}
		}
		for at, x := range *s {
			p.leaves[rest].add(at, x.total, x.failures, x.latency)
		}
	}
}

// measure says what counts as bad: failures, or what took longer than a bound.
type measure struct {
	slower time.Duration // 0: failures
}

func (m measure) of(c *counts) (total, bad uint64) {
	switch {
	case m.slower == 0:
		return c.total, c.failures
	case c.latency == nil:
		return 0, 0
	}
	return c.latency.Total(), c.latency.Above(m.slower)
}

// grid is how minutes are put together into blocks, oldest first.
type grid struct {
	width  int // minutes
	blocks int
}

// widths are block widths in minutes.
var widths = []int{1, 2, 5, 10, 15, 30}

// gridOf fits blocks to how often data comes: a block should not be empty because its series reports rarely.
func gridOf(ss ...*series) grid {
	seen := map[int]bool{}
	for _, s := range ss {
		for at := range *s {
			seen[at] = true
		}
	}
	at := slices.Sorted(maps.Keys(seen))
	if len(at) == 0 {
		return grid{1, 0}
	}
	gaps := make([]int, 0, len(at))
	for i := 1; i < len(at); i++ {
		gaps = append(gaps, at[i]-at[i-1])
	}
	width := widths[0]
	if len(gaps) > 0 {
		slices.Sort(gaps)
		gap := gaps[len(gaps)/2]
		for _, width = range widths {
			if width >= gap {
				break
			}
		}
	}
	return grid{width, at[len(at)-1]/width + 1}
}

// place is the block of a minute.
func (g grid) place(minute int) int { return g.blocks - 1 - minute/g.width }

// begin is how long before the symptom a block began.
func (g grid) begin(block int) time.Duration {
	return time.Duration((g.blocks-block)*g.width) * unit
}

// row puts series into the blocks of a grid.
func (g grid) row(m measure, ss ...*series) []localise.Block {
	out := make([]localise.Block, g.blocks)
	for _, s := range ss {
		for at, c := range *s {
			if i := g.place(at); i >= 0 {
				n, b := m.of(c)
				out[i].Total += float64(n)
				out[i].Bad += float64(b)
			}
		}
	}
	return out
}
