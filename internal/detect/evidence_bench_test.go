package detect_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// BenchmarkEvidence is one tick over 2,000 paths, all with traffic, by threshold and by evidence.
func BenchmarkEvidence(b *testing.B) {
	const paths = 2000
	for _, rules := range []string{someRules, strings.Replace(someRules, "above: 10%", "false_pages: 1 per 30d", 1)} {
		name := "threshold"
		if rules != someRules {
			name = "evidence"
		}
		b.Run(name, func(b *testing.B) {
			d := detect.New(detect.Config{Rules: parseRules(b, rules)})
			cells := make([]signal.Cell, paths)
			step := func(n int) {
				from := at(time.Duration(n) * signal.BucketSize)
				for i := range cells {
					cells[i] = traffic(from, fmt.Sprintf("s%05d", i), uint64(40+(n+i)%9), uint64((n*7+i)%31/30))
				}
				d.Tick(detect.Inputs{Tick: detect.Tick{Number: uint64(n + 1), From: from, To: from.Add(signal.BucketSize)}, Cells: cells})
			}
			n := 0
			for ; n < 400; n++ {
				step(n)
			}
			for b.Loop() {
				step(n)
				n++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/paths, "ns/path")
		})
	}
}
