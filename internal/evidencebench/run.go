package evidencebench

import (
	"encoding/gob"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect/evidence"
)

// Run says what to measure.
type Run struct {
	Kinds     []Kind
	Seeds     []int // of each kind
	Days      int   // counted; as many follow for Tocsin alone, to see what calibration on the first leads to
	Calibrate bool
	FirstDays int // first days of further worlds
	Wheres    []Where
	Incidents int // seeds of each class of incident
	Probes    int // others of each class, by whose delays calibration chooses
	Bursts    []int
	Sweep     int // seeds of each class with other constants; 0 sweeps none
	SweepDays int // quiet days of each world with other constants
}

// Full is what the committed report shows, Quick the same with few seeds, to look at; Short what go test has time for.
var (
	Full = Run{
		Kinds: []Kind{Realistic, Drifting, Heavy}, Seeds: []int{20, 10, 10}, Days: 30, Calibrate: true, FirstDays: 60,
		Wheres: Wheres, Incidents: 20, Probes: 6, Bursts: []int{1, 2, 3, 4, 5, 7, 10, 15, 20}, Sweep: 8, SweepDays: 7,
	}
	Quick = Run{
		Kinds: []Kind{Realistic, Drifting, Heavy}, Seeds: []int{2, 2, 2}, Days: 10, Calibrate: true, FirstDays: 4,
		Wheres: Wheres, Incidents: 6, Probes: 6, Bursts: []int{1, 2, 3, 4, 5, 7, 10, 15, 20}, Sweep: 2, SweepDays: 1,
	}
	Short = Run{Kinds: []Kind{Realistic}, Seeds: []int{2}, Days: 10, Wheres: Wheres[:1], Incidents: 6, Bursts: []int{3}}
)

// BenchModel is the shipped one, but that evidence is not cut off above its threshold: so the threshold can be raised here.
func BenchModel() *evidence.Model {
	m := evidence.Default()
	m.Ceiling = 12
	return &m
}

// World is what the quiet days of one kind gave.
type World struct {
	Kind   Kind
	Months float64 // in each of the two
	All    Tally   // of all seeds, in the first month
	Each   []Pair
}

// Pair is the two months of one seed: what is learned from and what follows, of Tocsin's settings only.
type Pair struct{ First, Next Tally }

// Site is what incidents in one place gave, for each class and seed. Probes are others of the same kind, for calibration.
type Site struct {
	Where
	Traces [][]Trace
	Probes [][]Trace
}

// Measured is all that was measured.
type Measured struct {
	g         *grid
	Run       Run
	Worlds    []World
	FirstDay  Tally
	FirstDays int
	Sites     []Site
	Sweep     []*Sensitivity
	Examples  []Example
	Took      time.Duration // of CPU
}

// Save writes what was measured, so that it can be concluded from and drawn again without measuring anew.
func (m *Measured) Save(w io.Writer) error {
	if err := gob.NewEncoder(w).Encode(m); err != nil {
		return fmt.Errorf("saving what was measured: %w", err)
	}
	return nil
}

// Load reads what Save wrote.
func Load(r io.Reader) (*Measured, error) {
	m := &Measured{}
	if err := gob.NewDecoder(r).Decode(m); err != nil {
		return nil, fmt.Errorf("reading what was measured: %w", err)
	}
	m.g = newGrid(BenchModel(), m.Run.Bursts)
	return m, nil
}

const (
	firstDaySeed = 1000 // the seeds from here on are of further worlds
	probeSeed    = 2000
)

// Measure runs everything, on all processors. Progress is told what is done, from one goroutine at a time; nil tells nobody.
func (r Run) Measure(m *evidence.Model, progress func(string)) *Measured {
	g := newGrid(m, r.Bursts)
	out := &Measured{g: g, Run: r, FirstDay: g.tally(), FirstDays: r.FirstDays}
	var jobs []func() string
	for i, kind := range r.Kinds {
		w := World{Kind: kind, Months: float64(r.Seeds[i]*r.Days) / 30, All: g.tally(), Each: make([]Pair, r.Seeds[i])}
		out.Worlds = append(out.Worlds, w)
		for seed := range w.Each {
			jobs = append(jobs, func() string {
				spans := []Span{{0, r.Days, true}}
				if r.Calibrate {
					spans = append(spans, Span{r.Days, 2 * r.Days, false})
				}
				ts := quiet(g, kind, uint64(seed+1), spans)
				w.Each[seed].First = ts[0]
				if r.Calibrate {
					w.Each[seed].Next = ts[1][rivalSettings:]
				}
				return fmt.Sprintf("quiet days, %s, seed %d of %d", kind.Name, seed+1, len(w.Each))
			})
		}
	}
	days := make([]Tally, r.FirstDays)
	for i := range days {
		jobs = append(jobs, func() string {
			days[i] = quiet(g, Realistic, uint64(firstDaySeed+i), []Span{{0, 1, true}})[0]
			return fmt.Sprintf("first days, %d of %d", i+1, len(days))
		})
	}
	for _, where := range r.Wheres {
		s := Site{Where: where, Traces: make([][]Trace, len(Classes)), Probes: make([][]Trace, len(Classes))}
		out.Sites = append(out.Sites, s)
		for c := range Classes {
			jobs = append(jobs, func() string {
				for seed := range r.Incidents {
					s.Traces[c] = append(s.Traces[c], Incident(g, &where, &Classes[c], uint64(seed+1)))
				}
				for seed := 0; r.Calibrate && where.History == 0 && seed < r.Probes; seed++ {
					s.Probes[c] = append(s.Probes[c], Incident(g, &where, &Classes[c], uint64(probeSeed+seed)))
				}
				return fmt.Sprintf("incidents, %s, %s", where.Name, Classes[c].Name)
			})
		}
	}
	if r.Sweep > 0 {
		var more []func() string
		out.Sweep, more = sweeps(m, &r)
		jobs = append(jobs, more...)
		out.Examples = make([]Example, len(examples))
		for i := range examples {
			jobs = append(jobs, func() string {
				out.Examples[i] = examples[i].run(m)
				return "an example, " + examples[i].Name
			})
		}
	}
	parallel(jobs, progress)
	for i := range out.Worlds {
		w := &out.Worlds[i]
		for j := range w.Each {
			w.All.add(w.Each[j].First)
			w.Each[j].First = w.Each[j].First[rivalSettings:]
		}
	}
	for _, d := range days {
		out.FirstDay.add(d)
	}
	return out
}

// parallel runs all jobs, as many at a time as there are processors.
func parallel(jobs []func() string, progress func(string)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range min(runtime.GOMAXPROCS(0), len(jobs)) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(jobs) {
					return
				}
				what := jobs[i]()
				if progress == nil {
					continue
				}
				mu.Lock()
				done++
				progress(fmt.Sprintf("%3d of %d: %s", done, len(jobs), what))
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}
