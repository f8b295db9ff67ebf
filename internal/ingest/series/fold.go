package series

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// initialMax is how long ago a series may have begun, in milliseconds, for its first total to be counted: a process that
// has run for weeks before anybody looked would else be one large peak.
const initialMax = 24 * 60 * 60 * 1000

// trembling is by how much the start that a writer tells may differ from point to point, in milliseconds: some reckon it
// anew each time, from a clock and for how long they run.
const trembling = 1000

// Sample is a point as it is stored, or with Known what was last known of its series under that start. Times are Unix
// milliseconds, 0 where unknown.
type Sample struct {
	Known     bool
	Series    uint64
	Writer    uint64
	Family    uint64
	Start     int64
	Time      int64
	Key       uint64 // signal.Key.ID
	Outcome   signal.Outcome
	Count     uint64
	Latencies signal.Latency
	Samples   []signal.Sample
}

// Last is what is to be known of a series under one start.
type Last struct {
	Series    uint64
	Start     int64
	Time      int64
	Count     uint64
	Latencies signal.Latency
}

// Seen tells when something was seen first, before or among the points that are being folded; false if never.
type Seen interface {
	// Writer is asked for one start of a writer, 0 for whichever.
	Writer(id uint64, start int64) (first int64, ok bool)
	Family(id uint64) (first int64, ok bool)
}

// Counted is a cell without the words of its key.
type Counted struct {
	Key    uint64
	Bucket int64 // Unix milliseconds
	Cell   signal.Cell
}

type place struct {
	bucket int64
	key    uint64
}

// Fold counts the increments between the points of each series. A total that falls began anew; what comes twice, or after
// what is newer, counts once.
type Fold struct {
	seen  Seen
	cells map[place]*signal.Cell

	series uint64
	begun  bool
	epochs map[int64]*Last // of the series, by start
	latest *Last           // the newest of them
	news   map[int64]bool  // the starts that have new points
	lasts  []Last
}

// NewFold begins with nothing.
func NewFold(seen Seen) *Fold {
	return &Fold{seen: seen, cells: map[place]*signal.Cell{}, epochs: map[int64]*Last{}, news: map[int64]bool{}}
}

// Add takes the samples of all series, each series' together; of one series what is known first, then in order of time.
func (f *Fold) Add(s *Sample) {
	if !f.begun || s.Series != f.series {
		f.finish()
		f.series, f.begun = s.Series, true
	}
	if s.Known {
		f.note(s)
		return
	}
	f.news[s.Start] = true
	last := f.epochs[s.Start]
	switch {
	case last == nil:
		f.first(s)
		f.note(s)
	case s.Time > last.Time && s.Count < last.Count: // began anew, and does not say so
		f.count(s, s.Count, &signal.Latency{})
		f.note(s)
	case s.Time > last.Time, s.Start != 0 && s.Count > last.Count:
		// Totals since a known start only grow, so the larger one is the newer, even if the writer's clock was set back.
		f.count(s, s.Count-last.Count, &last.Latencies)
		f.note(s)
	}
}

// first counts the first point of a start, as far as it is known not to have been there before.
func (f *Fold) first(s *Sample) {
	if s.Start != 0 && s.Start < s.Time {
		if same := f.near(s); same != nil {
			if s.Count > same.Count {
				f.count(s, s.Count-same.Count, &same.Latencies)
			}
			return
		}
		family, known := f.seen.Family(s.Family)
		observed := known && family <= s.Start && s.Time-s.Start <= initialMax
		// Of a writer that was there before, a series that was not had nothing to tell.
		if first, ok := f.seen.Writer(s.Writer, s.Start); observed || ok && first < s.Time {
			f.count(s, s.Count, &signal.Latency{})
		}
		return
	}
	// Who says that the total began at the moment when it was read does not know when it did, and goes on as before.
	switch {
	case f.latest != nil && s.Time <= f.latest.Time:
	case f.latest != nil && s.Count >= f.latest.Count:
		f.count(s, s.Count-f.latest.Count, &f.latest.Latencies)
	case f.latest != nil:
		f.count(s, s.Count, &signal.Latency{})
	default:
		if first, ok := f.seen.Writer(s.Writer, 0); ok && first < s.Time {
			f.count(s, s.Count, &signal.Latency{})
		}
	}
}

// near is the largest total of a start that is about the sample's, and was told when the sample's had been already: a
// process that began anew begins after the last point of the one before. Where two processes without names of their own
// began at once, what the second one counted until its first point is missing, which is little.
func (f *Fold) near(s *Sample) (same *Last) {
	for start, last := range f.epochs {
		if start == 0 || max(start, s.Start)-min(start, s.Start) > trembling || last.Time <= s.Start {
			continue
		}
		if same == nil || cmp.Or(cmp.Compare(last.Count, same.Count), cmp.Compare(last.Start, same.Start)) > 0 {
			same = last
		}
	}
	return same
}

// note remembers the sample as the last of its start.
func (f *Fold) note(s *Sample) {
	last := f.epochs[s.Start]
	if last == nil {
		last = &Last{Series: s.Series, Start: s.Start}
		f.epochs[s.Start] = last
	}
	last.Time, last.Count, last.Latencies = max(last.Time, s.Time), s.Count, s.Latencies
	if f.latest == nil || last.Time >= f.latest.Time {
		f.latest = last
	}
}

// count adds n requests at the sample's time.
func (f *Fold) count(s *Sample, n uint64, before *signal.Latency) {
	if n == 0 {
		return
	}
	const bucket = int64(signal.BucketSize / 1e6)
	p := place{s.Time - (s.Time%bucket+bucket)%bucket, s.Key}
	c := f.cells[p]
	if c == nil {
		c = &signal.Cell{}
		f.cells[p] = c
	}
	more := signal.Cell{Samples: s.Samples}
	more.Outcomes[s.Outcome] = n
	more.Latency = since(before, &s.Latencies)
	c.Merge(&more)
}

// since is what a histogram gained. Buckets may have been cut differently before, so that some seem to have lost: then what
// lies below each bound is taken to have never fallen.
func since(before, now *signal.Latency) (gained signal.Latency) {
	var was, is uint64
	for i := range now {
		was, is = was+before[i], is+now[i]
	}
	if is < was {
		return *now
	}
	total := is - was
	was, is = 0, 0
	var below uint64
	for i := range now {
		was, is = was+before[i], is+now[i]
		if is > was && is-was > below {
			reached := min(is-was, total)
			gained[i], below = reached-below, reached
		}
	}
	return gained
}

// finish ends the series that was being read.
func (f *Fold) finish() {
	for _, start := range slices.Sorted(maps.Keys(f.news)) {
		f.lasts = append(f.lasts, *f.epochs[start])
	}
	clear(f.epochs)
	clear(f.news)
	f.latest = nil
}

// Result gives what was counted, and what is to be known of every series and start that had points. Both are in a fixed order.
func (f *Fold) Result() ([]Counted, []Last) {
	f.finish()
	f.begun = false
	counted := make([]Counted, 0, len(f.cells))
	for p, c := range f.cells {
		counted = append(counted, Counted{Key: p.key, Bucket: p.bucket, Cell: *c})
	}
	slices.SortFunc(counted, func(a, b Counted) int { return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(a.Key, b.Key)) })
	return counted, f.lasts
}
