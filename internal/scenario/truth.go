package scenario

import (
	"iter"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// Truth is what was the case in one run of a scenario.
type Truth struct {
	Scenario string
	Seed     int64
	Labels   Labels
	Requests uint64
	Gauges   uint64
	Tickets  uint64
	Changes  uint64
	Attempts uint64            // requests that were not a first try
	Impacts  map[string]Impact // by service: what the incidents' drivers did
	caused   map[string]bool   // drivers that belong to an incident
	start    time.Time
	paths    []truthPath
	index    map[signal.Path]int
	columns  int
	buckets  [][]outcomes
}

// Impact is what the incidents did to one service.
type Impact struct {
	Onset    time.Time // end of the first request that failed because of it
	Last     time.Time
	Failures uint64 // requests that failed because of it, beyond the usual ones
}

// Total is the exact number of requests of one key in one bucket.
type Total struct {
	Bucket   time.Time
	Key      signal.Key
	Outcomes [signal.NumOutcomes]uint64
	Retries  uint64
}

type truthPath struct {
	path  signal.Path
	sets  []signal.Attributes
	first int // column of its first attribute set
}

type outcomes struct {
	by      [signal.NumOutcomes]uint32
	retries uint32
}

func newTruth(s *Scenario, seed int64) *Truth {
	t := &Truth{
		Scenario: s.Name, Seed: seed, Labels: s.labels(), Impacts: map[string]Impact{}, caused: map[string]bool{},
		start: signal.BucketOf(s.Start), index: map[signal.Path]int{},
	}
	for _, in := range s.file.Truth.Incidents {
		for _, d := range in.Drivers {
			t.caused[d] = true
		}
	}
	return t
}

// path registers a path before the first request.
func (t *Truth) path(p signal.Path, sets []signal.Attributes) int {
	t.paths = append(t.paths, truthPath{path: p, sets: sets, first: t.columns})
	t.columns += len(sets)
	t.index[p] = len(t.paths) - 1
	return len(t.paths) - 1
}

func (t *Truth) count(path, set int, r *signal.Request, hit *curve) {
	b := int(r.Time.Sub(t.start) / signal.BucketSize)
	for len(t.buckets) <= b {
		t.buckets = append(t.buckets, make([]outcomes, t.columns))
	}
	o := &t.buckets[b][t.paths[path].first+set]
	o.by[r.Outcome]++
	if r.Attempt > 1 {
		o.retries++
		t.Attempts++
	}
	if hit == nil || !t.caused[hit.name] {
		return
	}
	im, seen := t.Impacts[r.Path.Service]
	if !seen {
		im.Onset = r.Time
	}
	im.Last = r.Time
	im.Failures++
	t.Impacts[r.Path.Service] = im
}

func (t *Truth) add(s *Slice) {
	t.Requests += uint64(len(s.Requests))
	t.Gauges += uint64(len(s.Gauges))
	t.Tickets += uint64(len(s.Tickets))
	t.Changes += uint64(len(s.Changes))
}

// Totals yields every non-empty total, bucket by bucket.
func (t *Truth) Totals() iter.Seq[Total] {
	return func(yield func(Total) bool) {
		for b, columns := range t.buckets {
			at := t.start.Add(time.Duration(b) * signal.BucketSize)
			for _, p := range t.paths {
				for i, set := range p.sets {
					o := &columns[p.first+i]
					if *o == (outcomes{}) {
						continue
					}
					total := Total{Bucket: at, Key: signal.Key{Path: p.path, Attributes: set}, Retries: uint64(o.retries)}
					for k, n := range o.by {
						total.Outcomes[k] = uint64(n)
					}
					if !yield(total) {
						return
					}
				}
			}
		}
	}
}

// Sum adds up one path over all attributes from one instant to another, both on a bucket's edge.
func (t *Truth) Sum(p signal.Path, from, to time.Time) (sum Total) {
	i, ok := t.index[p]
	if !ok {
		return sum
	}
	sum = Total{Bucket: from, Key: signal.Key{Path: p}}
	first := max(0, int(from.Sub(t.start)/signal.BucketSize))
	for b := first; b < min(len(t.buckets), int(to.Sub(t.start)/signal.BucketSize)); b++ {
		for k := range t.paths[i].sets {
			o := &t.buckets[b][t.paths[i].first+k]
			for j, n := range o.by {
				sum.Outcomes[j] += uint64(n)
			}
			sum.Retries += uint64(o.retries)
		}
	}
	return sum
}

// FailureRate is failures among what was neither rejected nor throttled; 0 where nothing was.
func (t Total) FailureRate() float64 {
	n := t.Outcomes[signal.Success] + t.Outcomes[signal.Failure]
	if n == 0 {
		return 0
	}
	return float64(t.Outcomes[signal.Failure]) / float64(n)
}

// Paths lists the world's paths in a fixed order.
func (t *Truth) Paths() []signal.Path {
	out := make([]signal.Path, len(t.paths))
	for i, p := range t.paths {
		out[i] = p.path
	}
	slices.SortFunc(out, signal.Path.Compare)
	return out
}
