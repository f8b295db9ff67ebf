package evidencebench

import (
	"math"
	"slices"
)

// Calibrated is what came of choosing a setting by the first month of each seed, and living with it for the next one.
type Calibrated struct {
	Days    float64 // budget: one in so many
	Seeds   int
	Allowed float64 // in all seeds together
	// Nominal are the pages of the setting as shipped, in both months; First and Next those of the chosen ones.
	NominalFirst, NominalNext, First, Next int
	Delay                                  [groups]float64 // medians over the seeds of the chosen settings' delays
	Nominal                                [groups]float64
	Chosen                                 []Point // of each seed
}

// budgetsTried are the budgets that calibration may write into a rule: from one a day to one in thirty years.
var budgetsTried = []float64{1, 3, 7, 30, 90, 365, 3650, 10950}

// candidates are Tocsin's settings with the delays that seeded incidents of other seeds show, the fastest first.
func (m *Measured) candidates(probes [][]Trace) (out []Point) {
	none := m.g.tally() // their pages are looked up later, by seed
	for i := rivalSettings; i < len(m.g.settings); i++ {
		for _, days := range budgetsTried {
			p := m.of(none, 1, probes, i, int(evidenceLevels.at(math.Log10(days/BudgetDays))))
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b Point) int {
		switch {
		case a.Mean[All] < b.Mean[All]:
			return -1
		case a.Mean[All] > b.Mean[All]:
			return 1
		}
		return 0
	})
	return out
}

// reserve is the part of the budget that the first month may use up. The setting that is chosen is one that happened to come
// out well there, so the month after is worse; half leaves room for that. With a budget of less than two pages a month it
// asks for a month without any.
const reserve = 0.5

// Calibrate chooses, for each seed of a world, the fastest setting that would have kept a half of the budget in the first month.
func (m *Measured) Calibrate(w *World, s *Site, days float64) Calibrated {
	may := math.Floor(reserve * float64(m.Run.Days) / days)
	out := Calibrated{Days: days, Seeds: len(w.Each), Allowed: float64(len(w.Each)*m.Run.Days) / days}
	cs := m.candidates(s.Probes)
	shipped, level := m.g.shipped(), int(evidenceLevels.at(math.Log10(days/BudgetDays)))
	nominal := m.of(w.All, w.Months, s.Traces, shipped, level)
	out.Nominal = nominal.Mean
	var delays [groups][]float64
	for i := range w.Each {
		e := &w.Each[i]
		out.NominalFirst += int(e.First[shipped-rivalSettings][level])
		out.NominalNext += int(e.Next[shipped-rivalSettings][level])
		chosen := len(cs) - 1
		for j := range cs {
			if float64(e.First[cs[j].Setting-rivalSettings][cs[j].Level]) <= may {
				chosen = j
				break
			}
		}
		c := cs[chosen]
		at := c.Setting - rivalSettings
		out.First += int(e.First[at][c.Level])
		out.Next += int(e.Next[at][c.Level])
		real := m.of(w.All, w.Months, s.Traces, c.Setting, c.Level)
		for g := range groups {
			delays[g] = append(delays[g], real.Mean[g])
		}
		out.Chosen = append(out.Chosen, c)
	}
	for g := range groups {
		out.Delay[g] = median(delays[g])
	}
	return out
}
