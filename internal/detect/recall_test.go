package detect

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// What each kind remembers survives a snapshot in the middle of it: a detector that is restored says and remembers the same from
// then on, byte for byte.
func TestMemoriesOfAllKindsSurviveASnapshot(t *testing.T) {
	var text strings.Builder
	text.WriteString("groups:\n- name: g\n  rules:\n  - {alert: Burn, kind: failure_rate, objective: 99%, burn_rates: [2 over 6h and 30m]}\n  - {alert: Any, kind: external}\n  - {alert: Gone, kind: absence}\n")
	for _, k := range rule.Kinds {
		text.WriteString("  - " + strings.ReplaceAll(strings.TrimSpace(k.Example), "\n", "\n    ") + "\n")
	}
	set, err := rule.LoadFS(fstest.MapFS{"r.yaml": {Data: []byte(text.String())}}, ".")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	input := func(i int) (in Inputs) {
		from := start.Add(time.Duration(i) * signal.BucketSize)
		in.Tick = Tick{Number: uint64(i + 1), From: from, To: from.Add(signal.BucketSize)}
		for s := range 5 {
			if s == 3 && i > 800 {
				continue
			}
			c := signal.Cell{Bucket: from, Key: signal.Key{Path: signal.Path{Service: fmt.Sprint("s", s), Operation: "get"}}, Retries: uint64(i % 7)}
			c.Outcomes[signal.Success], c.Outcomes[signal.Failure] = 50, uint64(i%3*s)
			in.Cells = append(in.Cells, c)
		}
		depth := 300 + float64(i%11)*5
		if i > 700 {
			depth += float64(i-700) * 40
		}
		in.Gauges = []signal.Gauge{{Time: from, Resource: "queue/a", Metric: "depth", Value: depth}}
		if i == 500 {
			in.Alerts = []signal.Alert{{Time: from, Fingerprint: "f", Status: "firing", Labels: signal.NewAttributes(map[string]string{"alertname": "X", "service": "s1"})}}
		}
		return in
	}
	a := New(Config{Rules: set})
	for i := range 850 {
		a.Tick(input(i))
	}
	data, err := a.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	b := New(Config{Rules: set})
	if err := b.Restore(data); err != nil {
		t.Fatal(err)
	}
	again, err := b.Snapshot()
	if err != nil || !bytes.Equal(data, again) {
		t.Errorf("a restored detector gives another snapshot, %v", err)
	}
	found := map[string]bool{}
	for i := 850; i < 1100; i++ {
		x, y := a.Tick(input(i)), b.Tick(input(i))
		if fmt.Sprintf("%+v", x.Transitions) != fmt.Sprintf("%+v", y.Transitions) {
			t.Fatalf("step %d:\n%+v\nrestored:\n%+v", i, x.Transitions, y.Transitions)
		}
		for _, r := range a.rules {
			found[r.Kind] = found[r.Kind] || len(r.active) > 0
		}
	}
	x, _ := a.Snapshot()
	y, _ := b.Snapshot()
	if !bytes.Equal(x, y) {
		t.Error("after more ticks the two differ")
	}
	for _, k := range []string{"gauge", "backlog", "absence", "external", "failure_rate"} {
		if !found[k] {
			t.Errorf("no finding of kind %s: the test says nothing about it", k)
		}
	}
}

// What is past a limit is one finding that is judged once a step: an evaluator that goes through its own findings must not end it
// in the same step in which it goes on.
func TestAlertsPastALimitAreOneChange(t *testing.T) {
	set, err := rule.LoadFS(fstest.MapFS{"r.yaml": {Data: []byte("groups:\n- name: g\n  limit: 4\n  rules:\n  - {alert: Any, kind: external}\n")}}, ".")
	if err != nil {
		t.Fatal(err)
	}
	start, d, changes := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), New(Config{Rules: set}), 0
	for i := range 60 {
		from := start.Add(time.Duration(i) * signal.BucketSize)
		in := Inputs{Tick: Tick{Number: uint64(i + 1), From: from, To: from.Add(signal.BucketSize)}}
		for n := range 9 {
			a := signal.Alert{Time: from, Fingerprint: fmt.Sprint(n), Labels: signal.NewAttributes(map[string]string{"alertname": fmt.Sprint("X", n)})}
			switch i {
			case 10:
				a.Status = "firing"
			case 50:
				a.Status = "resolved"
			default:
				continue
			}
			in.Alerts = append(in.Alerts, a)
		}
		changes += len(d.Tick(in).Transitions)
	}
	if changes != 2 {
		t.Errorf("%d changes, want one that begins and one that ends", changes)
	}
}
