package ingest_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/ingest/ingesttest"
)

// storm is what the simulated processes go through: at each step they may die or sleep, commits get lost or come late,
// inserts land after whoever sent them is gone.
var storm = ingesttest.Chaos{Kill: 0.004, Freeze: 0.004, FreezeMax: 90 * time.Second, CommitLate: 0.02, CommitLost: 0.02,
	InsertLate: 0.05, InsertFail: 0.05, LateMax: 20 * time.Second}

// thunder is worse, on commits and inserts above all.
var thunder = ingesttest.Chaos{Kill: 0.015, Freeze: 0.01, FreezeMax: 40 * time.Second, CommitLate: 0.1, CommitLost: 0.1,
	InsertLate: 0.3, InsertFail: 0.1, LateMax: 60 * time.Second}

type tally struct{ missing, doubled, records, batches, repeats int }

func (s tally) String() string {
	return fmt.Sprintf("%d records in %d batches, %d inserts repeated: %d missing, %d doubled", s.records, s.batches, s.repeats, s.missing, s.doubled)
}

// simulate lets three processes read three partitions while they are struck, then calms down and counts.
func simulate(t *testing.T, seed uint64, storm ingesttest.Chaos, change func(*ingest.Loop)) (result tally) {
	synctest.Test(t, func(t *testing.T) {
		const partitions, perPartition = 3, 400
		rnd := rand.New(rand.NewPCG(seed, 2))
		w := newWorld(t, func(c *ingest.Config) { c.FetchBytes = 2 << 10 }, source(t, "gauges", "g", "json", ""))
		w.store.Window = time.Hour
		w.kafka.CreateTopic("g", partitions)
		var all []*running
		started := uint64(0)
		start := func(c ingesttest.Chaos) *running {
			started++
			return w.start(seed*1000+started, c, change)
		}
		for range 3 {
			all = append(all, start(storm))
		}
		produced := 0
		revive := func(c ingesttest.Chaos) {
			for i, r := range all {
				if r.process.Dead() {
					<-r.done
					all[i] = start(c)
				}
			}
		}
		for produced < partitions*perPartition {
			for range 1 + rnd.IntN(20) {
				if produced < partitions*perPartition {
					w.kafka.Produce("g", int32(produced%partitions), time.Now(), gauge(time.Now(), produced))
					produced++
				}
			}
			advance(time.Duration(rnd.IntN(8000)) * time.Millisecond)
			revive(storm)
		}
		advance(5 * time.Minute)
		for _, r := range all {
			r.process.Calm()
		}
		for range 600 {
			advance(time.Second)
			revive(ingesttest.Chaos{})
		}
		for _, r := range all {
			r.stop(t)
		}
		advance(time.Minute) // inserts that are still on their way
		seen := make([]int, produced)
		for _, b := range w.store.Batches() {
			for _, g := range b.Gauges {
				seen[int(g.Value)]++
			}
			if !b.Marker.Heartbeat {
				result.batches++
			}
		}
		for _, n := range seen {
			switch {
			case n == 0:
				result.missing++
			case n > 1:
				result.doubled += n - 1
			}
		}
		result.records, result.repeats = produced, w.store.Repeats()
	})
	return result
}

// seeds is how many simulations a test runs; TOCSIN_SEEDS asks for more.
func seeds(short int) int {
	if n, err := strconv.Atoi(os.Getenv("TOCSIN_SEEDS")); err == nil {
		return n
	}
	return short
}

func TestNothingIsLostOrDoubledWhateverDies(t *testing.T) {
	for seed := range seeds(12) {
		for i, chaos := range []ingesttest.Chaos{storm, thunder} {
			if r := simulate(t, uint64(seed), chaos, nil); r.missing > 0 || r.doubled > 0 {
				t.Errorf("seed %d, weather %d: %s", seed, i, r)
			} else if seed < 3 {
				t.Logf("seed %d, weather %d: %s", seed, i, r)
			}
		}
	}
}

// The simulation must be able to see what the rules are there for.
func TestSimulationCatchesLostRules(t *testing.T) {
	for name, change := range map[string]func(*ingest.Loop){
		"without reservations":              func(l *ingest.Loop) { l.BreakRules(true, false) },
		"going on after an unknown outcome": func(l *ingest.Loop) { l.BreakRules(false, true) },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range 300 {
				if r := simulate(t, uint64(seed), thunder, change); r.doubled > 0 || r.missing > 0 {
					t.Logf("seed %d: %s", seed, r)
					return
				}
			}
			t.Error("nothing was lost or doubled in 300 simulations")
		})
	}
}
