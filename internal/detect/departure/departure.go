// Package departure tells when a gauge leaves what is usual for it, either way, without being told what is usual. A Watch learns
// one series: a local level, the shape of its day, and how far its values ordinarily stray from both. It judges each value by how
// rarely one that far out came before, so what a user sets is how many false alarms to accept, not a number of deviations.
//
// The method: two forecasts that an on-call engineer would make by eye, "as it was over the last hour" and "as it is at this time
// of day, at today's height". A value is a departure only if neither explains it: a morning's rise is no departure from the
// day's shape, and a level that was new an hour ago is none from the last hour. How rare a residual is follows from the larger of
// two estimates: the part of past residuals that were as large, and the tail of a stretched exponential through two of their
// quantiles, for what is rarer than the past is long (peaks over a threshold; Siffer et al., "Anomaly Detection in Streams with
// Extreme Value Theory", KDD 2017). Residuals are divided by the median of the latest, so that a noisy hour is no departure. While
// a departure lasts nothing is learned from it, for a time; a departure counts once, however long it is.
//
// It is pure: time is a minute number that the caller passes, equal calls give equal bytes. It is not for gauges with a limit, of
// which it matters how near they are to it, nor for counts of requests: package evidence judges those.
package departure

import "math"

const (
	// Capacities of the rings; a Model says how much of them is used.
	maxNear   = 90
	maxHeight = 18
	maxScale  = 252
	hours     = 192 // medians of hours, for the shape of the day: eight days
	shapes    = 7   // days that vote on it
	perOctave = 4
	bins      = 64 // from 2^-4 to 2^12 times the usual residual
	lowest    = -4
	fewest    = 12 // values before there is a forecast, residuals before they have a scale
	spacingOf = 20 // gaps over which the usual one is averaged
)

// Model holds what a user accepts and the constants. It is shared by many watches and not changed while they live.
type Model struct {
	PerMinute float64 // false alarms of all gauges together
	Among     float64 // so many gauges share them; less than one is one
	MinChange float64 // relative to the forecast; less is no departure, however regular the gauge is
	Up, Down  bool    // the directions that count

	Near     int     // blocks of the local level
	Height   int     // blocks from which today's height over the day's shape is taken
	Scale    int     // blocks whose median residual is what residuals are divided by
	Ready    float64 // residuals before anything is judged
	HalfLife float64 // of what was learned of residuals, in blocks
	TailFrom float64 // the quantiles, from above, that the tail is drawn through
	TailTo   float64
	Heaviest float64 // the tail falls no faster than this power, 1 is an exponential
	Credible float64 // a forecast whose scale is this many times the other's explains nothing
	HoldFor  int     // blocks of a departure that teach nothing, at least
	HoldTime int     // the same in minutes
	Frequent float64 // departures within the time of one allowed one, past which they are how the gauge is
}

// Default is what was measured; docs/rules.md says what happens when one of the figures is changed.
func Default() Model {
	return Model{
		PerMinute: 1.0 / (7 * 24 * 60), MinChange: 0.1, Up: true, Down: true,
		Near: 60, Height: 12, Scale: 168, Ready: 48, HalfLife: 2000, TailFrom: 0.2, TailTo: 0.03, Heaviest: 1, Credible: 2,
		HoldFor: 24, HoldTime: 6 * 60, Frequent: 3,
	}
}

const (
	local = iota
	daily
	forecasts
)

// Watch is what is known of one gauge. The zero value knows nothing. It is owned by one goroutine. Size: see TestSize.
type Watch struct{ s state }

// state has fixed sizes only, so that it is written and read as it is.
type state struct {
	Minute  int64 // of the newest block; 0 before the first
	Blocks  uint32
	Spacing float32 // usual number of minutes between blocks

	Near   [maxNear]float32
	NearN  uint32
	Height [maxHeight]float32
	HighN  uint32
	Scale  [forecasts][maxScale]float32
	ScaleN [forecasts]uint32
	Bins   [forecasts][bins]float32
	Seen   [forecasts]float32 // weight of all bins

	Hours [hours]float32 // medians by hour; NaN where there is none
	Hour  int64          // the open one
	Open  [60]float32
	OpenN uint32

	Run   int32              // blocks that the present departure has lasted
	Since int64              // its first minute
	First [forecasts]float32 // sizes of its first residuals
	Often float32            // departures so far, fading with the budget
}

