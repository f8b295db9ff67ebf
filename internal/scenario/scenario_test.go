package scenario_test

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tocsin-project/tocsin/deploy"
	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/scenario"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	demo    = "2026-09-13"
	primary = "mysql/collab/primary"
)

func load(t testing.TB) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Load(deploy.Demo, demo)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func clock(t *testing.T, s *scenario.Scenario, text string) time.Time {
	t.Helper()
	var c scenario.Clock
	if err := c.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return s.Time(c)
}

// digest of everything that a seed gives in its first slices.
func digest(s *scenario.Scenario, seed int64, slices int) uint64 {
	h := fnv.New64a()
	for slice := range s.Generate(seed) {
		for e := range slice.Events() {
			fmt.Fprintf(h, "%+v\n", e)
		}
		if slices--; slices == 0 {
			break
		}
	}
	return h.Sum64()
}

func TestSameSeedSameDay(t *testing.T) {
	s := load(t)
	const minutes = 12 * 6
	first := digest(s, 7, minutes)
	if again := digest(s, 7, minutes); again != first {
		t.Error("two runs of one seed differ")
	}
	if again := digest(load(t), 7, minutes); again != first {
		t.Error("the day depends on the loaded file's memory")
	}
	if digest(s, 8, minutes) == first {
		t.Error("two seeds give the same day")
	}
}

// day is what one seed gave, counted by the test itself.
type day struct {
	truth    *scenario.Truth
	totals   map[signal.Key][][4]uint64 // by bucket from the start on
	gauges   map[string][]signal.Gauge  // resource and metric
	tickets  []signal.Ticket
	changes  []signal.Change
	attempts map[signal.Path]map[uint32]uint64
	start    time.Time
	hangs    int // failures in the incident that took longer than five seconds
}

func play(t *testing.T, s *scenario.Scenario, seed int64) *day {
	t.Helper()
	d := &day{start: s.Start, totals: map[signal.Key][][4]uint64{}, gauges: map[string][]signal.Gauge{}, attempts: map[signal.Path]map[uint32]uint64{}}
	g := scenario.NewGenerator(s, seed)
	last := s.Start
	for slice, ok := g.Next(); ok; slice, ok = g.Next() {
		if !slice.From.Equal(last) || slice.To.Sub(slice.From) > 10*time.Second {
			t.Fatalf("slice from %s to %s after %s", slice.From, slice.To, last)
		}
		last = slice.To
		bucket := int(slice.From.Sub(s.Start) / signal.BucketSize)
		for i := range slice.Requests {
			r := &slice.Requests[i]
			if r.Time.Before(slice.From) || !r.Time.Before(slice.To) || i > 0 && r.Time.Before(slice.Requests[i-1].Time) {
				t.Fatalf("request %d at %s in the slice up to %s", i, r.Time, slice.To)
			}
			k := signal.Key{Path: r.Path, Attributes: r.Attributes}
			list := d.totals[k]
			if list == nil {
				list = make([][4]uint64, s.End.Sub(s.Start)/signal.BucketSize)
				d.totals[k] = list
			}
			list[bucket][r.Outcome]++
			if d.attempts[r.Path] == nil {
				d.attempts[r.Path] = map[uint32]uint64{}
			}
			d.attempts[r.Path][r.Attempt]++
			if r.Outcome == signal.Failure && r.Latency > 5*time.Second {
				d.hangs++
			}
		}
		for _, ga := range slice.Gauges {
			d.gauges[ga.Resource+" "+ga.Metric] = append(d.gauges[ga.Resource+" "+ga.Metric], ga)
		}
		d.tickets = append(d.tickets, slice.Tickets...)
		d.changes = append(d.changes, slice.Changes...)
	}
	if !last.Equal(s.End) {
		t.Fatalf("ends at %s, not %s", last, s.End)
	}
	d.truth = g.Truth()
	return d
}

func TestThirteenthOfSeptember(t *testing.T) {
	s := load(t)
	seeds := int64(2)
	if testing.Short() {
		seeds = 1
	}
	for seed := int64(1); seed <= seeds; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			d := play(t, s, seed)
			t.Run("published figures", func(t *testing.T) { checkFigures(t, s, d) })
			t.Run("totals", func(t *testing.T) { checkTotals(t, d) })
			t.Run("primary", func(t *testing.T) { checkPrimary(t, s, d) })
			t.Run("impact", func(t *testing.T) { checkImpact(t, s, d) })
			t.Run("quiet hours", func(t *testing.T) { checkQuiet(t, s, d) })
			t.Run("retries", func(t *testing.T) { checkRetries(t, s, d) })
			t.Run("tickets", func(t *testing.T) { checkTickets(t, s, d) })
			t.Run("changes", func(t *testing.T) { checkChanges(t, s, d) })
		})
	}
}

