package explain

import (
	"maps"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect/localise"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	// convincing is the evidence from which something counts as in trouble, in decades.
	convincing = 2.0
	// early is by how much trouble elsewhere may have begun before the symptom and still belong to it.
	early = 15 * time.Minute
)

// slowShares are the shares of requests above the bounds that are tried, in ordinary times.
var slowShares = []float64{0.1, 0.01, 0.001}

// trouble is a departure of some series, or the lack of one.
type trouble struct {
	localise.Change
	grid    grid
	signal  Signal
	measure measure
	rows    []localise.Block
	onset   time.Time
	found   bool // the series departs at all
}

func (t *trouble) convincing() bool { return t.found && t.Evidence >= convincing }

// since are the sums before and since the onset.
func (t *trouble) sums() (before, since localise.Block) {
	for i, b := range t.rows {
		to := &before
		if i >= t.At {
			to = &since
		}
		to.Total += b.Total
		to.Bad += b.Bad
	}
	return before, since
}

// look finds the departure of series by one signal: the strongest change point, or with a given onset the change there
// unless a change point near it says more.
func (p *Past) look(m Signal, onset time.Time, ss ...*series) *trouble {
	best := &trouble{grid: gridOf(ss...), signal: m}
	if best.grid.blocks == 0 {
		return best
	}
	measures := []measure{{}}
	if m == Latency {
		measures = p.bounds(onset, ss...)
	}
	for i, by := range measures {
		t := &trouble{grid: best.grid, signal: m, measure: by, rows: best.grid.row(by, ss...)}
		t.Change, t.found = localise.Onset(t.rows)
		if !onset.IsZero() && (!t.found || t.began(p).Before(onset.Add(-early))) {
			at := t.grid.place(int(p.symptom.At.Sub(onset) / unit))
			t.Change, t.found = localise.Since(t.rows, min(max(at, 0), t.grid.blocks-1))
		}
		t.onset = t.began(p)
		if i == 0 || t.found && (!best.found || t.Evidence > best.Evidence) {
			best = t
		}
	}
	return best
}

func (t *trouble) began(p *Past) time.Time { return p.symptom.At.Add(-t.grid.begin(t.At)) }

// bounds are those that only a tenth, a hundredth and a thousandth of the requests exceeded before the onset: a fault may slow
// everything a little or a few requests much. The histogram's buckets are coarse, so that the share above a bound is
// measured, never assumed.
func (p *Past) bounds(onset time.Time, ss ...*series) (out []measure) {
	newest := 0
	if !onset.IsZero() {
		newest = int(p.symptom.At.Sub(onset) / unit)
	}
	var all signal.Latency
	for _, s := range ss {
		for at, c := range *s {
			if c.latency != nil && at >= newest {
				all.Merge(c.latency)
			}
		}
	}
	n := float64(all.Total())
	for _, share := range slowShares {
		for i := 0; n > 0 && i < signal.LatencyBuckets-1; i++ {
			if b := signal.LatencyBound(i); float64(all.Above(b))/n <= share {
				if m := (measure{slower: b}); !slices.Contains(out, m) {
					out = append(out, m)
				}
				break
			}
		}
	}
	return out
}

// wouldShow tells whether a series has enough requests since its onset to show a rise of its share.
func (t *trouble) wouldShow(rise float64) bool {
	_, since := t.sums()
	return since.Total*rise >= 5
}

// services looks at the paths of services near the symptom for departures near the onset, and keeps for each service the strongest: of the symptom's
// signal if that is convincing, since like explains like.
func (p *Past) services(onset time.Time, like Signal, near map[string]bool) map[string]*trouble {
	out := map[string]*trouble{}
	better := func(a, b *trouble) bool {
		x, y := a.convincing() && a.signal == like, b.convincing() && b.signal == like
		if x != y {
			return x
		}
		return a.found && (!b.found || a.Evidence > b.Evidence)
	}
	for _, path := range slices.SortedFunc(maps.Keys(p.paths), signal.Path.Compare) {
		if !near[path.Service] {
			continue
		}
		for _, m := range []Signal{Failures, Latency} {
			t := p.look(m, onset, p.paths[path])
			if old := out[path.Service]; old == nil || better(t, old) {
				out[path.Service] = t
			}
		}
	}
	return out
}
