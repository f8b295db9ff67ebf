package detect_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// twentyRules is a mix as large installations have it, all of which judge every path, and most of them every region of it.
func twentyRules(t testing.TB) *rule.Set {
	t.Helper()
	text := "groups:\n  - name: twenty\n    rules:\n"
	add := func(format string, args ...any) { text += "      - {" + fmt.Sprintf(format, args...) + "}\n" }
	for i, w := range []string{"1m", "2m", "3m", "5m", "10m", "15m", "30m", "1h"} {
		add("alert: Failing%s, kind: failure_rate, above: %d%%, window: %s, min_failures: %d, times_usual: 3, slices: [region], for: 1m", w, 20-2*i, w, 10+i)
	}
	add("alert: Rejected, kind: failure_rate, bad: [rejected], above: 30%%, window: 2m, min_failures: 30, times_usual: 4, lost: 50%%, slices: [region]")
	add("alert: Throttled, kind: failure_rate, bad: [throttled], above: 30%%, window: 5m, min_failures: 30, times_usual: 4, slices: [region]")
	add("alert: FastBurn, kind: failure_rate, objective: 99%%, burn_rates: [14.4 over 1h and 5m, 6 over 6h and 30m], min_failures: 20, slices: [region]")
	add("alert: SlowBurn, kind: failure_rate, objective: 97%%, burn_rates: [3 over 1d and 2h, 1 over 3d and 6h], min_failures: 20, slices: [region]")
	add("alert: Burn995, kind: failure_rate, objective: 99.5%%, burn_rates: [14.4 over 1h and 5m, 6 over 6h and 30m], min_failures: 20, slices: [region]")
	add("alert: Unusual, kind: failure_rate, false_pages: 1 per 30d, slices: [region]")
	for _, s := range []string{"1s", "4s"} {
		add("alert: Slow%s, kind: latency, slower_than: %s, above: 25%%, window: 2m, min_requests: 20, times_usual: 5", s, s)
	}
	add("alert: SlowLong, kind: latency, slower_than: 1s, above: 10%%, window: 15m, min_requests: 20, times_usual: 5")
	add("alert: SlowBudget, kind: latency, slower_than: 4s, objective: 99%%, burn_rates: [14.4 over 1h and 5m]")
	add("alert: Retries, kind: retries, attempts: 2, times_usual: 3, traffic: 5, window: 5m, min_requests: 300")
	add("alert: Silent, kind: absence, per: service, silent_for: 5m, expected: 30")
	return parseRules(t, text)
}

// world is what a large installation sends: services of ten paths, each path in twenty regions, all with requests in every bucket, of
// which few fail, but for some regions of some paths in which a third does.
type world struct {
	keys []signal.Key
	at   time.Time
	n    int
	rand *rand.Rand
}

const regions = 20

func newWorld(slices int) *world {
	w := &world{at: time.Date(2026, 9, 13, 0, 0, 0, 0, time.UTC), rand: rand.New(rand.NewPCG(1, 2))}
	for i := range slices {
		path := i / regions
		w.keys = append(w.keys, signal.Key{
			Path:       signal.Path{Service: fmt.Sprintf("service-%04d", path/10), Operation: fmt.Sprintf("operation-%d", path%10), Access: signal.Access(path % 2)},
			Attributes: signal.AttributesOf(signal.Attr{Name: "region", Value: fmt.Sprintf("region-%02d", i%regions)}),
		})
	}
	return w
}

// tick is one tick of some steps. What it returns is not used again.
func (w *world) tick(steps int) detect.Inputs {
	w.n++
	to := w.at.Add(time.Duration(steps) * signal.BucketSize)
	in := detect.Inputs{Tick: detect.Tick{Number: uint64(w.n), From: w.at, To: to, Clock: to}, Cells: make([]signal.Cell, 0, steps*len(w.keys))}
	for ; w.at.Before(to); w.at = w.at.Add(signal.BucketSize) {
		for i, k := range w.keys {
			c := signal.Cell{Bucket: w.at, Key: k}
			r := w.rand.Uint64()
			n := 30 + r%40
			c.Outcomes[signal.Success] = n
			if r>>32%5 == 0 {
				c.Outcomes[signal.Failure] = 1
				c.Accounts.Add(r * 0x9e3779b97f4a7c15)
			}
			if i%2000 == 7 {
				c.Outcomes[signal.Failure] = n / 2
			}
			c.Latency[8] = n
			if r>>48%50 == 0 {
				c.Latency[22] = 1
			}
			in.Cells = append(in.Cells, c)
		}
	}
	return in
}

// worldSizes are the numbers of path-slices to measure with: SLICES adds one.
func worldSizes(b *testing.B) []int {
	sizes := []int{2_000}
	if n, err := strconv.Atoi(os.Getenv("SLICES")); err == nil {
		sizes = []int{n}
	}
	return sizes
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// used is the CPU time of this process until now, all of its threads: on a busy machine it says more than the clock.
func used() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkTick is one tick of one step of twenty rules. It says what CPU a path-slice costs a tick and what it keeps in memory, once windows
// are full. SLICES=100000 measures what is promised.
func BenchmarkTick(b *testing.B) {
	for _, size := range worldSizes(b) {
		b.Run(fmt.Sprintf("slices=%d", size), func(b *testing.B) {
			before := heap()
			w := newWorld(size)
			cfg := detect.Config{Rules: twentyRules(b)}
			d := detect.New(cfg)
			for range 40 {
				d.Tick(w.tick(10))
			}
			keeps := float64(heap()-before) / float64(size)
			var spent time.Duration
			for b.Loop() {
				b.StopTimer()
				in := w.tick(1)
				b.StartTimer()
				start := used()
				d.Tick(in)
				spent += used() - start
			}
			tick := float64(spent.Nanoseconds()) / float64(b.N)
			b.ReportMetric(tick/1e9, "cpu-s/tick")
			b.ReportMetric(tick/float64(size), "ns/slice")
			b.ReportMetric(tick/float64(size*len(cfg.Rules.Rules())), "ns/slice·rule")
			b.ReportMetric(keeps, "B/slice")
		})
	}
}

// BenchmarkCheckpoint writes and reads the state of the same world.
func BenchmarkCheckpoint(b *testing.B) {
	for _, size := range worldSizes(b) {
		w := newWorld(size)
		cfg := detect.Config{Rules: twentyRules(b)}
		d := detect.New(cfg)
		for range 40 {
			d.Tick(w.tick(10))
		}
		var state []byte
		b.Run(fmt.Sprintf("write/slices=%d", size), func(b *testing.B) {
			start := used()
			for b.Loop() {
				var err error
				if state, err = d.Snapshot(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((used()-start).Seconds()/float64(b.N), "cpu-s")
			b.ReportMetric(float64(len(state))/float64(size), "B/slice")
		})
		b.Run(fmt.Sprintf("read/slices=%d", size), func(b *testing.B) {
			start := used()
			for b.Loop() {
				if err := detect.New(cfg).Restore(state); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((used()-start).Seconds()/float64(b.N), "cpu-s")
		})
	}
}