// Judgement is what a block's value means.
type Judgement struct {
	Ready    bool // enough is known to judge
	Abnormal bool
	Value    float64
	Expected float64 // by the forecast that speaks most for the value
	Scatter  float64 // usual residual of that forecast
	Rarity   float64 // part of ordinary values that lie as far out
}

// residual is what one forecast makes of a value.
type residual struct {
	known           bool // there is a forecast
	expected, scale float64
	off             float64
	size            float64 // in terms of the scale
}

// most is the largest value that is one: twice as much still fits what is kept of it. Beyond are the marks by which some say that
// they have no value.
const most = math.MaxFloat32 / 4

// Observe takes in the value of one minute, which must be later than the last one; it returns false where it is not, and where
// the value is none.
func (w *Watch) Observe(m *Model, minute int64, value float64) (j Judgement, ok bool) {
	s := &w.s
	if s.Blocks > 0 && minute <= s.Minute || !(math.Abs(value) <= most) {
		return j, false
	}
	s.pass(m, minute)
	shape, shaped := s.shape(minute)
	rs := s.residuals(m, value, shape, shaped)
	j = s.judge(m, value, &rs)
	s.learn(m, &rs, j.Abnormal)
	if !s.held(m, j.Abnormal) {
		put(s.Near[:m.Near], &s.NearN, value)
		if shaped {
			put(s.Height[:m.Height], &s.HighN, value-shape)
		}
		for f, r := range rs {
			if r.known {
				put(s.Scale[f][:m.Scale], &s.ScaleN[f], r.off)
			}
		}
	}
	if s.OpenN < uint32(len(s.Open)) {
		s.Open[s.OpenN] = float32(value)
		s.OpenN++
	}
	return j, true
}

// residuals compares the value with both forecasts: the last hour, and the shape of the day at today's height.
func (s *state) residuals(m *Model, value, shape float64, shaped bool) (rs [forecasts]residual) {
	if s.NearN >= fewest {
		rs[local] = residual{known: true, expected: medianOf(s.Near[:min(int(s.NearN), m.Near)])}
	}
	if shaped && int(s.HighN) >= m.Height/2 {
		rs[daily] = residual{known: true, expected: shape + medianOf(s.Height[:min(int(s.HighN), m.Height)])}
	}
	for f := range rs {
		r := &rs[f]
		if !r.known {
			continue
		}
		r.off = math.Abs(value - r.expected)
		// What hardly moves has no scale of its own; the last digit of a number is none.
		r.scale = medianOf(s.Scale[f][:min(int(s.ScaleN[f]), m.Scale)]) + 1e-6*math.Abs(r.expected) + 1e-12
		r.size = r.off / r.scale
	}
	return rs
}

// judge asks every credible forecast. A forecast that is always far off explains anything, so it explains nothing.
func (s *state) judge(m *Model, value float64, rs *[forecasts]residual) Judgement {
	j := Judgement{Value: value}
	best := math.Inf(1)
	for f, r := range rs {
		if r.known && float64(s.Seen[f]) >= m.Ready {
			best = min(best, r.scale)
		}
	}
	enough := true
	for f, r := range rs {
		if !r.known || float64(s.Seen[f]) < m.Ready || r.scale > m.Credible*best {
			continue
		}
		enough = enough && math.Abs(value-r.expected) >= m.MinChange*math.Abs(r.expected) && (value > r.expected && m.Up || value < r.expected && m.Down)
		if p := s.rarity(m, f, r.size); !j.Ready || p > j.Rarity {
			j.Ready, j.Rarity, j.Expected, j.Scatter = true, p, r.expected, r.scale
		}
	}
	j.Abnormal = j.Ready && enough && j.Rarity <= m.PerMinute/max(1, m.Among)*max(1, float64(s.Spacing))
	return j
}

// pass lets time go on to a minute.
func (s *state) pass(m *Model, minute int64) {
	if s.Blocks > 0 {
		s.Often *= float32(math.Exp2(-float64(minute-s.Minute) * m.PerMinute))
	}
	s.spaced(minute)
	s.openHour(floorDiv(minute, 60))
}

