// Package evidence says how strongly counts speak against "all is normal". One Key watches one path, slice or area: it
// learns what is usual there and keeps an e-detector (a Shiryaev–Roberts sum of likelihood ratios), whose threshold follows from the
// number of false alarms that a user allows. docs/evidence.md derives the formulas and names the sources.
//
// It is pure: time is a minute number that the caller passes, equal calls give equal bytes. It is not for deciding what
// to do about evidence, nor for finding out where the trouble is: packages detect, localise and suspect do that.
package evidence

// alternatives is the number of levels that a key could have changed to.
const alternatives = 9

// keep is how many minutes of counts a key remembers: the longest window in which excess is looked for.
const keep = 120

// MaxBurst bounds Model.Burst.
const MaxBurst = 20

const (
	hour = 60
	day  = 24 * hour
	week = 7 * day
)

// Model holds the constants. Default and Arrivals give those that were measured; docs/evidence.md says what happens when
// one of them is changed. A Model is shared by many keys and not changed while they live.
type Model struct {
	// Unbounded says that counts have no upper limit given the exposure: arrivals in time, such as tickets. Otherwise
	// each count is a part of its exposure, such as failures of requests, and levels are compared by their odds.
	Unbounded bool

	PriorCount, PriorExposure float64 // what a key is taken to have seen before its first minute
	HalfLife                  float64 // of what was learned, in minutes
	HoldBack                  int     // a minute is learned this many minutes later, less on a young key
	UpperZ                    float64 // normal quantile of the upper bound of the level
	MinLevel                  float64 // a tolerated level is never lower

	Tolerance     float64 // the level may always be this many times its upper bound
	DriftSDs      float64 // and this many standard deviations of its hourly drift higher
	DriftPrior    float64 // relative variance of hours beyond chance
	DriftHours    float64 // weight of that prior
	FirstDay      float64 // least tolerance while a key is young
	Young         int64   // minutes for which it is
	Dispersion    float64 // prior of 1/k of a minute's count
	DispersionMin float64
	DispersionMax float64
	DispersionOf  float64 // weight of that prior, in minutes
	Settled       float64 // exposure before which the level is too little known to say how counts spread around it

	FirstLevel float64 // the nearest alternative, as a multiple of the odds tolerated
	LastLevel  float64 // the farthest one: odds, or a multiple of the level if Unbounded
	Cap        float64 // ε: no burst adds more than −log₁₀ ε decades
	Burst      int     // minutes of one burst
	Memory     float64 // minutes after which what may have begun counts e times less
	Ceiling    float64 // evidence in decades that is not exceeded, so that what is over can be seen to be over

	Blind       int     // minutes at the start of a key in which it proves nothing
	GuardLearn  float64 // above this evidence nothing is learned
	GuardForget float64 // above this one the last hour's bad minutes will not be learned either
	GuardMax    int     // minutes after which a new level is accepted as usual
	WinsorSDs   float64 // counts further out are learned as if they were this far
}

// Default is for failures or slow requests as a part of requests.
func Default() Model {
	return Model{
		PriorCount: 0.5, PriorExposure: 100, HalfLife: week, HoldBack: hour, UpperZ: 1.645, MinLevel: 1e-4,
		Tolerance: 2, DriftSDs: 3.5, DriftPrior: 0.03, DriftHours: 12, FirstDay: 4, Young: day,
		Dispersion: 0.3, DispersionMin: 0.1, DispersionMax: 5, DispersionOf: 10,
		FirstLevel: 2, LastLevel: 9, Cap: 1e-4, Burst: 3, Memory: 4 * hour, Ceiling: 3,
		Blind: 30, GuardLearn: -3, GuardForget: -1, GuardMax: 6 * hour, WinsorSDs: 4,
	}
}

// Arrivals is for counts in time, such as the distinct accounts that write to the help desk about an area: a
// gamma–Poisson model, in which the exposure of a minute is 1.
func Arrivals() Model {
	m := Default()
	m.Unbounded = true
	m.PriorCount, m.PriorExposure = 0.5, 3*hour
	// Minutes with a ticket in an hour, and hours with two, say little about how much they differ; and what is found after
	// an hour must not have been learned by then.
	// A desk that is known since Sunday has seen no Monday.
	m.FirstDay, m.Young = 6, week+day
	m.DispersionOf, m.DriftPrior, m.DriftHours, m.HoldBack, m.Settled = 1000, 0.05, 2*24, keep-10, day
	m.MinLevel = 1.0 / (12 * hour)
	m.LastLevel = 64
	return m
}

// odds and share translate between a level and the scale on which levels are compared.
func (m *Model) odds(p float64) float64 {
	if m.Unbounded {
		return p
	}
	return p / (1 - min(p, 1-1e-9))
}

func (m *Model) share(odds float64) float64 {
	if m.Unbounded {
		return odds
	}
	return odds / (1 + odds)
}
