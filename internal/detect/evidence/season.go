package evidence

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Season says how the level of an hour compares with the usual one. Keys of one service share one: alone they have too
// few failures an hour. The caller owns it, encodes it beside its keys and calls it from their goroutine.
type Season interface {
	Factor(minute int64) float64
	// Learn is told what a key counted in a minute that counts as ordinary, and what it expected without any season.
	Learn(minute int64, f, expected float64)
}

const (
	hoursOfDay  = 24
	daysOfWeek  = 7
	hoursOfWeek = hoursOfDay * daysOfWeek
)

// HourOfWeek learns one factor for each hour of the week, as the product of three: of the hour of the day, which is known after
// some days; of the day of the week, known after some weeks; and of what is left for this hour of the week, such as a weekly
// job. Each is shrunk towards 1 by how little was expected in all its hours, and by how often it has been seen, so that one bad
// Monday is no season. The zero value knows none.
type HourOfWeek struct {
	Prior float64 // failures' worth of "no season"; 0 stands for 30. It is no part of the encoded state

	f, e [hoursOfWeek]float64
	seen [hoursOfWeek]uint8 // weeks
	last [hoursOfWeek]int32
	// hour is the newest hour that something was learned of. Factors are worked out when one begins, so no hour vouches for itself.
	hour    int64
	factors [hoursOfWeek]float32 // 0 stands for 1
}

var _ Season = (*HourOfWeek)(nil)

const (
	seasonPrior = 30.0
	seasonSeen  = 1.0 // days' or weeks' worth of it
	seasonFade  = 0.8 // what a week leaves of the weeks before
	seasonMost  = 8.0 // the largest factor, and its inverse the smallest
)

func hourOfWeek(minute int64) (h int, w int32) {
	hours := minute / hour
	return int(hours % hoursOfWeek), int32(hours / hoursOfWeek)
}

// Learn adds to the hour in which the minute was.
func (s *HourOfWeek) Learn(minute int64, f, expected float64) {
	if now := minute / hour; now > s.hour {
		s.conclude()
		s.hour = now
	}
	h, w := hourOfWeek(minute)
	if s.seen[h] == 0 || s.last[h] != w {
		s.f[h] *= seasonFade
		s.e[h] *= seasonFade
		s.last[h] = w
		if s.seen[h] < math.MaxUint8 {
			s.seen[h]++
		}
	}
	s.f[h] += f
	s.e[h] += expected
}

// Factor is what was concluded when the newest hour began.
func (s *HourOfWeek) Factor(minute int64) float64 {
	h, _ := hourOfWeek(minute)
	if s.factors[h] == 0 {
		return 1
	}
	return float64(s.factors[h])
}

// conclude works the factors out. Each of the three is taken of what those before it leave.
func (s *HourOfWeek) conclude() {
	var ofHour [hoursOfDay]float64
	for h := range ofHour {
		var f, e, times float64
		for i := h; i < hoursOfWeek; i += hoursOfDay {
			f, e, times = f+s.f[i], e+s.e[i], times+float64(s.seen[i])
		}
		ofHour[h] = s.shrunk(f, e, times)
	}
	for d := range daysOfWeek {
		var f, e, weeks float64
		for h := range ofHour {
			i := d*hoursOfDay + h
			f, e, weeks = f+s.f[i], e+s.e[i]*ofHour[h], max(weeks, float64(s.seen[i]))
		}
		ofDay := s.shrunk(f, e, weeks)
		for h := range ofHour {
			i, both := d*hoursOfDay+h, ofHour[h]*ofDay
			all := both * s.shrunk(s.f[i], s.e[i]*both, float64(s.seen[i]))
			s.factors[i] = float32(max(1/seasonMost, min(seasonMost, all)))
		}
	}
}

func (s *HourOfWeek) shrunk(f, e, times float64) float64 {
	prior := seasonPrior
	if s.Prior > 0 {
		prior = s.Prior
	}
	return math.Pow((f+prior)/(e+prior), times/(times+seasonSeen))
}

// Within is the season of one key inside one that many share: what is left to it is its own.
type Within struct{ Wide, Own *HourOfWeek }

var _ Season = Within{}

// Factor is the product of both.
func (w Within) Factor(minute int64) float64 { return w.Wide.Factor(minute) * w.Own.Factor(minute) }

// Learn tells both.
func (w Within) Learn(minute int64, f, expected float64) {
	wide := w.Wide.Factor(minute)
	w.Wide.Learn(minute, f, expected)
	w.Own.Learn(minute, f, expected*wide)
}

const seasonVersion = 1

// AppendBinary writes the whole state. Equal seasons give equal bytes.
func (s *HourOfWeek) AppendBinary(b []byte) ([]byte, error) {
	b = binary.AppendVarint(append(b, seasonVersion), s.hour)
	for i := range s.f {
		b = append(b, s.seen[i])
		if s.seen[i] > 0 {
			b = binary.AppendVarint(b, int64(s.last[i]))
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(s.f[i]))
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(s.e[i]))
		}
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(s.factors[i]))
	}
	return b, nil
}

// DecodeSeason reads what AppendBinary wrote. Bytes that do not fit are an error, never a panic.
func DecodeSeason(b []byte) (*HourOfWeek, error) {
	if len(b) == 0 || b[0] != seasonVersion {
		return nil, fmt.Errorf("the state of a season is not of version %d", seasonVersion)
	}
	s, r := &HourOfWeek{}, reader{b: b[1:]}
	s.hour = r.int()
	for i := range s.f {
		s.seen[i] = uint8(r.score())
		if s.seen[i] > 0 {
			s.last[i] = int32(r.int())
			s.f[i], s.e[i] = r.float(), r.float()
		}
		s.factors[i] = r.float32()
	}
	switch {
	case r.err != nil:
		return nil, r.err
	case len(r.b) > 0:
		return nil, fmt.Errorf("the state of a season has %d bytes too many", len(r.b))
	}
	for i, v := range s.factors {
		if !(v == 0 || v >= 1/seasonMost && v <= seasonMost) || !(s.f[i] >= 0 && s.e[i] >= 0) {
			return nil, errors.New("the state of a season makes no sense")
		}
	}
	return s, nil
}