// spaced learns how far apart blocks are. A gap is no spacing.
func (s *state) spaced(minute int64) {
	if s.Blocks > 0 {
		gap := float64(minute - s.Minute)
		n := float64(min(s.Blocks, spacingOf))
		if n < 3 || gap < 4*float64(s.Spacing) {
			s.Spacing += float32((gap - float64(s.Spacing)) / n)
		}
	}
	s.Blocks = min(s.Blocks+1, math.MaxUint32-1)
	s.Minute = minute
}

// openHour closes the hour before, if a new one has begun.
func (s *state) openHour(hour int64) {
	if s.Blocks == 1 {
		for i := range s.Hours {
			s.Hours[i] = float32(math.NaN())
		}
		s.Hour = hour
	}
	if hour == s.Hour {
		return
	}
	if s.OpenN > 0 {
		s.Hours[place(s.Hour)] = float32(medianOf(s.Open[:s.OpenN]))
	}
	for h, n := s.Hour+1, 0; h < hour && n < hours; h, n = h+1, n+1 {
		s.Hours[place(h)] = float32(math.NaN())
	}
	s.Hours[place(hour)] = float32(math.NaN()) // it was that of eight days ago
	s.Hour, s.OpenN = hour, 0
}

func place(hour int64) int { return int(((hour % hours) + hours) % hours) }

// shape is the median of what was at this time of the last seven days.
func (s *state) shape(minute int64) (float64, bool) {
	var days [shapes]float32
	n := 0
	for k := range int64(shapes) {
		if v, ok := s.at(minute - (k+1)*24*60); ok {
			days[n] = v
			n++
		}
	}
	return medianOf(days[:n]), n > 0
}

// at is the level at a minute of the past, between the middles of two hours. A gauge that reports hourly has its value at the
// hour, and nothing between.
func (s *state) at(minute int64) (float32, bool) {
	h, part := floorDiv(minute, 60), float32(0)
	if s.Spacing < 30 {
		h = floorDiv(minute-30, 60)
		part = float32(minute-30-h*60) / 60
	}
	a, b := s.Hours[place(h)], s.Hours[place(h+1)]
	switch {
	case part == 0 || isNaN(b):
		return a, !isNaN(a)
	case isNaN(a):
		return b, true
	}
	return a + (b-a)*part, true
}

// learn takes residuals into what is usual. Those of a departure are left out: the incident of yesterday must not make today's
// one usual. But where departures come more often than a user accepts, they are how this gauge is, and each then counts once.
func (s *state) learn(m *Model, rs *[forecasts]residual, abnormal bool) {
	if abnormal {
		if s.Run == 0 {
			s.Since = s.Minute
			s.Often++
			for f, r := range rs {
				s.First[f] = -1
				if r.known {
					s.First[f] = float32(r.size)
				}
			}
		}
		s.Run++
		if s.held(m, true) {
			return
		}
	} else if s.Run > 0 {
		s.Run = 0
		if float64(s.Often) > m.Frequent {
			for f, size := range s.First {
				if size >= 0 {
					s.count(m, f, float64(size))
				}
			}
		}
	}
	for f, r := range rs {
		if r.known {
			s.count(m, f, r.size)
		}
	}
}

func (s *state) count(m *Model, f int, size float64) {
	if s.ScaleN[f] < fewest {
		return // the scale is a guess
	}
	fade := float32(math.Exp2(-1 / m.HalfLife))
	for b := range s.Bins[f] {
		s.Bins[f][b] *= fade
	}
	s.Seen[f] = s.Seen[f]*fade + 1
	s.Bins[f][bin(size)]++
}

// held tells that what comes is not learned: a departure lasts, and not yet for so long that it is how the gauge is now.
func (s *state) held(m *Model, abnormal bool) bool {
	return abnormal && (int(s.Run) <= m.HoldFor || s.Minute-s.Since < int64(m.HoldTime))
}

// put writes the next place of a ring; past its length only the place matters, so the count stays below twice that.
func put(ring []float32, n *uint32, v float64) {
	size := uint32(len(ring))
	ring[*n%size] = float32(v)
	if *n++; *n == 2*size {
		*n = size
	}
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
