package scenario_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/deploy"
	"github.com/tocsin-project/tocsin/internal/scenario"
	"github.com/tocsin-project/tocsin/internal/signal"
)

func TestSmoke(t *testing.T) {
	s, err := scenario.Load(deploy.Demo, "2026-09-13")
	if err != nil {
		t.Fatal(err)
	}
	t0 := time.Now()
	g := scenario.NewGenerator(s, 1)
	for {
		sl, ok := g.Next()
		if !ok {
			break
		}
		for _, ga := range sl.Gauges {
			if ga.Resource == "mysql/collab/primary" && ga.Metric == "connections_used" && (ga.Time.Minute()%10 == 0 || ga.Time.Hour() == 8 && ga.Time.Minute() > 40) && ga.Time.Second() < 10 {
				fmt.Println(ga.Time.Format("15:04:05"), ga.Value)
			}
		}
	}
	fmt.Println(time.Since(t0))
	tr := g.Truth()
	fmt.Println(tr.Requests, tr.Gauges, tr.Tickets, tr.Changes, tr.Attempts, len(tr.Impacts))
	for k, v := range tr.Impacts {
		fmt.Println(k, v.Onset.Format("15:04:05"), v.Failures)
	}
	for _, f := range s.Figures() {
		fmt.Println(f.What, f.Share, tr.Sum(f.Path(), s.Time(f.From), s.Time(f.To)).FailureRate())
	}
	for _, p := range tr.Paths() {
		q, i := tr.Sum(p, s.Start, s.Start.Add(2*time.Hour)), tr.Sum(p, s.Start.Add(4*time.Hour), s.Start.Add(4*time.Hour+40*time.Minute))
		fmt.Printf("%-70s %6.1f/s %.4f  incident %.4f %.1f/s\n", p, float64(q.Outcomes[0])/7200, q.FailureRate(), i.FailureRate(), float64(i.Outcomes[0]+i.Outcomes[1])/2400)
	}
	_ = signal.Success
}
