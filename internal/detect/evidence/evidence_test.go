package evidence_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/tocsin-project/tocsin/internal/detect/evidence"
)

const (
	hour = 60
	day  = 24 * hour
	// monthly is a budget of one alarm in 30 days for one of 190 keys.
	monthly = 1.0 / (30 * day * 190)
)

// source draws counts; everything is a function of its seed.
type source struct{ *rand.Rand }

func draws(seed uint64) source { return source{rand.New(rand.NewPCG(seed, 7))} }

func (r source) poisson(mean float64) uint64 {
	if mean > 200 {
		return uint64(max(0, math.Round(mean+math.Sqrt(mean)*r.NormFloat64())))
	}
	n := uint64(0)
	for p := r.ExpFloat64(); p < mean; p += r.ExpFloat64() {
		n++
	}
	return n
}

// of draws n requests of which a share fails, with wobble from minute to minute.
func (r source) of(mean, share float64) (n, f uint64) {
	n = r.poisson(mean)
	return n, min(n, r.poisson(float64(n)*share*math.Exp(0.3*r.NormFloat64()-0.045)))
}

// feed gives a key minutes [from, to).
func feed(k *evidence.Key, r source, from, to int64, mean, share float64) {
	for m := from; m < to; m++ {
		n, f := r.of(mean, share)
		k.Observe(m, n, f)
	}
	k.Advance(to)
}

// found gives the minutes until a key passes, at most limit.
func found(k *evidence.Key, r source, from int64, limit int, level func(minute int) (mean, share float64)) int {
	for i := range limit {
		mean, share := level(i)
		n, f := r.of(mean, share)
		k.Observe(from+int64(i), n, f)
		if k.Beyond(30) {
			return i + 1
		}
	}
	return limit + 1
}

func always(mean, share float64) func(int) (float64, float64) {
	return func(int) (float64, float64) { return mean, share }
}

func newKey() *evidence.Key {
	m := evidence.Default()
	return evidence.New(&m, monthly, 0, nil)
}

func TestAKeyIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(evidence.Key{}); n > 2048 {
		t.Errorf("a key has %d bytes, more than 2 KB", n)
	}
	k := newKey()
	feed(k, draws(1), 0, 2*day, 5000, 0.01)
	b, _ := k.AppendBinary(nil)
	if len(b) > 2048 {
		t.Errorf("an encoded key has %d bytes", len(b))
	}
}

func TestFailuresAreFound(t *testing.T) {
	for _, c := range []struct {
		name        string
		mean, share float64
		level       func(int) (float64, float64)
		within      int
	}{
		{"a write under healthy reads, 40% of 20 a minute", 20, 0.002, always(20, 0.4), 8},
		{"90% at half a request a second", 30, 0.005, always(30, 0.9), 5},
		{"everything", 300, 0.003, always(300, 0.98), 5},
		{"creeping to 0.3% in two hours", 2000, 0.0002, func(i int) (float64, float64) { return 2000, 0.0002 + 0.0028*min(1, float64(i)/120) }, 120},
		{"creeping to 1% in six hours", 600, 0.001, func(i int) (float64, float64) { return 600, 0.001 + 0.009*float64(i)/360 }, 240},
	} {
		for seed := range uint64(5) {
			k, r := newKey(), draws(seed)
			feed(k, r, 0, 3*day, c.mean, c.share)
			if k.Score() > -2 {
				t.Fatalf("%s: evidence %.1f before anything is wrong", c.name, k.Score())
			}
			if got := found(k, r, 3*day, 2*c.within, c.level); got > c.within {
				t.Errorf("%s, seed %d: found after %d minutes, want %d\n%s", c.name, seed, got, c.within, k.Explain(evidence.Words{Things: "requests", Bad: "failed"}))
			}
		}
	}
}

