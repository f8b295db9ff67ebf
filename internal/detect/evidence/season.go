package evidence

import "math"

// Season says how the level of an hour compares with the usual one. Keys of one service share one: alone they have too
// few failures an hour. The caller owns it, encodes it beside its keys and calls it from their goroutine.
type Season interface {
	Factor(minute int64) float64
	// Learn is told what a key counted in a minute that counts as ordinary, and what it expected without any season.
	Learn(minute int64, f, expected float64)
}

const hoursOfWeek = 168

// HourOfWeek learns one factor for each hour of the week. Factors are shrunk towards 1: by how little was expected in that
// hour, and by how few weeks have been seen, so that one bad Monday is no season.
type HourOfWeek struct {
	F, E  [hoursOfWeek]float64
	Weeks [hoursOfWeek]uint8
	Last  [hoursOfWeek]int32
}

var _ Season = (*HourOfWeek)(nil)

const (
	seasonPrior = 30.0 // failures' worth of "no season"
	seasonWeeks = 1.0  // weeks' worth of it
	seasonFade  = 0.8  // what a week leaves of the weeks before
)

func hourOfWeek(minute int64) (h int, w int32) {
	hours := minute / hour
	return int(hours % hoursOfWeek), int32(hours / hoursOfWeek)
}

func (s *HourOfWeek) Learn(minute int64, f, expected float64) {
	h, w := hourOfWeek(minute)
	if s.Weeks[h] == 0 || s.Last[h] != w {
		s.F[h] *= seasonFade
		s.E[h] *= seasonFade
		s.Last[h] = w
		if s.Weeks[h] < math.MaxUint8 {
			s.Weeks[h]++
		}
	}
	s.F[h] += f
	s.E[h] += expected
}

func (s *HourOfWeek) Factor(minute int64) float64 {
	h, w := hourOfWeek(minute)
	weeks := float64(s.Weeks[h])
	if s.Weeks[h] > 0 && s.Last[h] == w {
		weeks-- // the running hour does not vouch for itself
	}
	if weeks <= 0 {
		return 1
	}
	ratio := (s.F[h] + seasonPrior) / (s.E[h] + seasonPrior)
	return max(0.2, min(5, math.Pow(ratio, weeks/(weeks+seasonWeeks))))
}
