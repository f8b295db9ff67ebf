package evidence_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/tocsin-project/tocsin/internal/detect/evidence"
)

const hoursADay = 24

// hours of a help desk that sleeps at night and rests at weekends; minute 0 was a Thursday.
func deskHours(minute int64) float64 {
	h, d := float64(minute%day)/hour, (minute/day+4)%7
	v := 0.2 + 1.6*max(0, math.Sin((h-6)/16*math.Pi))
	if d == 0 || d == 6 {
		v *= 0.4
	}
	return v
}

func TestSeasonsAreLearnedHourByHourThenDayByDay(t *testing.T) {
	var s evidence.HourOfWeek
	learn := func(from, to int64) {
		for m := from; m < to; m++ {
			s.Learn(m, 0.5*deskHours(m), 0.5) // half a ticket a minute
		}
	}
	const night, noon = 3 * hour, 13 * hour
	learn(0, 2*day)
	if n, d := s.Factor(2*day+night), s.Factor(2*day+noon); n > 0.9 || d < 1.2 {
		t.Errorf("after two days a night has factor %.2f, a noon %.2f", n, d)
	}
	if sun, mon := s.Factor(3*day+noon), s.Factor(4*day+noon); math.Abs(sun-mon) > 0.05 {
		t.Errorf("before it has seen a weekend it tells Sunday (%.2f) from Monday (%.2f)", sun, mon)
	}
	learn(2*day, 28*day)
	at := func(d, h int64) float64 { return s.Factor(28*day + d*day + h) }
	if sun, mon := at(3, noon), at(4, noon); sun > 0.7*mon {
		t.Errorf("after four weeks Sunday has factor %.2f, Monday %.2f", sun, mon)
	}
	if n, d := at(4, night), at(4, noon); n > 0.4*d {
		t.Errorf("after four weeks a night has factor %.2f, a noon %.2f", n, d)
	}
	// One bad Monday is no season: what was seen once counts with its root.
	var bad evidence.HourOfWeek
	for m := range int64(8 * day) {
		v := 0.5
		if m/hour == 4*hoursADay+10 {
			v *= 5
		}
		bad.Learn(m, v, 0.5)
	}
	if f := bad.Factor(11*day + 10*hour); f > 2.5 {
		t.Errorf("one bad hour of a Monday gave it a factor of %.2f", f)
	}
}

func TestSeasonsReadBackGoOnTheSame(t *testing.T) {
	var s evidence.HourOfWeek
	for m := range int64(9 * day) {
		s.Learn(m, deskHours(m), 1)
	}
	b, err := s.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := evidence.DecodeSeason(b)
	if err != nil {
		t.Fatal(err)
	}
	for m := int64(9 * day); m < 12*day; m++ {
		s.Learn(m, deskHours(m), 1)
		again.Learn(m, deskHours(m), 1)
		if s.Factor(m) != again.Factor(m) {
			t.Fatalf("minute %d: %v, read back %v", m, s.Factor(m), again.Factor(m))
		}
	}
	x, _ := s.AppendBinary(nil)
	if y, _ := again.AppendBinary(nil); !bytes.Equal(x, y) {
		t.Error("what was read back is written otherwise")
	}
	for n := range b {
		if _, err := evidence.DecodeSeason(b[:n]); err == nil {
			t.Fatalf("accepted the first %d of %d bytes", n, len(b))
		}
		bad := bytes.Clone(b)
		bad[n] ^= 0xA5
		if x, err := evidence.DecodeSeason(bad); err == nil {
			x.Learn(1<<40, 3, 1) // nonsense in, no panic out
			_ = x.Factor(1 << 40)
		}
	}
}

// An area's own hours are told from those that all have in common.
func TestAnAreaHasItsOwnHoursWithinThoseOfAll(t *testing.T) {
	var all, own, other evidence.HourOfWeek
	a, b := evidence.Within{Wide: &all, Own: &own}, evidence.Within{Wide: &all, Own: &other}
	for m := range int64(28 * day) {
		level := deskHours(m)
		b.Learn(m, 4*level, 4)
		if h := m % day / hour; h == 9 {
			level *= 3 // what only this area has, every morning
		}
		a.Learn(m, 4*level, 4)
	}
	at := int64(32*day + 9*hour)
	if x, y := a.Factor(at), b.Factor(at); x < 1.8*y {
		t.Errorf("its own hour has factor %.2f, that of another area %.2f", x, y)
	}
}