func TestWhatProvesNothingPagesNobody(t *testing.T) {
	for _, c := range []struct {
		name  string
		usual func(int64) (float64, float64)
		odd   func(int) (float64, float64)
	}{
		{"one failure of three at night", func(int64) (float64, float64) { return 2, 0.01 }, func(i int) (float64, float64) {
			if i == 60 {
				return 3, 0.33
			}
			return 2, 0
		}},
		{"a deploy of three minutes", func(int64) (float64, float64) { return 600, 0.002 }, func(i int) (float64, float64) {
			if i%700 < 3 {
				return 600, 0.2
			}
			return 600, 0.002
		}},
		{"a path that fails most of the time", func(int64) (float64, float64) { return 60, 0.8 }, always(60, 0.85)},
		{"a path that always fails, from the first minute on", func(int64) (float64, float64) { return 60, 1 }, always(60, 1)},
		{"a path of which few requests are made, all of which fail", func(int64) (float64, float64) { return 1, 1 }, always(1, 1)},
		{"the same, half of them", func(int64) (float64, float64) { return 1, 0.5 }, always(1, 0.5)},
		{"a rate that swings by three over the day", func(m int64) (float64, float64) {
			return 900, 0.002 * math.Exp(0.55*math.Sin(float64(m)*2*math.Pi/day))
		}, func(i int) (float64, float64) { return 900, 0.002 * math.Exp(0.55*math.Sin(float64(i)*2*math.Pi/day)) }},
		{"less than usual", func(int64) (float64, float64) { return 900, 0.02 }, always(900, 0.001)},
		{"a pool of bots", func(int64) (float64, float64) { return 100, 0.01 }, always(5000, 0.001)},
	} {
		k, r := newKey(), draws(3)
		for m := range int64(3 * day) {
			n, f := r.of(c.usual(m))
			k.Observe(m, n, f)
			if k.Beyond(30) {
				t.Fatalf("%s: minute %d: %s", c.name, m, k.Explain(evidence.Words{Things: "requests", Bad: "failed"}))
			}
		}
		if got := found(k, r, 3*day, day, c.odd); got <= day {
			t.Errorf("%s: pages after %d minutes\n%s", c.name, got, k.Explain(evidence.Words{Things: "requests", Bad: "failed"}))
		}
	}
}

