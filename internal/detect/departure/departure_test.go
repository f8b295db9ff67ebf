package departure

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var weekly = Default()

// world makes a value for each minute: a day's wave, a little noise, and what a test adds to it.
type world struct {
	r     *rand.Rand
	wave  float64
	noise float64
}

func newWorld(seed uint64) *world {
	return &world{r: rand.New(rand.NewPCG(seed, 1)), wave: 0.5, noise: 0.03}
}

func (w *world) at(minute int64) float64 {
	return 100 * (1 + w.wave*math.Sin(2*math.Pi*float64(minute)/1440) + w.noise*w.r.NormFloat64())
}

// alarms plays minutes and counts the departures.
func alarms(t *testing.T, w *Watch, from, to, every int64, value func(int64) float64) (n int, first int64) {
	t.Helper()
	was := false
	for m := from; m < to; m += every {
		j, ok := w.Observe(&weekly, m, value(m))
		if !ok {
			t.Fatalf("minute %d is refused", m)
		}
		if j.Abnormal && !was {
			if n++; n == 1 {
				first = m
			}
		}
		was = j.Abnormal
	}
	return n, first
}

func TestOrdinaryDaysAreNoDepartureAndDeparturesAreFound(t *testing.T) {
	const start, day = int64(1000 * 1440), int64(1440)
	for seed := range uint64(3) {
		wd, w := newWorld(seed), &Watch{}
		n, first := alarms(t, w, start, start+14*day, 1, wd.at)
		if n > 4 { // one a week is allowed, and four are chance
			t.Errorf("seed %d: %d departures in 14 ordinary days, the first in minute %d", seed, n, first-start)
		}
		for name, value := range map[string]func(int64) float64{
			"twice as high":    func(m int64) float64 { return 2 * wd.at(m) },
			"fallen by a half": func(m int64) float64 { return wd.at(m) / 2 },
			"nothing at all":   func(int64) float64 { return 0 },
		} {
			c := *w
			if n, first := alarms(t, &c, start+14*day, start+14*day+60, 1, value); n == 0 || first > start+14*day+5 {
				t.Errorf("seed %d: %s: %d departures, the first after %d minutes", seed, name, n, first-start-14*day)
			}
		}
	}
}

func TestTheShapeOfTheDayIsUsualAndItsAbsenceIsNot(t *testing.T) {
	// Hourly values that jump threefold at nine each day, as batch work does.
	value := func(m int64) float64 {
		v := 10 + float64(m/60*7919%13)/10
		if h := m / 60 % 24; h >= 9 && h < 12 {
			v *= 3
		}
		return v
	}
	var w Watch
	if n, _ := alarms(t, &w, 0, 21*1440, 60, value); n > 2 {
		t.Errorf("%d departures in three weeks that are all alike", n)
	}
	from := int64(21*1440) + 9*60
	for m := int64(21 * 1440); m < from; m += 60 {
		w.Observe(&weekly, m, value(m))
	}
	same := w
	if j, _ := same.Observe(&weekly, from, value(from)); j.Abnormal {
		t.Errorf("nine o'clock: %+v", j)
	}
	if j, _ := w.Observe(&weekly, from, 300); !j.Abnormal {
		t.Errorf("ten times the usual peak: %+v", j)
	}
}

func TestALastingChangeIsOneDepartureAndThenUsual(t *testing.T) {
	wd, w := newWorld(3), &Watch{}
	wd.wave = 0
	const start, day = int64(1000 * 1440), int64(1440)
	alarms(t, w, start, start+8*day, 1, wd.at)
	abnormal := 0
	for m := start + 8*day; m < start+9*day; m++ {
		if j, _ := w.Observe(&weekly, m, 3*wd.at(m)); j.Abnormal {
			abnormal++
		}
	}
	if abnormal < 5*60 || abnormal > 8*60 {
		t.Errorf("a new level was abnormal for %d minutes, want about six hours", abnormal)
	}
}

func TestDirectionsAndSmallChanges(t *testing.T) {
	prepare := func() *Watch {
		var w Watch
		for m := range int64(200) {
			w.Observe(&weekly, m, 100)
		}
		return &w
	}
	up, down := weekly, weekly
	up.Down, down.Up = false, false
	for _, c := range []struct {
		value float64
		l     Model
		want  bool
	}{{150, weekly, true}, {50, weekly, true}, {105, weekly, false}, {150, up, true}, {50, up, false}, {50, down, true}, {150, down, false}} {
		if j, _ := prepare().Observe(&c.l, 200, c.value); j.Abnormal != c.want {
			t.Errorf("%g with up %v and down %v: %+v", c.value, c.l.Up, c.l.Down, j)
		}
	}
}

