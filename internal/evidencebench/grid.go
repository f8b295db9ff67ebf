package evidencebench

import (
	"fmt"
	"math"

	"github.com/tocsin-project/tocsin/internal/detect/evidence"
)

// Family is one way of alerting.
type Family int

// Families that are compared. Tocsin is the last one.
const (
	BurnObjective Family = iota
	BurnLearned
	Share
	Deviation
	Tocsin
	families
)

func (f Family) String() string {
	return [...]string{
		"burn rate, one objective", "burn rate, learned rates", "share over a threshold", "deviation from the trailing day", "Tocsin's evidence",
	}[f]
}

// base is a family's rule with its windows; floor, for and threshold are swept on top of it.
type base struct {
	family  Family
	windows string
	nominal float64 // the threshold that a factor of 1 stands for
}

// bases of the rivals. The burn rates are those of the SRE workbook, chapter 5, and each of its pairs alone.
var bases = [...]base{
	{BurnObjective, "1 h and 5 min, or 6 h and 30 min", 0.001}, {BurnObjective, "1 h and 5 min", 0.001}, {BurnObjective, "6 h and 30 min", 0.001},
	{BurnLearned, "1 h and 5 min, or 6 h and 30 min", 1}, {BurnLearned, "1 h and 5 min", 1}, {BurnLearned, "6 h and 30 min", 1},
	{Share, "1 min", 0.05}, {Share, "5 min", 0.05}, {Share, "15 min", 0.05},
	{Deviation, "1 min", 4}, {Deviation, "5 min", 4}, {Deviation, "15 min", 4},
}

const rivalBases = len(bases)

// What each rival is tried with: failures that there must be at least (in the last hour for burn rates, in the window for the others), and
// minutes for which the condition must hold. Tocsin is tried with floors only; it has `blips` in the place of `for`.
var (
	floors = [...]uint64{1, 10, 30, 100, 300, 1000}
	fors   = [...]int{0, 1, 2, 3, 5, 10}
)

const (
	rivalSettings = rivalBases * len(floors) * len(fors)
	floor30       = 2
)

// levels is a grid of thresholds, as log₁₀ of a factor on the nominal one.
type levels struct {
	lo, step float64
	n        int
}

var (
	rivalLevels    = levels{-1.5, 0.02, 326} // a factor of 0.03 to 100,000
	evidenceLevels = levels{-1.5, 0.01, 951} // decades of evidence
)

const none = int16(-1)

// at is the highest level of the grid that a score reaches, or none.
func (g levels) at(score float64) int16 {
	i := math.Floor((score-g.lo)/g.step + 1e-9)
	if !(i >= 0) {
		return none
	}
	return int16(min(i, float64(g.n-1)))
}

func (g levels) score(i int) float64 { return g.lo + g.step*float64(i) }

// zero is the level of the nominal threshold.
func (g levels) zero() int { return int(g.at(0)) }

// Setting is a rule with everything but its threshold.
type Setting struct {
	Family Family
	Base   int // place in bases, or the minutes of a blip
	Floor  uint64
	For    int // minutes
}

// grid is all settings that one run compares, the rivals' first. Bursts are the lengths of blips that Tocsin is tried with, the shortest first.
type grid struct {
	bursts   []int
	settings []Setting
	models   []*evidence.Model
}

func newGrid(m *evidence.Model, bursts []int) *grid {
	g := &grid{bursts: bursts}
	for b := range bases {
		for _, fl := range floors {
			for _, d := range fors {
				g.settings = append(g.settings, Setting{bases[b].family, b, fl, d})
			}
		}
	}
	for _, minutes := range bursts {
		for _, fl := range floors {
			g.settings = append(g.settings, Setting{Tocsin, minutes, fl, 0})
		}
		one := *m
		one.Burst = minutes
		g.models = append(g.models, &one)
	}
	return g
}

func (g *grid) levels(setting int) levels {
	if setting < rivalSettings {
		return rivalLevels
	}
	return evidenceLevels
}

// find is the place of a setting.
func (g *grid) find(s Setting) int {
	for i, x := range g.settings {
		if x == s {
			return i
		}
	}
	return -1
}

// shipped is the place of what Tocsin's rule is shipped with.
func (g *grid) shipped() int { return g.find(Setting{Tocsin, 3, 30, 0}) }

// Words are how an operator would write a setting at a threshold.
func (s Setting) Words(score float64) string {
	f := math.Pow(10, score)
	out := ""
	switch s.Family {
	case BurnObjective:
		out = fmt.Sprintf("objective %s, %s", percentOf(1-min(0.9999, bases[s.Base].nominal*f)), bases[s.Base].windows)
	case BurnLearned:
		out = fmt.Sprintf("%.3g × the learned rate × 14.4 or 6, %s", f, bases[s.Base].windows)
	case Share:
		out = fmt.Sprintf("over %s in %s", percentOf(bases[s.Base].nominal*f), bases[s.Base].windows)
	case Deviation:
		out = fmt.Sprintf("%.3g sd in %s", bases[s.Base].nominal*f, bases[s.Base].windows)
	default:
		days := BudgetDays * f
		for _, d := range budgetsTried {
			if math.Abs(days/d-1) < 0.025 { // the grid of levels is that fine
				days = d
			}
		}
		out = fmt.Sprintf("blips %dm, budget 1 per %.3gd", s.Base, days)
	}
	if s.Floor > 1 {
		out += fmt.Sprintf(", ≥ %d failures", s.Floor)
	}
	if s.For > 0 {
		out += fmt.Sprintf(", for %dm", s.For)
	}
	return out
}

func percentOf(v float64) string { return fmt.Sprintf("%.4g%%", 100*v) }
