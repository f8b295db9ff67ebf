package evidencebench

import (
	"fmt"
	"io"
	"strings"

	"github.com/tocsin-project/tocsin/internal/detect/evidence"
)

// constant is one of the model's, by name, for the sweep.
type constant struct {
	name string
	at   func(*evidence.Model) *float64
}

var constants = []constant{
	{"tolerance c", func(m *evidence.Model) *float64 { return &m.Tolerance }},
	{"drift, standard deviations", func(m *evidence.Model) *float64 { return &m.DriftSDs }},
	{"drift prior", func(m *evidence.Model) *float64 { return &m.DriftPrior }},
	{"weight of the drift prior", func(m *evidence.Model) *float64 { return &m.DriftHours }},
	{"first-day tolerance", func(m *evidence.Model) *float64 { return &m.FirstDay }},
	{"dispersion prior", func(m *evidence.Model) *float64 { return &m.Dispersion }},
	{"weight of the dispersion prior", func(m *evidence.Model) *float64 { return &m.DispersionOf }},
	{"cap ε", func(m *evidence.Model) *float64 { return &m.Cap }},
	{"nearest alternative", func(m *evidence.Model) *float64 { return &m.FirstLevel }},
	{"farthest alternative", func(m *evidence.Model) *float64 { return &m.LastLevel }},
	{"half-life", func(m *evidence.Model) *float64 { return &m.HalfLife }},
	{"quantile of the upper bound", func(m *evidence.Model) *float64 { return &m.UpperZ }},
}

// Sensitivity writes what ±50% of each constant does, and blips of other lengths. Few seeds: it shows what matters, not the
// third digit.
func Sensitivity(w io.Writer, days, incidents int, progress func(string)) error {
	var b strings.Builder
	fmt.Fprintf(&b, "One constant at a time. False: findings without a floor and pages, in %d days of each world, at a budget of 1 per 7 days "+
		"so that there is something to count. Delays: medians of %d seeds at a budget of 1 per 30 days.\n\n", days, incidents)
	fmt.Fprintf(&b, "| setting | realistic | drifting | heavy | masked write | step to 5%% | creeping to 0.3%% | creeping to 1%% |\n|---|---|---|---|---|---|---|---|\n")
	row := func(name string, m *evidence.Model) {
		fmt.Fprintf(&b, "| %s |", name)
		for _, kind := range []Kind{Realistic, Drifting, Heavy} {
			a := Quiet(kind, m, 101, days)
			fmt.Fprintf(&b, " %d, %d |", a[evidenceBare].Over(-0.63), a[evidenceFloor].Over(-0.63))
		}
		for _, i := range []int{0, 3, 4, 5} {
			var ts []*Traces
			for seed := range incidents {
				ts = append(ts, Incident(Classes[i], m, uint64(seed+1)))
			}
			median, _ := Delays(ts, evidenceFloor, 0)
			fmt.Fprintf(&b, " %s |", figure(median))
		}
		b.WriteString("\n")
		if progress != nil {
			progress(name)
		}
	}
	row("as shipped", BenchModel())
	for _, minutes := range []int{1, 2, 4, 5} {
		m := BenchModel()
		m.Burst = minutes
		row(fmt.Sprintf("blips of %d min", minutes), m)
	}
	for _, c := range constants {
		for _, f := range []float64{0.5, 1.5} {
			m := BenchModel()
			*c.at(m) *= f
			row(fmt.Sprintf("%s × %.1f = %.4g", c.name, f, *c.at(m)), m)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
