package evidence_test

import (
	"math"
	"testing"

	"github.com/tocsin-project/tocsin/internal/detect/evidence"
)

// bare has nothing but statistics between chance and an alarm.
func bare(m evidence.Model) *evidence.Model {
	m.Tolerance, m.DriftSDs, m.FirstDay = 1, 0, 1
	return &m
}

// The promise of what is put together, at a budget so large that a test can count: both sources are exactly at what is learned.
func TestTheBudgetHoldsForWhatIsFused(t *testing.T) {
	failures, tickets := bare(evidence.Default()), bare(evidence.Arrivals())
	const perMinute = 1.0 / day
	lags := max(failures.Lags(), tickets.Lags())
	alarms, days := 0, 0
	for seed := range uint64(10) {
		a, b, r := evidence.New(failures, perMinute, 0, nil), evidence.New(tickets, perMinute, 0, nil), draws(seed)
		over := false
		for i := range int64(20 * day) {
			n, f := r.of(50, 0.02)
			a.Observe(i, n, f)
			b.Observe(i, 1, r.poisson(0.3))
			if s := evidence.Fuse(perMinute, lags, a.Gain(i), b.Gain(i)); s >= 0 && !over {
				over = true
				alarms++
			} else if s < -1 {
				over = false
			}
		}
		days += 20
	}
	t.Logf("%d alarms in %d days, allowed is one a day", alarms, days)
	if alarms > days {
		t.Errorf("%d alarms in %d days, allowed is one a day", alarms, days)
	}
}

func TestIndependentSourcesMultiplyAndDependentOnesAreAveraged(t *testing.T) {
	m := evidence.Default()
	lags := m.Lags()
	const share = 1e-6
	// Four decades from each are far from enough alone.
	if s := evidence.Decades(share, 1e4); math.Abs(s+2) > 1e-9 {
		t.Errorf("one source of four decades is worth %.2f of a budget of six", s)
	}
	if s := evidence.Fuse(share, lags, 1e5, 1e5); s < 0.9 {
		t.Errorf("two sources of five decades are worth %.2f", s)
	}
	if s := evidence.Fuse(share, lags, 1e5, 1); s > -0.9 {
		t.Errorf("a source that says nothing lends weight: %.2f", s)
	}
	if s := evidence.Fuse(share, lags, 1e9, 0); math.Abs(s-(3-math.Log10(4))) > 0.01 {
		t.Errorf("a strong source beside one that speaks against it is worth %.2f", s)
	}
	var paths, slices, none evidence.Source
	paths.Add(1, 1e6)
	paths.Add(3, 0)
	slices.Add(1, 1e6)
	if g, ok := evidence.Mean(paths, slices, none); !ok || g != (0.25e6+1e6)/2 {
		t.Errorf("averaged to %g", g)
	}
	if _, ok := evidence.Mean(none); ok {
		t.Error("no keys are a source")
	}
}

func TestWhatIsLongPastCountsLess(t *testing.T) {
	m := evidence.Default()
	k, r := evidence.New(&m, monthly, 0, nil), draws(3)
	feed(k, r, 0, 2*day, 300, 0.003)
	feed(k, r, 2*day, 2*day+6, 300, 0.05)
	now := k.Gain(2*day + 6)
	if later := k.Gain(2*day + 6 + int64(m.Memory)); math.Abs(later*math.E/now-1) > 1e-9 {
		t.Errorf("%g are %g after the memory's length", now, later)
	}
	m.Memory = 0
	if k.Gain(5*day) != k.Gain(2*day+6) {
		t.Error("fades without a memory's length")
	}
}

func TestSharesOfAreasAddUpToOne(t *testing.T) {
	sum := 0.0
	for i := range 1 << 16 {
		sum += evidence.ShareOfArea(i)
	}
	if sum > 1 || sum < 0.9 || evidence.ShareOfArea(0) != 1.0/16 {
		t.Errorf("shares add up to %g, the first is %g", sum, evidence.ShareOfArea(0))
	}
}
