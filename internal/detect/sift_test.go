package detect_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const siftedRules = `groups:
  - name: a
    rules:
      - {alert: Short, kind: failure_rate, above: 5%, window: 1m, min_failures: 2, slices: [region]}
      - {alert: Long, kind: failure_rate, above: 3%, window: 1h, min_failures: 3, times_usual: 2, slices: [region]}
      - {alert: Refused, kind: failure_rate, bad: [rejected], above: 10%, window: 2m, min_failures: 3, lost: 20%, slices: [region]}
      - {alert: AnyBad, kind: failure_rate, bad: [rejected, throttled, failure], above: 10%, window: 3m, min_failures: 3, no_data: alert}
      - {alert: FastBurn, kind: failure_rate, objective: 99%, burn_rates: [14.4 over 1h and 5m, 6 over 6h and 30m], min_failures: 3, slices: [region]}
      - {alert: SlowBurn, kind: failure_rate, objective: 97%, burn_rates: [3 over 1d and 2h, 1 over 3d and 6h], min_failures: 3, slices: [region]}
      - {alert: SlowShare, kind: latency, slower_than: 1s, objective: 98%, burn_rates: [5 over 30m and 5m, 2 over 6h and 1h]}
      - {alert: Slow, kind: latency, slower_than: 4s, above: 5%, window: 15m, min_requests: 5, times_usual: 2, match: {attributes: {region: r0}}}
  - name: b
    interval: 70s
    limit: 4
    rules:
      - {alert: Seldom, kind: failure_rate, above: 5%, window: 4m, min_failures: 2, slices: [region], no_data: ok}
      - {alert: SeldomBurn, kind: failure_rate, objective: 98%, burn_rates: [5 over 2h and 10m], min_failures: 2, no_data: zero}
`

// What is passed over quickly would not have been abnormal: rules that judge every series at every step find the same, to the byte. The
// world has all that makes a window odd: pauses, late rows, bursts, paths that nobody uses for hours.
func TestPassedOverIsNotAbnormal(t *testing.T) {
	for seed := range uint64(6) {
		quick := detect.New(detect.Config{Rules: parseRules(t, siftedRules)})
		thorough := detect.New(detect.Config{Rules: parseRules(t, siftedRules)})
		thorough.JudgeAll()
		r, n := rand.New(rand.NewPCG(seed, 3)), 0
		trouble := map[int]int{} // until which step a path is in trouble
		for step := range 9 * 360 {
			from := at(time.Duration(step) * signal.BucketSize)
			in := detect.Inputs{Tick: detect.Tick{Number: uint64(step + 1), From: from, To: from.Add(signal.BucketSize)}}
			for path := range 12 {
				if r.IntN(200) == 0 {
					trouble[path] = step + r.IntN(200)
				}
				if r.IntN(path+1) > 3 || step/500%5 == path%5 {
					continue
				}
				c := signal.Cell{Bucket: from, Key: signal.Key{Path: signal.Path{Service: fmt.Sprint("s", path/3), Operation: fmt.Sprint("o", path), Access: signal.Access(path % 2)}}}
				if r.IntN(3) > 0 {
					c.Key.Attributes = signal.AttributesOf(signal.Attr{Name: "region", Value: fmt.Sprint("r", r.IntN(3))})
				}
				c.Outcomes[signal.Success] = r.Uint64N(uint64(3 + 10*path))
				if step < trouble[path] {
					c.Outcomes[r.IntN(int(signal.NumOutcomes))] += r.Uint64N(20)
				}
				if r.IntN(60) == 0 {
					c.Outcomes[signal.Failure]++
				}
				c.Latency[[]int{3, 3, 3, 22, 30}[r.IntN(5)]] = c.Total()
				if r.IntN(50) == 0 {
					c.Bucket = c.Bucket.Add(-time.Duration(r.IntN(500)) * signal.BucketSize)
				}
				in.Cells = append(in.Cells, c)
			}
			a, b := quick.Tick(in), thorough.Tick(in)
			n += len(a.Transitions)
			x, _ := json.Marshal(a)
			if y, _ := json.Marshal(b); string(x) != string(y) {
				t.Fatalf("seed %d, step %d: found\n%s\nthorough judging finds\n%s", seed, step, x, y)
			}
		}
		if n < 100 {
			t.Errorf("seed %d: only %d changes: this proves nothing", seed, n)
		}
	}
}