// The promise itself, at a budget so large that a test can count: levels constant and exactly at what is learned, wobbling.
func TestTheBudgetHolds(t *testing.T) {
	m := evidence.Default()
	m.Tolerance, m.DriftSDs, m.FirstDay = 1, 0, 1 // nothing but statistics stands between chance and an alarm
	const perMinute = 1.0 / day
	alarms, days := 0, 0
	for seed := range uint64(10) {
		k, r := evidence.New(&m, perMinute, 0, nil), draws(seed)
		over := false
		for i := range int64(20 * day) {
			n, f := r.of(50, 0.02)
			k.Observe(i, n, f)
			if s := k.Score(); s >= 0 && !over {
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

func TestPartsOfAMinuteCountLikeTheWhole(t *testing.T) {
	a, b := newKey(), newKey()
	r := draws(9)
	for m := range int64(2 * day) {
		n, f := r.of(100, 0.01)
		a.Observe(m, n, f)
		b.Observe(m, n/2, f/2)
		b.Observe(m, n-n/2, f-f/2)
	}
	x, _ := a.AppendBinary(nil)
	y, _ := b.AppendBinary(nil)
	if !bytes.Equal(x, y) || a.Score() != b.Score() {
		t.Error("a minute in two parts is not the same as in one")
	}
}

func TestAKeyReadBackGoesOnTheSame(t *testing.T) {
	m := evidence.Default()
	k, r := newKey(), draws(4)
	for i := range int64(4 * day) {
		n, f := r.of(100, 0.01)
		if i > 3*day {
			f = min(n, 5*f)
		}
		k.Observe(i, n, f)
		if i%977 == 0 {
			b, err := k.AppendBinary(nil)
			if err != nil {
				t.Fatal(err)
			}
			again, err := evidence.Decode(&m, nil, b)
			if err != nil {
				t.Fatal(err)
			}
			if c, _ := again.AppendBinary(nil); !bytes.Equal(b, c) {
				t.Fatal("encoding is not stable")
			}
			// The one read back lives on; a twin that was never written goes beside it.
			twin := *k
			for j := i + 1; j < i+200; j++ {
				n, f := r.of(100, 0.02)
				again.Observe(j, n, f)
				twin.Observe(j, n, f)
			}
			x, _ := again.AppendBinary(nil)
			if y, _ := twin.AppendBinary(nil); !bytes.Equal(x, y) || again.Score() != twin.Score() {
				t.Fatalf("minute %d: what was read back goes on differently", i)
			}
		}
	}
}

func TestBytesFromOutsideAreRefusedWithoutPanic(t *testing.T) {
	m := evidence.Default()
	k := newKey()
	feed(k, draws(1), 0, day, 50, 0.01)
	good, _ := k.AppendBinary(nil)
	for n := range good {
		if _, err := evidence.Decode(&m, nil, good[:n]); err == nil {
			t.Fatalf("accepted the first %d of %d bytes", n, len(good))
		}
		bad := bytes.Clone(good)
		bad[n] ^= 0xA5
		if x, err := evidence.Decode(&m, nil, bad); err == nil {
			x.Observe(1<<40, 10, 1) // nonsense in, no panic and no endless loop out
			x.Observe(1<<40+1, 10, 1)
			_ = x.Explain(evidence.Words{})
		}
	}
	if _, err := evidence.Decode(&m, nil, append(good, 0)); err == nil {
		t.Error("accepted a byte too many")
	}
}

func TestTroubleDoesNotBecomeUsual(t *testing.T) {
	k, r := newKey(), draws(5)
	feed(k, r, 0, 3*day, 300, 0.003)
	for d := range int64(3) {
		at := (3 + d) * day
		if got := found(k, r, at, 60, always(300, 0.05)); got > 10 {
			t.Errorf("day %d: found after %d minutes: what failed the day before has become usual", d, got)
		}
		feed(k, r, at+60, at+180, 300, 0.05)
		feed(k, r, at+180, at+day, 300, 0.003)
	}
}

func TestANewLevelIsAcceptedInTheEnd(t *testing.T) {
	k, r := newKey(), draws(6)
	feed(k, r, 0, 5*day, 300, 0.003)
	feed(k, r, 5*day, 6*day, 300, 0.02)
	if k.Beyond(30) {
		t.Errorf("still abnormal after a day: %s", k.Explain(evidence.Words{Things: "requests", Bad: "failed"}))
	}
	if got := found(k, r, 6*day, 30, always(300, 0.3)); got > 10 {
		t.Error("blind after it has accepted a new level")
	}
}

func TestWhatIsOverIsSeenToBeOver(t *testing.T) {
	k, r := newKey(), draws(6)
	feed(k, r, 0, 3*day, 300, 0.003)
	feed(k, r, 3*day, 3*day+90, 300, 0.9)
	for i := range int64(30) {
		feed(k, r, 3*day+90+i, 3*day+91+i, 300, 0.003)
		if k.Score() < 0 {
			if i > 15 {
				t.Errorf("abnormal for %d minutes after the end", i)
			}
			return
		}
	}
	t.Error("abnormal half an hour after the end")
}

func TestRareRequestsAreLearnedAndHoldUp(t *testing.T) {
	k := newKey()
	for i := range int64(200) {
		k.Observe(i*180, 10, 0) // every three hours
	}
	if k.Level() > 0.001 {
		t.Errorf("after 2000 requests without a failure a share of %.3f counts as usual", k.Level())
	}
	at := int64(200 * 180)
	for i := range int64(6) {
		k.Observe(at+i*20, 10, 9)
		k.Advance(at + i*20 + 1)
	}
	if !k.Beyond(30) {
		t.Errorf("54 of 60 requests failed in two hours: %s", k.Explain(evidence.Words{Things: "requests", Bad: "failed"}))
	}
}

// Points of five minutes, as exporters of cloud metrics send them: the minutes in between are empty.
func TestSparsePointsAreLearned(t *testing.T) {
	for _, share := range []float64{1, 0.4, 0.02} {
		k, r := newKey(), draws(12)
		for i := range int64(2 * day / 5) {
			n := 1 + r.poisson(5)
			k.Observe(2+5*i, n, min(n, r.poisson(float64(n)*share)))
			if k.Score() >= 0 {
				t.Errorf("%.0f%% failing since ever: minute %d: %s", 100*share, 2+5*i, k.Explain(evidence.Words{Things: "requests", Bad: "failed"}))
				break
			}
		}
	}
}

func TestTicketsAreJudgedAsArrivals(t *testing.T) {
	m := evidence.Arrivals()
	k, r := evidence.New(&m, monthly, 0, nil), draws(2)
	tell := func(minute int64, perHour float64) { k.Observe(minute, 1, r.poisson(perHour/60)) }
	for i := range int64(7 * day) {
		tell(i, 2)
		if k.Score() >= 0 {
			t.Fatalf("alarm in a quiet week: %s", k.Explain(evidence.Words{Things: "accounts"}))
		}
	}
	for i := range int64(60) {
		tell(7*day+i, 60)
		if k.Score() >= 0 {
			if i > 35 {
				t.Errorf("sixty accounts an hour, where two are usual, took %d minutes", i)
				t.Log(k.Explain(evidence.Words{Things: "accounts"}))
			}
			if s := k.Explain(evidence.Words{Things: "accounts"}).Sentence; !strings.Contains(s, "accounts in") {
				t.Errorf("explained as %q", s)
			}
			return
		}
	}
	t.Errorf("never found: %s", k.Explain(evidence.Words{Things: "accounts"}))
}

func TestASeasonMakesKeysKeen(t *testing.T) {
	delay := func(s evidence.Season) int {
		m := evidence.Default()
		k, r := evidence.New(&m, monthly, 0, s), draws(8)
		usual := func(minute int64) float64 { return 0.002 * math.Exp(0.8*math.Sin(float64(minute)*2*math.Pi/day)) }
		for i := range int64(28 * day) {
			n, f := r.of(900, usual(i))
			k.Observe(i, n, f)
			if k.Beyond(30) {
				t.Fatalf("alarm on an ordinary day, minute %d", i)
			}
		}
		at := int64(28*day) + 18*hour // in the quietest hours a little is much
		return found(k, r, at, 240, func(i int) (float64, float64) { return 900, usual(at+int64(i)) + 0.004 })
	}
	without, with := delay(nil), delay(&evidence.HourOfWeek{})
	if with >= without {
		t.Errorf("with seasons %d minutes, without %d", with, without)
	}
	t.Logf("with seasons %d minutes, without %d", with, without)
}

func TestExplain(t *testing.T) {
	k, r := newKey(), draws(1)
	if s := k.Explain(evidence.Words{}).Sentence; !strings.Contains(s, "too little to conclude") {
		t.Errorf("a new key says %q", s)
	}
	feed(k, r, 0, 3*day, 300, 0.003)
	feed(k, r, 3*day, 3*day+8, 300, 0.2)
	x := k.Explain(evidence.Words{Things: "writes", Bad: "failed"})
	for _, part := range []string{"writes failed in 8 minutes", "usually 0.3", "evidence +"} {
		if !strings.Contains(x.Sentence, part) {
			t.Errorf("%q does not say %q", x.Sentence, part)
		}
	}
	if len(x.Rows) < 5 || x.Rows[0].Evidence > -3 || x.Rows[len(x.Rows)-1].Evidence < 0 {
		t.Errorf("evidence over time:\n%s", x)
	}
}

func TestSharesAddUpToOne(t *testing.T) {
	sum, last := 0.0, math.Inf(1)
	for i := range 1 << 20 {
		s := evidence.Share(i)
		if s <= 0 || s > last {
			t.Fatalf("place %d has share %g after %g", i, s, last)
		}
		sum, last = sum+s, s
	}
	if sum > 1 || sum < 0.9 {
		t.Errorf("a million shares add up to %g", sum)
	}
	var s evidence.Shares
	for i := range 200 {
		if p := s.Take(); p != i {
			t.Fatalf("place %d instead of %d", p, i)
		}
	}
	s.Return(3)
	s.Return(150)
	var again evidence.Shares
	for i := range 200 {
		if i != 3 && i != 150 {
			again.Claim(i)
		}
	}
	for _, x := range []*evidence.Shares{&s, &again} {
		if a, b, c := x.Take(), x.Take(), x.Take(); a != 3 || b != 150 || c != 200 {
			t.Errorf("places %d, %d, %d; want 3, 150, 200", a, b, c)
		}
	}
}

func BenchmarkKeyMinute(b *testing.B) {
	k, r := newKey(), draws(1)
	feed(k, r, 0, 2*day, 300, 0.01)
	minute := int64(2 * day)
	for b.Loop() {
		k.Observe(minute, 300, uint64(minute%7))
		minute++
	}
	b.ReportMetric(float64(unsafe.Sizeof(*k)), "B/key")
}

func BenchmarkScore(b *testing.B) {
	k, r := newKey(), draws(1)
	feed(k, r, 0, 2*day, 300, 0.01)
	k.Observe(2*day, 100, 2)
	for b.Loop() {
		_ = k.Score()
	}
}
