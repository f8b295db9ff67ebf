package evidencebench_test

import (
	"math"
	"testing"

	"github.com/tocsin-project/tocsin/internal/evidencebench"
)

// Places of the methods whose figures are promised.
const (
	learnedBurn = 2 // learned rate, at least 30 failures an hour: the strong rival
	pages       = 6
)

// The short form of make bench-evidence: a month in all, five seeds of each incident. Bounds are loose enough for a month
// and tight enough to see a broken constant.
func TestTheBudgetHoldsAndIncidentsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some ten seconds")
	}
	m := evidencebench.BenchModel()
	r := evidencebench.Short
	world := r.Worlds(m)[0]
	for _, days := range []float64{7, 30, 90} {
		allowed := world.Months * 30 / days
		got := world.Alarms[pages].Over(math.Log10(days / evidencebench.BudgetDays))
		if top := evidencebench.UpperPoisson(allowed); got > top {
			t.Errorf("1 per %.0fd: %d false pages in %.0f month, at most %d are chance", days, got, world.Months, top)
		}
	}
	if got, rival := world.Alarms[pages].Over(0), world.Alarms[learnedBurn].Over(0); rival < 4*got || rival == 0 {
		t.Errorf("%d false pages, the learned burn rate has %d: is the world still one that tempts?", got, rival)
	}
	traces := r.Traces(m)
	for i, within := range []float64{7, 5, 4.5, 7, 90, 200, 4.5, 8} {
		median, longest := evidencebench.Delays(traces[i], pages, 0)
		if median > within {
			t.Errorf("%s: median delay %.1f minutes, want %.1f", evidencebench.Classes[i].Name, median, within)
		}
		if i != 4 && math.IsInf(longest, 1) { // a drifting path may hide a creep to 0.3%
			t.Errorf("%s: missed", evidencebench.Classes[i].Name)
		}
	}
	// Creep: at equal false pages at most half the delay of the strong rival.
	for _, i := range []int{4, 5} {
		ours, _ := evidencebench.Delays(traces[i], pages, world.Raise[pages])
		theirs, _ := evidencebench.Delays(traces[i], learnedBurn, world.Raise[learnedBurn])
		if ours > theirs/2 {
			t.Errorf("%s: %.0f minutes, the learned burn rate %.0f at equal false pages", evidencebench.Classes[i].Name, ours, theirs)
		}
	}
}

func TestUpperPoisson(t *testing.T) {
	for mean, want := range map[float64]int{1: 3, 4.3: 8, 20: 28} {
		if got := evidencebench.UpperPoisson(mean); got != want {
			t.Errorf("mean %.1f: %d, want %d", mean, got, want)
		}
	}
}
