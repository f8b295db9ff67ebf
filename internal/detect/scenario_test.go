package detect_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/deploy"
	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/scenario"
	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/rules"
)

func shipped(t testing.TB) *rule.Set {
	t.Helper()
	set, err := rule.LoadFS(rules.FS, ".")
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func demo(t testing.TB) (*scenario.Scenario, *catalogue.Catalogue) {
	t.Helper()
	s, err := scenario.Load(deploy.Demo, "2026-09-13")
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalogue.Parse("catalogue.yaml", s.Catalogue)
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// inputs turns a slice into what a tick that closes its buckets would see.
func inputs(sl *scenario.Slice) (in detect.Inputs) {
	at := map[signal.Key]*signal.Cell{}
	for i := range sl.Requests {
		r := &sl.Requests[i]
		k := signal.Key{Path: r.Path, Attributes: r.Attributes}
		c := at[k]
		if c == nil {
			c = &signal.Cell{Bucket: signal.BucketOf(r.Time), Key: k}
			at[k] = c
		}
		c.Count(r)
	}
	for _, c := range at {
		in.Cells = append(in.Cells, *c)
	}
	in.Gauges, in.Tickets, in.Changes = sl.Gauges, sl.Tickets, sl.Changes
	return in
}

func TestTenSeeds(t *testing.T) {
	s, cat := demo(t)
	for seed := int64(1); seed <= 10; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			d := detect.New(detect.Config{Rules: shipped(t), Catalogue: cat})
			n := uint64(0)
			var out detect.Outputs
			var cpu time.Duration
			for sl := range s.Generate(seed) {
				n++
				in := inputs(sl)
				in.Tick = detect.Tick{Number: n, From: sl.From, To: sl.To, Clock: sl.To}
				t0 := time.Now()
				o := d.Tick(in)
				cpu += time.Since(t0)
				out.Events = append(out.Events, o.Events...)
				out.Warnings = append(out.Warnings, o.Warnings...)
				out.Transitions = append(out.Transitions, o.Transitions...)
			}
			if os.Getenv("SHOW") != "" {
				show(&out)
			}
			fmt.Println("cpu per tick", cpu/time.Duration(n), "ticks", n)
		})
	}
}

func show(out *detect.Outputs) {
	for _, w := range out.Warnings {
		fmt.Println("WARN", w.At.Format("15:04:05"), w.Resource, w.Metric, w.Value, w.Limit, w.ExhaustedAt.Format("15:04"))
		for _, s := range w.Suspects[:min(3, len(w.Suspects))] {
			fmt.Println("       ", s.Score, s.Kind, s.ID, s.Reasons, s.Against)
		}
	}
	for _, e := range out.Events {
		if e.Type == incident.EventImpact && os.Getenv("SHOW") != "2" {
			continue
		}
		fmt.Println(e.At.Format("15:04:05"), e.Incident, e.Sequence, e.Type, e.After.State, e.After.Severity, e.After.Page, len(e.After.Services), "|", e.After.Title, "|", e.Reason)
		if e.Type == incident.EventDeclared || e.Type == incident.EventResolved || e.Type == incident.EventSuspects {
			for _, s := range e.After.Suspects[:min(3, len(e.After.Suspects))] {
				fmt.Println("       ", s.Score, s.Kind, s.ID, s.Reasons, s.Against)
			}
			fmt.Printf("        %+v tickets %d scope %v paths %d\n", e.After.Impact, e.After.Tickets, e.After.Scope, len(e.After.Paths))
		}
	}
}
