package evidencebench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect/evidence"
)

// Run says what to measure.
type Run struct {
	Seeds     int // of the realistic world
	HardSeeds int // of each of the others
	Days      int
	Incidents int // seeds of each class of incident
	// Progress is told what is done; nil tells nobody.
	Progress func(string)
}

// Full is what the committed report shows, Short what go test has time for.
var (
	Full  = Run{Seeds: 20, HardSeeds: 5, Days: 30, Incidents: 20}
	Short = Run{Seeds: 3, Days: 10, Incidents: 5}
)

// BenchModel is the shipped one, but that evidence is not cut off above its threshold: so the threshold can be raised here.
func BenchModel() *evidence.Model {
	m := evidence.Default()
	m.Burst, m.Ceiling = 3, 12
	return &m
}

// Result is what one world gave.
type Result struct {
	Kind   Kind
	Months float64
	Alarms [methods]Alarms
	Raise  [methods]float64 // decades, until no more than one alarm in 30 days is left
}

// Worlds runs the quiet days.
func (r *Run) Worlds(m *evidence.Model) (out []Result) {
	for i, kind := range []Kind{Realistic, Drifting, Heavy} {
		n := r.Seeds
		if i > 0 {
			n = r.HardSeeds
		}
		if n == 0 {
			continue
		}
		x := Result{Kind: kind, Months: float64(n*r.Days) / 30}
		for seed := range n {
			a := Quiet(kind, m, uint64(seed+1), r.Days)
			for j := range a {
				x.Alarms[j] = append(x.Alarms[j], a[j]...)
			}
			r.tell("%s, seed %d of %d", kind.Name, seed+1, n)
		}
		for j := range x.Raise {
			x.Raise[j] = x.Alarms[j].Raised(int(x.Months))
		}
		out = append(out, x)
	}
	return out
}

// Traces seeds all incidents of all classes.
func (r *Run) Traces(m *evidence.Model) [][]*Traces {
	out := make([][]*Traces, len(Classes))
	for i, c := range Classes {
		for seed := range r.Incidents {
			out[i] = append(out[i], Incident(c, m, uint64(seed+1)))
		}
		r.tell("%s", c.Name)
	}
	return out
}

func (r *Run) tell(format string, args ...any) {
	if r.Progress != nil {
		r.Progress(fmt.Sprintf(format, args...))
	}
}

// Delays gives the median and the longest delay of a class under one method at a threshold.
func Delays(ts []*Traces, method int, threshold float64) (median, longest float64) {
	var d []float64
	for _, t := range ts {
		d = append(d, t.Delay(method, threshold))
	}
	slices.Sort(d)
	n := len(d)
	return (d[(n-1)/2] + d[n/2]) / 2, d[n-1]
}

// UpperPoisson is the number that a Poisson count of the given mean exceeds in less than 5 of 100 cases.
func UpperPoisson(mean float64) int {
	p := math.Exp(-mean)
	sum, n := p, 0
	for sum < 0.95 {
		n++
		p *= mean / float64(n)
		sum += p
	}
	return n
}

// Write makes the report.
func (r *Run) Write(w io.Writer, worlds []Result, traces [][]*Traces, took time.Duration) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Budget asked for: 1 false page in %d days for the whole. A world has %d keys: %d paths and %d slices of %d services.\n",
		BudgetDays, Keys, services*perService, sliced*perSliced, services)
	fmt.Fprintf(&b, "Incidents: %d seeds of each class, after one to three days of history. CPU time %s on one core.\n", r.Incidents, took.Round(time.Second))
	for _, x := range worlds {
		x.write(&b)
	}
	if len(worlds) > 0 {
		fmt.Fprintf(&b, "\n### Delays at equal false pages\n\nMinutes, median / longest, after raising each threshold until the realistic world gives "+
			"at most one false page in 30 days; “–” is missed.\n")
		delays(&b, traces, &worlds[0].Raise)
		b.WriteString("\n### Delays at nominal settings\n\nThe same without raising anything.\n")
		delays(&b, traces, &[methods]float64{})
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (x *Result) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n### Quiet: %s\n\n%.0f months. False pages per 30 days at nominal settings; what each threshold has to be multiplied by "+
		"until at most one is left.\n\n| method | false per 30 days | raise needed |\n|---|---|---|\n", x.Kind.Name, x.Months)
	for i, name := range Names {
		raise := "–"
		if x.Raise[i] > 0 {
			raise = fmt.Sprintf("×%.3g", math.Pow(10, x.Raise[i]))
		}
		fmt.Fprintf(b, "| %s | %.1f | %s |\n", name, float64(x.Alarms[i].Over(0))/x.Months, raise)
	}
	b.WriteString("\n| budget of the evidence rule | allowed | upper 95% bound | findings without floor | pages |\n|---|---|---|---|---|\n")
	for _, days := range []float64{7, 30, 90} {
		allowed, shift := x.Months*30/days, math.Log10(days/BudgetDays)
		fmt.Fprintf(b, "| 1 per %.0fd | %.1f | %d | %d | %d |\n", days, allowed, UpperPoisson(allowed),
			x.Alarms[evidenceBare].Over(shift), x.Alarms[evidenceFloor].Over(shift))
	}
}

func delays(b *strings.Builder, traces [][]*Traces, raise *[methods]float64) {
	b.WriteString("\n| incident |")
	for _, n := range Names {
		fmt.Fprintf(b, " %s |", n)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", methods) + "\n")
	for i, c := range Classes {
		fmt.Fprintf(b, "| %s |", c.Name)
		for m := range methods {
			median, longest := Delays(traces[i], m, raise[m])
			fmt.Fprintf(b, " %s / %s |", figure(median), figure(longest))
		}
		b.WriteString("\n")
	}
}

func figure(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "–"
	case v < 20:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
