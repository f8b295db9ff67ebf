package evidencebench

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tocsin-project/tocsin/internal/detect/evidence"
	"github.com/tocsin-project/tocsin/internal/rule"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The short form of make bench-evidence: twenty days in all, six seeds of each incident. Bounds are loose enough for so few
// and tight enough to see a broken constant.
func TestTheBudgetHoldsAndIncidentsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some ten seconds")
	}
	o := Short.Measure(BenchModel(), nil).Conclude()
	p := &o.Places[0]
	for _, days := range Budgets {
		allowed := p.World.Months * 30 / days
		got := int(p.World.All[o.g.shipped()][evidenceLevels.at(math.Log10(days/BudgetDays))])
		if top := UpperPoisson(allowed); got > top {
			t.Errorf("1 per %.0fd: %d false pages in %.1f months, at most %d are chance", days, got, p.World.Months, top)
		}
	}
	for i, within := range []float64{7, 5, 4.5, 7, 90, 210, 4.5, 8} {
		if got := p.Ours.Median[i]; got > within {
			t.Errorf("%s: median delay %.1f minutes, want %.1f", Classes[i].Name, got, within)
		}
	}

	// The strong rival as its book has it: far more pages, and twice as slow on what creeps.
	book := o.of(p.World.All, p.World.Months, p.Site.Traces, o.g.find(nominal[2].Setting), rivalLevels.zero())
	if book.False < 4*p.Ours.False || book.False < 3 {
		t.Errorf("%.1f false pages in 30 days, the learned burn rate has %.1f: is the world still one that tempts?", p.Ours.False, book.False)
	}
	for i := range Classes {
		if c := &Classes[i]; c.Creeps() && !(p.Ours.Median[i] <= book.Median[i]/2) {
			t.Errorf("%s: %.0f minutes, the learned burn rate %.0f", c.Name, p.Ours.Median[i], book.Median[i])
		}
	}
	// All rivals at their best, one setting for all: no faster at equal false pages, ten times the pages at equal delay.
	for _, c := range p.Claims[len(Classes):] {
		if best := c.Equal[c.Best(true)].Single; !(c.Ours <= best) {
			t.Errorf("%s: %.1f minutes, %s %.1f at equal false pages", c.Name, c.Ours, c.Best(true), best)
		}
		if c.Creeping {
			continue // here the best burn rate is close
		}
		if f := c.Fewest(); f != Tocsin && c.Equal[f].Same.False < max(10*p.Ours.False, 10) {
			t.Errorf("%s: %.1f false pages in 30 days, %s has %.1f at equal delay", c.Name, p.Ours.False, f, c.Equal[f].Same.False)
		}
	}
}

// Copies are made of a key only when blips of another length could make a difference, and that does not show in the result.
func TestCopiesOfKeysAreAsGoodAsKeys(t *testing.T) {
	spans := []Span{{0, 2, false}}
	together, alone := newGrid(BenchModel(), []int{1, 2, 3}), newGrid(BenchModel(), []int{2})
	a, b := quiet(together, Heavy, 7, spans)[0], quiet(alone, Heavy, 7, spans)[0]
	pages := 0
	for _, fl := range floors {
		x, y := a[together.find(Setting{Tocsin, 2, fl, 0})], b[alone.find(Setting{Tocsin, 2, fl, 0})]
		for level := 0; level < len(x); level += 50 {
			if x[level] != y[level] {
				t.Errorf("floor %d, evidence %.1f: %d pages of copies, %d of keys", fl, evidenceLevels.score(level), x[level], y[level])
			}
		}
		pages += int(x[0])
	}
	if pages == 0 {
		t.Error("nothing happened in two days of heavy-tailed blips")
	}
}

// A page begins where a level is reached that was not reached in the hour before.
func TestPagesAreCounted(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	got, want := Tally{make([]int32, 8)}, make([]int32, 8)
	rs := make([]recent, 1)
	var last [8]int
	for i := range last {
		last[i] = -1000
	}
	for minute := range 5000 {
		level := none
		if r.IntN(20) == 0 {
			level = int16(min(r.IntN(8), r.IntN(8)))
		}
		got.count(rs, int32(minute), []int16{level})
		for l := 0; l <= int(level); l++ {
			if minute-last[l] > quietAfter {
				want[l]++
			}
			last[l] = minute
		}
	}
	got.sum()
	for l := range want {
		if got[0][l] != want[l] {
			t.Errorf("level %d: %d pages, want %d", l, got[0][l], want[l])
		}
	}
}

