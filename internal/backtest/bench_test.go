package backtest

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// used is the CPU time of this process until now.
func used() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkReplay replays ten minutes of 500 active paths by the shipped rules and reports how long 30 days would take on one
// core: what the detector costs, without reading. A path has requests in every bucket, which is the worst case.
func BenchmarkReplay(b *testing.B) {
	o := options(b)
	const paths, steps = 500, 60
	keys := make([]signal.Key, paths)
	for i := range keys {
		keys[i].Path = signal.Path{Service: fmt.Sprintf("service-%02d", i/10), Operation: fmt.Sprintf("op-%d", i%10), Access: signal.Access(i % 2)}
	}
	d := detect.New(detect.Config{Rules: o.Rules, Catalogue: catalogue.Empty()})
	at := time.Date(2026, 9, 13, 0, 0, 0, 0, time.UTC)
	tick := func(n int) detect.Inputs {
		in := detect.Inputs{Tick: detect.Tick{Number: uint64(n + 1), From: at, To: at.Add(steps * signal.BucketSize)}, Cells: make([]signal.Cell, 0, steps*paths)}
		for s := range steps {
			for i := range keys {
				c := signal.Cell{Bucket: at.Add(time.Duration(s) * signal.BucketSize), Key: keys[i]}
				c.Outcomes[signal.Success] = uint64(50 + (i*7+s*13)%40)
				if (i+s)%17 == 0 {
					c.Outcomes[signal.Failure] = 1
				}
				c.Latency[8] = c.Outcomes[signal.Success]
				in.Cells = append(in.Cells, c)
			}
		}
		at = at.Add(steps * signal.BucketSize)
		return in
	}
	for n := range 12 {
		d.Tick(tick(n)) // two hours, so that windows are full
	}
	b.ResetTimer()
	var spent time.Duration
	for n := range b.N {
		b.StopTimer()
		in := tick(n + 12)
		b.StartTimer()
		start := used()
		d.Tick(in)
		spent += used() - start
	}
	month := spent / time.Duration(b.N) * 30 * 24 * 6
	b.ReportMetric(month.Seconds(), "cpu-s/month")
	b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N*paths*steps), "ns/cell")
	b.ReportMetric(float64(len(o.Rules.Rules())), "rules")
}