func checkFigures(t *testing.T, s *scenario.Scenario, d *day) {
	if n := d.truth.Requests; n < 1_500_000 || n > 2_300_000 {
		t.Errorf("%d requests", n)
	}
	if len(s.Figures()) < 4 {
		t.Fatalf("%d figures", len(s.Figures()))
	}
	for _, f := range s.Figures() {
		got := d.truth.Sum(f.Path(), s.Time(f.From), s.Time(f.To)).FailureRate()
		if math.Abs(got-f.Share) > f.Within {
			t.Errorf("%s: %.4f, want %.4f ± %.4f", f.What, got, f.Share, f.Within)
		}
	}
}

func checkTotals(t *testing.T, d *day) {
	var sum, wrong uint64
	for total := range d.truth.Totals() {
		at := int(total.Bucket.Sub(d.start) / signal.BucketSize)
		for i, n := range total.Outcomes {
			sum += n
			if n != d.totals[total.Key][at][i] {
				wrong++
			}
		}
	}
	if sum != d.truth.Requests || wrong > 0 {
		t.Errorf("totals add up to %d of %d requests, %d of them are not those of the events", sum, d.truth.Requests, wrong)
	}
}

func checkPrimary(t *testing.T, s *scenario.Scenario, d *day) {
	var full time.Time
	var before float64
	for _, g := range d.gauges[primary+" connections_used"] {
		if g.Time.Before(clock(t, s, "07:33")) {
			before = max(before, g.Value)
		}
		if full.IsZero() && g.Value >= g.Limit {
			full = g.Time
		}
	}
	if before > 1700 {
		t.Errorf("%v connections before the job began", before)
	}
	if off := full.Sub(clock(t, s, "08:43")); off.Abs() > time.Minute {
		t.Errorf("connections ran out at %s", full)
	}
	for _, replica := range []string{"mysql/collab/replica-1", "mysql/collab/replica-2"} {
		most := 0.0
		for _, g := range d.gauges[replica+" replication_lag_seconds"] {
			if g.Time.Before(clock(t, s, "10:19")) {
				if g.Value > 2 {
					t.Errorf("%s lags %v s at %s, but stayed low", replica, g.Value, g.Time)
				}
			} else {
				most = max(most, g.Value)
			}
		}
		if most < 15 {
			t.Errorf("%s: at most %v s late, delays were reported later on", replica, most)
		}
	}
	for name, list := range d.gauges {
		for _, g := range list {
			if g.Limit > 0 && g.Value >= 0.97*g.Limit && g.Resource != primary {
				t.Errorf("%s is at %v of %v at %s: a second fault that the truth does not name", name, g.Value, g.Limit, g.Time)
				break
			}
		}
	}
}

func checkImpact(t *testing.T, s *scenario.Scenario, d *day) {
	c, err := catalogue.Parse("catalogue.yaml", s.Catalogue)
	if err != nil {
		t.Fatal(err)
	}
	hit := slices.Sorted(maps.Keys(d.truth.Impacts))
	if len(hit) != 28 {
		t.Errorf("%d services are hit, 28 are published", len(hit))
	}
	if diff := cmp.Diff(c.DependentServices(primary, 10), hit); diff != "" {
		t.Errorf("hit services are not those that depend on the primary (-depend +hit):\n%s", diff)
	}
	for name, im := range d.truth.Impacts {
		if im.Onset.Before(clock(t, s, "08:43")) || im.Onset.After(clock(t, s, "08:46")) {
			t.Errorf("%s: onset %s", name, im.Onset)
		}
		if im.Last.After(clock(t, s, "10:45")) || im.Failures < 100 {
			t.Errorf("%s: last %s, %d failures", name, im.Last, im.Failures)
		}
	}
	if d.hangs < 20_000 {
		t.Errorf("only %d failures hung before they failed", d.hangs)
	}
	for _, p := range d.truth.Paths() {
		rate := d.truth.Sum(p, clock(t, s, "09:20"), clock(t, s, "10:20")).FailureRate()
		if _, hit := d.truth.Impacts[p.Service]; hit != (rate > 0.02) {
			t.Errorf("%s fails at %.4f at the height", p, rate)
		}
	}
}

