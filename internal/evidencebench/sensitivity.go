package evidencebench

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tocsin-project/tocsin/internal/detect/evidence"
)

// constant is one of the model's, by name, for the sweep.
type constant struct {
	name string
	set  func(m *evidence.Model, factor float64) float64
}

func number(at func(*evidence.Model) *float64) func(*evidence.Model, float64) float64 {
	return func(m *evidence.Model, factor float64) float64 {
		*at(m) *= factor
		return *at(m)
	}
}

func whole(at func(*evidence.Model) *int) func(*evidence.Model, float64) float64 {
	return func(m *evidence.Model, factor float64) float64 {
		*at(m) = int(math.Round(float64(*at(m)) * factor))
		return float64(*at(m))
	}
}

// constants are all of the model's that have a size.
var constants = []constant{
	{"blips, minutes", whole(func(m *evidence.Model) *int { return &m.Burst })},
	{"cap ε", number(func(m *evidence.Model) *float64 { return &m.Cap })},
	{"tolerance c", number(func(m *evidence.Model) *float64 { return &m.Tolerance })},
	{"drift, standard deviations", number(func(m *evidence.Model) *float64 { return &m.DriftSDs })},
	{"drift prior", number(func(m *evidence.Model) *float64 { return &m.DriftPrior })},
	{"weight of the drift prior", number(func(m *evidence.Model) *float64 { return &m.DriftHours })},
	{"first-day tolerance", number(func(m *evidence.Model) *float64 { return &m.FirstDay })},
	{"least level", number(func(m *evidence.Model) *float64 { return &m.MinLevel })},
	{"quantile of the upper bound", number(func(m *evidence.Model) *float64 { return &m.UpperZ })},
	{"prior failures", number(func(m *evidence.Model) *float64 { return &m.PriorCount })},
	{"prior requests", number(func(m *evidence.Model) *float64 { return &m.PriorExposure })},
	{"dispersion prior", number(func(m *evidence.Model) *float64 { return &m.Dispersion })},
	{"weight of the dispersion prior", number(func(m *evidence.Model) *float64 { return &m.DispersionOf })},
	{"least dispersion", number(func(m *evidence.Model) *float64 { return &m.DispersionMin })},
	{"largest dispersion", number(func(m *evidence.Model) *float64 { return &m.DispersionMax })},
	{"nearest alternative", number(func(m *evidence.Model) *float64 { return &m.FirstLevel })},
	{"farthest alternative", number(func(m *evidence.Model) *float64 { return &m.LastLevel })},
	{"half-life", number(func(m *evidence.Model) *float64 { return &m.HalfLife })},
	{"memory, minutes", number(func(m *evidence.Model) *float64 { return &m.Memory })},
	{"minutes held back", whole(func(m *evidence.Model) *int { return &m.HoldBack })},
	{"blind minutes of a new key", whole(func(m *evidence.Model) *int { return &m.Blind })},
	{"evidence that stops learning", number(func(m *evidence.Model) *float64 { return &m.GuardLearn })},
	{"evidence that forgets an hour", number(func(m *evidence.Model) *float64 { return &m.GuardForget })},
	{"minutes until a level is accepted", whole(func(m *evidence.Model) *int { return &m.GuardMax })},
	{"learned at most, standard deviations", number(func(m *evidence.Model) *float64 { return &m.WinsorSDs })},
}

// Sensitivity says what one constant does when it is another one. Few seeds: it shows what matters, not the third digit.
type Sensitivity struct {
	Name   string
	Factor float64
	Value  float64
	False  []int     // pages, of each kind, at a budget of 1 per 7 days so that there is something to count
	Delay  []float64 // medians of the classes swept
}

// swept are the classes and the kinds of the sweep.
var (
	swept      = []int{0, 3, 4, 5}
	sweptKinds = []Kind{Realistic, Drifting, Heavy}
)

const sweptSeed = 101

func sweep(name string, factor, value float64, m *evidence.Model, r *Run) *Sensitivity {
	g := newGrid(m, []int{m.Burst})
	s := &Sensitivity{Name: name, Factor: factor, Value: value}
	at := g.find(Setting{Tocsin, m.Burst, floors[floor30], 0})
	for _, kind := range sweptKinds {
		t := quiet(g, kind, sweptSeed, []Span{{0, r.SweepDays, false}})[0]
		s.False = append(s.False, int(t[at][evidenceLevels.at(math.Log10(7.0/BudgetDays))]))
	}
	for _, c := range swept {
		var d []float64
		for seed := range r.Sweep {
			d = append(d, Incident(g, &Wheres[0], &Classes[c], uint64(seed+1)).Delay(at, evidenceLevels.zero()))
		}
		s.Delay = append(s.Delay, median(d))
	}
	return s
}

// sweeps are the jobs that vary each constant; the first result is what is shipped.
func sweeps(m *evidence.Model, r *Run) (out []*Sensitivity, jobs []func() string) {
	out = make([]*Sensitivity, 1+2*len(constants))
	jobs = append(jobs, func() string {
		out[0] = sweep("as shipped", 1, 0, m, r)
		return "sensitivity, as shipped"
	})
	for i, c := range constants {
		for j, f := range []float64{0.5, 1.5} {
			jobs = append(jobs, func() string {
				one := *m
				v := c.set(&one, f)
				out[1+2*i+j] = sweep(c.name, f, v, &one, r)
				return fmt.Sprintf("sensitivity, %s × %.1f", c.name, f)
			})
		}
	}
	return out, jobs
}

// pair is what half and one and a half times one constant do.
type pair struct{ half, more *Sensitivity }

// pairs are ordered by how much they do, the most first.
func pairs(all []*Sensitivity) (out []pair) {
	was := all[0]
	for i := 1; i+1 < len(all); i += 2 {
		out = append(out, pair{all[i], all[i+1]})
	}
	slices.SortStableFunc(out, func(a, b pair) int { return cmp.Compare(b.effect(was), a.effect(was)) })
	return out
}

// effect is the largest change of a delay, in logarithms, or of the false pages of a world, by tens.
func (p pair) effect(was *Sensitivity) (most float64) {
	for _, s := range []*Sensitivity{p.half, p.more} {
		for i, d := range s.Delay {
			if r := math.Abs(math.Log(d / was.Delay[i])); r > most {
				most = r
			}
		}
		for i, n := range s.False {
			most = max(most, math.Abs(float64(n-was.False[i]))/10)
		}
	}
	return most
}