func TestNothingIsJudgedBeforeEnoughIsKnown(t *testing.T) {
	var w Watch
	for m := range int64(40) {
		if j, _ := w.Observe(&weekly, m, float64(m%2)*1000); j.Ready || j.Abnormal {
			t.Fatalf("minute %d: %+v", m, j)
		}
	}
	if _, ok := w.Observe(&weekly, 39, 1); ok {
		t.Error("a minute counted twice")
	}
}

func TestWhatIsKnownSurvivesABackAndForth(t *testing.T) {
	wd, w := newWorld(1), &Watch{}
	alarms(t, w, 0, 3*1440, 1, wd.at)
	data, err := w.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	for m := int64(3 * 1440); m < 3*1440+300; m++ {
		v := wd.at(m)
		a, _ := w.Observe(&weekly, m, v)
		b, _ := back.Observe(&weekly, m, v)
		if a != b {
			t.Fatalf("minute %d: %+v, restored %+v", m, a, b)
		}
	}
	again, _ := back.AppendBinary(nil)
	if data, _ = w.AppendBinary(nil); !bytes.Equal(data, again) {
		t.Error("equal watches give other bytes")
	}
	for n := range data {
		if _, err := Decode(data[:n]); err == nil {
			t.Fatalf("%d of %d bytes are accepted", n, len(data))
		}
		bad := bytes.Clone(data)
		bad[n] = 0xff
		if w, err := Decode(bad); err == nil {
			w.Observe(&weekly, 3*1440+1000, 5) // must not panic
		}
	}
}

func TestSize(t *testing.T) {
	if n := binary.Size(&state{}); n > 4096 {
		t.Errorf("a watch takes %d bytes, more than a key may", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	wd, w := newWorld(1), &Watch{}
	for i := range b.N {
		w.Observe(&weekly, int64(i), wd.at(int64(i)))
	}
}

func TestMedians(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		v := make([]float32, 1+r.IntN(maxScale))
		for i := range v {
			v[i] = float32(r.IntN(20))
		}
		w := slices.Clone(v)
		slices.Sort(w)
		if got, want := medianOf(v), float64(w[len(w)/2]+w[(len(w)-1)/2])/2; got != want {
			t.Fatalf("%v: %g, want %g", v, got, want)
		}
	}
}

// A budget is all gauges' together: one of a thousand has to stand out further than one alone, and still can.
func TestABudgetIsShared(t *testing.T) {
	const start, last = int64(1000 * 1440), int64(1003 * 1440)
	least := func(among float64) float64 {
		m, wd, w := Default(), newWorld(7), Watch{}
		m.Among = among
		for minute := start; minute < last; minute++ {
			w.Observe(&m, minute, wd.at(minute))
		}
		for v := 100.0; v < 300; v++ {
			x := w
			if j, _ := x.Observe(&m, last, v); j.Abnormal {
				return v
			}
		}
		return math.Inf(1)
	}
	none, alone, thousand := least(0), least(1), least(1000)
	t.Logf("from %g on alone, from %g on as one of a thousand", alone, thousand)
	if none != alone || thousand < 1.05*alone || thousand > 200 {
		t.Errorf("from %g on without a number, from %g on alone, from %g on as one of a thousand", none, alone, thousand)
	}
}

// Some say "none" or "no end" by the largest number there is. What is kept must stay numbers: they are written as JSON.
func TestValuesThatAreNone(t *testing.T) {
	var w Watch
	for minute := range int64(200) {
		for _, v := range []float64{math.MaxFloat64, -math.MaxFloat64, 1e39, math.Inf(1), math.NaN()} {
			if _, ok := w.Observe(&weekly, minute+1, v); ok {
				t.Fatalf("%g is taken", v)
			}
		}
	}
	for minute := range int64(200) {
		v := most
		if minute%2 == 0 {
			v = -most
		}
		j, ok := w.Observe(&weekly, minute+1, v)
		if sum := j.Value + j.Expected + j.Scatter + j.Rarity; !ok || math.IsNaN(sum) || math.IsInf(sum, 0) {
			t.Fatalf("minute %d: %+v", minute, j)
		}
	}
}