// With `for`, a condition has to hold that long, with the failures it asks for all the time.
func TestForHoldsALevel(t *testing.T) {
	g := newGrid(BenchModel(), []int{3})
	w := newWatcher(g, 0)
	at := func(family Family, base int, fl uint64, minutes int) int {
		return g.find(Setting{family, base, fl, minutes})
	}
	reached := make([]int16, len(g.settings))
	for minute, f := range []uint64{0, 50, 50, 50, 5, 50} {
		clear16(reached)
		c := counts{100, f}
		w.rivals(c, 1, reached[:rivalSettings])
		w.end(c, true)
		for _, x := range []struct {
			floor   uint64
			minutes int
			want    bool
		}{{1, 0, f > 0}, {30, 0, f >= 30}, {30, 2, minute == 3}, {1, 3, minute >= 4}, {30, 3, false}} {
			if got := reached[at(Share, 6, x.floor, x.minutes)] >= int16(rivalLevels.zero()); got != x.want {
				t.Errorf("minute %d: over 5%% for %d minutes with %d failures: %v, want %v", minute, x.minutes, x.floor, got, x.want)
			}
		}
	}
}

// What a rule may call a blip is what a key can look back.
func TestBlipsFitIntoKeys(t *testing.T) {
	if rule.MaxBlips != evidence.MaxBurst*time.Minute {
		t.Errorf("a rule may have blips of %s, a key looks back %d minutes", rule.MaxBlips, evidence.MaxBurst)
	}
}

func TestUpperBounds(t *testing.T) {
	for mean, want := range map[float64]int{1: 3, 4.3: 8, 20: 28} {
		if got := UpperPoisson(mean); got != want {
			t.Errorf("mean %.1f: %d, want %d", mean, got, want)
		}
	}
	for count, want := range map[float64]float64{0: 3.00, 1: 4.74, 10: 16.96, 100: 118.1, 1000: 1054} {
		if got := UpperRate(count, 1); math.Abs(got-want) > 0.002*want {
			t.Errorf("%.0f counted: at most %.2f, want %.2f", count, got, want)
		}
	}
}

// A page from a small run is whole, fetches nothing, and is the same from what was saved.
func TestPage(t *testing.T) {
	r := Run{
		Kinds: []Kind{Realistic}, Seeds: []int{1}, Days: 1, Calibrate: true, FirstDays: 1,
		Wheres: []Where{Wheres[0], Wheres[3]}, Incidents: 1, Probes: 1, Bursts: []int{3, 5},
	}
	m := r.Measure(BenchModel(), nil)
	m.Run.Sweep = 1
	for range 1 + 2*len(constants) {
		m.Sweep = append(m.Sweep, &Sensitivity{Name: "a <constant>", Factor: 0.5, False: []int{0, 0, 1}, Delay: []float64{1, 2, math.Inf(1), 4}})
	}
	m.Examples = append(m.Examples, examples[0].run(BenchModel()))
	var saved, page, again, text bytes.Buffer
	if err := m.Save(&saved); err != nil {
		t.Fatal(err)
	}
	if err := m.Conclude().Page(&page); err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(&saved)
	if err != nil {
		t.Fatal(err)
	}
	o := loaded.Conclude()
	if err := errors.Join(o.Page(&again), o.Write(&text)); err != nil {
		t.Fatal(err)
	}
	if again.String() != page.String() {
		t.Error("the page of what was saved is another one")
	}
	for _, want := range []string{"a &lt;constant&gt;", "prefers-color-scheme: dark", `name="viewport"`, "<polyline", "Does the budget hold?", "first day"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("no %s", want)
		}
	}
	if bad := regexp.MustCompile(`(?i)<script|<link|<img|<iframe|src=|href=|url\(|@import|https?:|NaN`).FindString(page.String()); bad != "" {
		t.Errorf("the page has %q", bad)
	}
	for i, svg := range regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(page.String(), -1) {
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Errorf("plot %d: %v", i, err)
				break
			}
		}
	}
	if !strings.Contains(text.String(), "| as shipped |") && !strings.Contains(text.String(), "Tocsin as shipped") {
		t.Error("the tables do not name what is shipped")
	}
}