// checkQuiet allows chance, but no fault, in the hours before, save for the one bad rollout.
func checkQuiet(t *testing.T, s *scenario.Scenario, d *day) {
	const tenMinutes = 10 * time.Minute
	blips := 0
	for _, p := range d.truth.Paths() {
		for at := s.Start; at.Before(clock(t, s, "07:30")); at = at.Add(tenMinutes) {
			sum := d.truth.Sum(p, at, at.Add(tenMinutes))
			if sum.FailureRate() < 0.02 || sum.Outcomes[signal.Failure] < 6 {
				continue
			}
			if p.Service == "packages" {
				blips++
				continue
			}
			t.Errorf("%s at %s: %.3f fail", p, at, sum.FailureRate())
		}
	}
	if blips > 3 {
		t.Errorf("the rollout's blip shows in %d spans of ten minutes", blips)
	}
}

func checkRetries(t *testing.T, s *scenario.Scenario, d *day) {
	p := signal.Path{Service: "token-store", Operation: "PersistToken", Access: signal.Write}
	sum := func(from, to string) (total, retries float64) {
		x := d.truth.Sum(p, clock(t, s, from), clock(t, s, to))
		return float64(x.Outcomes[signal.Success] + x.Outcomes[signal.Failure]), float64(x.Retries)
	}
	usual, before := sum("06:00", "07:00")
	loop, again := sum("09:20", "10:20")
	if before > 0.01*usual || again < 0.5*loop || loop < 2.5*usual {
		t.Errorf("usual %v with %v retries, at the height %v with %v", usual, before, loop, again)
	}
	if d.attempts[p][8] == 0 || d.attempts[p][9] > 0 {
		t.Errorf("attempts: %v", d.attempts[p])
	}
}

func checkTickets(t *testing.T, s *scenario.Scenario, d *day) {
	c, err := catalogue.Parse("catalogue.yaml", s.Catalogue)
	if err != nil {
		t.Fatal(err)
	}
	ids, accounts, languages := map[string]bool{}, map[string]bool{}, map[string]int{}
	quiet, onset, height, placed := 0, 0, 0, 0
	for _, k := range d.tickets {
		if ids[k.ID] {
			t.Errorf("ticket id %s twice", k.ID)
		}
		ids[k.ID] = true
		languages[k.Language]++
		switch {
		case k.Time.Before(clock(t, s, "07:30")):
			quiet++
		case k.Time.After(clock(t, s, "08:43")) && k.Time.Before(clock(t, s, "08:48")):
			onset++
		case k.Time.After(clock(t, s, "09:00")) && k.Time.Before(clock(t, s, "10:30")):
			height++
			accounts[k.Account] = true
			if c.Classify(k.Subject+" "+k.Text) != "" {
				placed++
			}
		}
	}
	if quiet > 80 || quiet < 15 {
		t.Errorf("%d tickets in two quiet hours", quiet)
	}
	if onset > 8 {
		t.Errorf("%d tickets in the first five minutes, though customers need longer to write", onset)
	}
	if height < 400 || len(accounts) < height/2 {
		t.Errorf("%d tickets of %d accounts at the height", height, len(accounts))
	}
	if placed < height*3/4 {
		t.Errorf("the catalogue's words place %d of %d tickets", placed, height)
	}
	if languages["zh"] < 10 {
		t.Errorf("languages: %v", languages)
	}
}

func checkChanges(t *testing.T, s *scenario.Scenario, d *day) {
	decoys, job := 0, []signal.Change{}
	for _, c := range d.changes {
		if c.ID == d.truth.Labels.Incidents[0].Cause.Change {
			job = append(job, c)
		} else if c.Phase == signal.Started && c.Time.After(clock(t, s, "07:00")) && c.Time.Before(clock(t, s, "09:15")) {
			decoys++
		}
	}
	if len(job) != 2 || !job[0].Time.Equal(clock(t, s, "07:33")) || job[1].Phase != signal.Aborted || !job[1].Time.Equal(clock(t, s, "10:27")) {
		t.Errorf("the job: %+v", job)
	}
	if decoys < 12 {
		t.Errorf("%d other changes around it", decoys)
	}
}

func TestLabels(t *testing.T) {
	s := load(t)
	l := scenario.NewGenerator(s, 1).Truth().Labels
	if len(l.Incidents) != 1 || len(l.Quiet) == 0 || l.Quiet[0].To.Sub(l.Quiet[0].From) < 2*time.Hour {
		t.Errorf("labels: %+v", l)
	}
}

func BenchmarkGenerate(b *testing.B) {
	s := load(b)
	for b.Loop() {
		var n uint64
		for slice := range s.Generate(1) {
			n += uint64(slice.Len())
		}
		b.ReportMetric(float64(n), "events/op")
	}
}
