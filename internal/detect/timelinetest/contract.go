package timelinetest

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

func emptyPast(t *testing.T, s Subject) {
	d := lead(t, s)
	same(t, "progress", detect.Progress{}, d.progress())
	same(t, "resume", detect.Resume{}, d.resume())
	in := d.step(detect.Outputs{})
	same(t, "inputs", detect.Inputs{Tick: in.Tick}, in)
	same(t, "events", []incident.Event{}, s.Events(t, 0))
}

func progressAdvances(t *testing.T, s Subject) {
	d := lead(t, s)
	s.Feed(t, Rows{Cells: []signal.Cell{cell(0, key("a", "x", signal.Read), 1, 0)}})
	s.Progress(t, at(60), at(70))
	first := d.progress()
	if len(first.Marks) == 0 || !first.Clock.Equal(at(70)) {
		t.Fatalf("progress %+v, want marks and clock %v", first, at(70))
	}
	for _, m := range first.Marks {
		if !m.Watermark.Equal(at(60)) {
			t.Errorf("watermark of %s is %v, want %v", m.Stream, m.Watermark, at(60))
		}
	}
	s.Progress(t, at(50), at(80))
	s.Feed(t, Rows{Cells: []signal.Cell{cell(10, key("a", "x", signal.Read), 1, 0)}})
	second := d.progress()
	if len(second.Marks) != len(first.Marks) || !second.Clock.Equal(at(80)) {
		t.Fatalf("progress %+v after %+v", second, first)
	}
	for i, m := range second.Marks {
		before := first.Marks[i]
		if m.Partition != before.Partition || m.Watermark.Before(before.Watermark) || m.End < before.End || (m.Stream == signal.Requests) != (m.End > before.End) {
			t.Errorf("mark %+v after %+v", m, before)
		}
	}
}

func recordComesBack(t *testing.T, s Subject) {
	d := lead(t, s)
	s.Feed(t, Rows{Gauges: []signal.Gauge{{Time: at(3), Resource: "r", Metric: "m", Value: 1}}})
	s.Progress(t, at(60), at(70))
	want := d.tick()
	want.Partial = []signal.Stream{signal.Tickets, signal.Changes}
	want.Commands = []incident.Command{{ID: "c1", Type: incident.CommandMerge, Incident: "i1", Into: "i2", By: "x", Via: "cli", At: at(1), Note: "it's \"one\"\n"}}
	want.Answers = []detect.Answer{
		{Rule: "q", Of: "1f", At: at(60), From: at(0), To: at(60), Rows: []detect.AnswerRow{{Labels: map[string]string{"site": "it's"}, Value: detect.Number(math.Inf(1))}, {Value: 0.1}}},
		{Rule: "r", Of: "2e", At: at(60), From: at(0), To: at(60), Error: "no answer within 10s"},
	}
	want.Rules, want.Catalogue, want.Binary = "r1", "c1", "v1"
	same(t, "claimed tick", want, d.claim(want).Tick)
	resumed := d.resume()
	if len(resumed.Ticks) != 1 || !resumed.Unfinished {
		t.Fatalf("resume %+v, want the one unfinished tick", resumed)
	}
	same(t, "resumed tick", want, resumed.Ticks[0].Tick)
}

func rowsComeBack(t *testing.T, s Subject) {
	d := lead(t, s)
	c := signal.Cell{Bucket: at(10), Key: key("it's", "b\\c\n", signal.Read, signal.Attr{Name: "site", Value: "iad"}, signal.Attr{Name: "modèle", Value: "k'3"}),
		Outcomes: [signal.NumOutcomes]uint64{1, 2, 3, 4}, Retries: 5, Estimated: true,
		Samples: []signal.Sample{{Hash: 7, TraceID: "t", Error: "e\t\x00", Account: "acme"}, {Hash: 1 << 63, Error: "f"}}}
	c.Latency.Add(3*time.Millisecond, 4)
	c.Latency.Add(2*time.Minute, 1)
	for _, a := range []string{"acme", "umbrella", "initech"} {
		c.Accounts.Add(signal.HashAccount(a))
	}
	attributes := signal.AttributesOf(signal.Attr{Name: "az", Value: "1"})
	want := Rows{
		Cells:  []signal.Cell{c},
		Gauges: []signal.Gauge{{Time: at(11), Resource: "mysql/collab/primary", Metric: "connections", Value: 12.5, Limit: 400, Unit: "1", Attributes: attributes}},
		Tickets: []signal.Ticket{{Time: at(12).Add(345 * time.Millisecond), ID: "T1", Subject: "s", Text: "cannot\nmerge 'x'", Account: "acme", Area: "collab",
			Service: "pulls", Language: "en", Source: "mail", Tags: []string{"a", "b"}, Severity: "high", URL: "https://help/1", Status: "new"}},
		Changes: []signal.Change{{Time: at(13), ID: "C1", Kind: signal.Job, Phase: signal.Started, Target: "mysql/collab/primary", Title: "clean-up", Actor: "cron",
			URL: "https://jobs/1", Dose: 0.25, Attributes: attributes}},
		Alerts: []signal.Alert{{Time: at(14), Fingerprint: "f1", Status: "firing", Labels: attributes, Annotations: attributes, StartsAt: at(14),
			GeneratorURL: "https://prom", Receiver: "tocsin"}},
	}
	s.Feed(t, want)
	s.Progress(t, at(60), at(60))
	in := d.step(detect.Outputs{})
	same(t, "rows", want, Rows{in.Cells, in.Gauges, in.Tickets, in.Changes, in.Alerts})
	again := lead(t, s).resume()
	if len(again.Ticks) != 1 || again.Unfinished {
		t.Fatalf("resume gives %d ticks, unfinished %v; want the one, done", len(again.Ticks), again.Unfinished)
	}
	same(t, "inputs in a resume", in, again.Ticks[0])
}

func oneTickARow(t *testing.T, s Subject) {
	d := lead(t, s)
	k := key("a", "x", signal.Write)
	for n := range 3 {
		s.Feed(t, Rows{Cells: []signal.Cell{cell(10*n, k, uint64(n)+1, 0)}, Alerts: []signal.Alert{{Time: at(n), Fingerprint: "f", Status: "firing"}}})
		s.Progress(t, at(10*n), at(10*n))
		in := d.step(detect.Outputs{})
		same(t, "cells", []signal.Cell{cell(10*n, k, uint64(n)+1, 0)}, in.Cells)
		if len(in.Alerts) != 1 {
			t.Errorf("tick %d sees %d alerts, want 1", in.Tick.Number, len(in.Alerts))
		}
	}
	in := d.step(detect.Outputs{})
	if len(in.Cells)+len(in.Alerts) != 0 {
		t.Errorf("a tick without news sees %+v", in)
	}
}

func rowsBeyondMarks(t *testing.T, s Subject) {
	d := lead(t, s)
	k := key("a", "x", signal.Write)
	s.Feed(t, Rows{Cells: []signal.Cell{cell(0, k, 1, 0)}})
	tick := d.tick()
	s.Feed(t, Rows{Cells: []signal.Cell{cell(0, k, 10, 0)}, Gauges: []signal.Gauge{{Time: at(1), Resource: "r", Metric: "m"}}})
	d.progress() // to know of more does not change what was asked for
	in := d.claim(tick)
	same(t, "cells below the marks", []signal.Cell{cell(0, k, 1, 0)}, in.Cells)
	d.commit(in.Tick, detect.Outputs{})
	in = d.step(detect.Outputs{})
	same(t, "cells of the next tick", []signal.Cell{cell(0, k, 10, 0)}, in.Cells)
	if len(in.Gauges) != 1 {
		t.Errorf("the next tick sees %d gauges, want 1", len(in.Gauges))
	}
}

func lateRows(t *testing.T, s Subject) {
	d := lead(t, s)
	k := key("a", "x", signal.Write)
	s.Feed(t, Rows{Cells: []signal.Cell{cell(0, k, 1, 0), cell(500, k, 2, 0)}}) // one far ahead: it waits in the detector
	in := d.step(detect.Outputs{})
	same(t, "early rows", []signal.Cell{cell(0, k, 1, 0), cell(500, k, 2, 0)}, in.Cells)
	d.step(detect.Outputs{})
	s.Feed(t, Rows{Cells: []signal.Cell{cell(0, k, 3, 4)}})
	in = d.step(detect.Outputs{})
	same(t, "late rows", []signal.Cell{cell(0, k, 3, 4)}, in.Cells)
}

func cellsSummed(t *testing.T, s Subject) {
	d := lead(t, s)
	k := key("a", "x", signal.Write)
	var want signal.Cell
	for n := range 5 {
		c := signal.Cell{Bucket: at(20), Key: k}
		for i := range 40 {
			outcome := signal.Outcome((n + i) % int(signal.NumOutcomes))
			c.Count(&signal.Request{Time: at(20).Add(time.Duration(n*40+i) * time.Millisecond), Outcome: outcome, Latency: time.Duration(n*i) * time.Millisecond,
				Account: string(rune('A'+i)) + string(rune('a'+n)), Attempt: uint32(i % 3), TraceID: string(rune('a' + i)), Error: "e", Estimated: n == 3 && i == 0})
		}
		if n == 0 {
			want = signal.Cell{Bucket: c.Bucket, Key: k}
		}
		want.Merge(&c)
		s.Feed(t, Rows{Cells: []signal.Cell{c}})
	}
	if len(want.Accounts) == 0 || len(want.Samples) != signal.MaxSamples {
		t.Fatalf("the test is too small: %+v", want)
	}
	same(t, "cells", []signal.Cell{want}, d.step(detect.Outputs{}).Cells)
}

func fixedOrder(t *testing.T, s Subject) {
	d := lead(t, s)
	var cells []signal.Cell
	var gauges []signal.Gauge
	for _, bucket := range []int{0, 10, 20} {
		for _, service := range []string{"a", "b", "c"} {
			for _, access := range []signal.Access{signal.Write, signal.Read} {
				for _, site := range []string{"", "fra", "iad"} {
					cells = append(cells, cell(bucket, key(service, "x", access, signal.Attr{Name: "site", Value: site}), 1, 0))
				}
			}
		}
		for _, r := range []string{"r1", "r2"} {
			gauges = append(gauges, signal.Gauge{Time: at(bucket), Resource: r, Metric: "m", Value: 1}, signal.Gauge{Time: at(bucket), Resource: r, Metric: "m", Value: 2})
		}
	}
	changes := []signal.Change{{Time: at(1), ID: "a", Kind: signal.Deploy, Phase: signal.Finished}, {Time: at(1), ID: "a", Kind: signal.Deploy, Phase: signal.Started},
		{Time: at(1), ID: "b", Kind: signal.Deploy, Phase: signal.Started}, {Time: at(2), ID: "0", Kind: signal.Deploy, Phase: signal.Started}}
	alerts := []signal.Alert{{Time: at(1), Fingerprint: "a", Status: "firing"}, {Time: at(1), Fingerprint: "a", Status: "resolved"}, {Time: at(2), Fingerprint: "0", Status: "firing"}}
	tickets := []signal.Ticket{{Time: at(1), ID: "a"}, {Time: at(1), ID: "b"}, {Time: at(2), ID: "0"}}
	odd, even := Rows{}, Rows{}
	for i := len(cells) - 1; i >= 0; i-- {
		if i%2 == 1 {
			odd.Cells = append(odd.Cells, cells[i])
		} else {
			even.Cells = append(even.Cells, cells[i])
		}
	}
	even.Gauges, even.Changes, even.Alerts, even.Tickets = slices.Clone(gauges), slices.Clone(changes), slices.Clone(alerts), slices.Clone(tickets)
	slices.Reverse(even.Gauges)
	slices.Reverse(even.Changes)
	slices.Reverse(even.Alerts)
	slices.Reverse(even.Tickets)
	s.Feed(t, odd)
	s.Feed(t, even)
	in := d.step(detect.Outputs{})
	same(t, "rows in order", Rows{cells, gauges, tickets, changes, alerts}, Rows{in.Cells, in.Gauges, in.Tickets, in.Changes, in.Alerts})
}

func ticketFirstSight(t *testing.T, s Subject) {
	d := lead(t, s)
	s.Feed(t, Rows{Tickets: []signal.Ticket{{Time: at(5), ID: "1", Status: "open"}, {Time: at(1), ID: "1", Status: "new"}, {Time: at(2), ID: "2", Status: "new"}}})
	same(t, "tickets", []signal.Ticket{{Time: at(1), ID: "1", Status: "new"}, {Time: at(2), ID: "2", Status: "new"}}, d.step(detect.Outputs{}).Tickets)
	s.Feed(t, Rows{Tickets: []signal.Ticket{{Time: at(0), ID: "1", Status: "earlier, but later seen"}, {Time: at(20), ID: "3", Status: "new"}}})
	same(t, "tickets of the next tick", []signal.Ticket{{Time: at(20), ID: "3", Status: "new"}}, d.step(detect.Outputs{}).Tickets)
}

func changeFirstSight(t *testing.T, s Subject) {
	d := lead(t, s)
	change := func(seconds int, phase signal.Phase, title string) signal.Change {
		return signal.Change{Time: at(seconds), ID: "d1", Kind: signal.Deploy, Phase: phase, Title: title}
	}
	s.Feed(t, Rows{Changes: []signal.Change{change(3, signal.Started, "again"), change(2, signal.Started, "first")}})
	same(t, "changes", []signal.Change{change(2, signal.Started, "first")}, d.step(detect.Outputs{}).Changes)
	s.Feed(t, Rows{Changes: []signal.Change{change(4, signal.Started, "again"), change(9, signal.Finished, "end")}})
	same(t, "changes of the next tick", []signal.Change{change(9, signal.Finished, "end")}, d.step(detect.Outputs{}).Changes)
}

func repeatedClaim(t *testing.T, s Subject) {
	d := lead(t, s)
	k := key("a", "x", signal.Write)
	s.Feed(t, Rows{Cells: []signal.Cell{cell(0, k, 1, 0)}, Tickets: []signal.Ticket{{Time: at(1), ID: "1"}}})
	first := d.claim(d.tick())
	s.Feed(t, Rows{Cells: []signal.Cell{cell(0, k, 10, 0)}, Tickets: []signal.Ticket{{Time: at(2), ID: "2"}}})
	asked := d.tick()
	asked.To = at(600)
	same(t, "inputs of a repeated claim", first, d.claim(asked))
	d.commit(first.Tick, detect.Outputs{})
	same(t, "cells of the next tick", []signal.Cell{cell(0, k, 10, 0)}, d.step(detect.Outputs{}).Cells)
}

func repeatedCommit(t *testing.T, s Subject) {
	d := lead(t, s)
	o := detect.Outputs{
		Events:      []incident.Event{event("z", 1, at(3)), event("a", 1, at(4)), event("m", 1, at(2))},
		Transitions: []incident.Transition{{At: at(1), Finding: incident.Finding{Rule: "r", State: incident.Firing}}},
		Warnings:    []incident.Warning{{At: at(1), Resource: "r"}},
		Checkpoint:  []byte("state"),
	}
	in := d.claim(d.tick())
	same(t, "events of a tick that is not done", []string{}, ids(s.Events(t, 0)))
	for range 3 {
		d.commit(in.Tick, o)
	}
	d.step(detect.Outputs{Events: []incident.Event{event("b", 1, at(12))}})
	same(t, "log", []string{"z", "a", "m", "b"}, ids(s.Events(t, 0)))
	same(t, "log after the first tick", []string{"b"}, ids(s.Events(t, 1)))
	got := s.Events(t, 0)[0]
	want := o.Events[0]
	want.Tick = got.Tick
	same(t, "event", want, got)
}

func leads(t *testing.T, s Subject) {
	const many = 4
	epochs := make([]uint64, many)
	errs := make([]error, many)
	lines := make([]detect.Timeline, many)
	for i := range lines {
		lines[i] = s.Timeline()
	}
	var group sync.WaitGroup
	for i := range lines {
		group.Go(func() { epochs[i], errs[i] = lines[i].Lead(context.Background(), "test") })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	slices.Sort(epochs)
	if len(slices.Compact(slices.Clone(epochs))) != many {
		t.Errorf("epochs %v, want each once", epochs)
	}
	if next := lead(t, s).epoch; next <= epochs[many-1] {
		t.Errorf("the next epoch is %d after %v", next, epochs)
	}
}

func superseded(t *testing.T, s Subject) {
	old := lead(t, s)
	s.Feed(t, Rows{Cells: []signal.Cell{cell(0, key("a", "x", signal.Write), 1, 0)}})
	in := old.claim(old.tick())
	young := lead(t, s)
	err := old.line.Commit(t.Context(), in.Tick, detect.Outputs{Events: []incident.Event{event("old", 1, at(1))}})
	if !errors.Is(err, detect.ErrSuperseded) {
		t.Errorf("commit of a superseded detector: %v, want ErrSuperseded", err)
	}
	same(t, "log", []string{}, ids(s.Events(t, 0)))
	young.resume()
	young.commit(in.Tick, detect.Outputs{Events: []incident.Event{event("young", 1, at(1))}})
	old.next = 2
	if _, err := old.line.Claim(t.Context(), old.tick()); !errors.Is(err, detect.ErrSuperseded) {
		t.Errorf("claim of a superseded detector: %v, want ErrSuperseded", err)
	}
	young.step(detect.Outputs{})
	same(t, "log", []string{"young"}, ids(s.Events(t, 0)))
}

func takeOver(t *testing.T, s Subject) {
	old := lead(t, s)
	k := key("a", "x", signal.Write)
	s.Feed(t, Rows{Cells: []signal.Cell{cell(0, k, 1, 0)}})
	first := old.step(detect.Outputs{})
	s.Feed(t, Rows{Cells: []signal.Cell{cell(10, k, 2, 0)}})
	second := old.claim(old.tick())

	young := lead(t, s)
	r := young.resume()
	if !r.Unfinished || r.Checkpoint != nil {
		t.Errorf("resume with unfinished %v and checkpoint %q, want an unfinished tick and no checkpoint", r.Unfinished, r.Checkpoint)
	}
	same(t, "ticks to resume", []detect.Inputs{first, second}, r.Ticks)
	s.Feed(t, Rows{Cells: []signal.Cell{cell(20, k, 3, 0)}})
	young.commit(r.Ticks[1].Tick, detect.Outputs{Events: []incident.Event{event("i", 1, at(11))}})
	same(t, "cells of the next tick", []signal.Cell{cell(20, k, 3, 0)}, young.step(detect.Outputs{}).Cells)
	same(t, "log", []string{"i"}, ids(s.Events(t, 0)))
	if again := lead(t, s).resume(); again.Unfinished || len(again.Ticks) != 3 {
		t.Errorf("resume gives %d ticks, unfinished %v; want 3, done", len(again.Ticks), again.Unfinished)
	}
}

func foreignTick(t *testing.T, s Subject) {
	old, young := lead(t, s), (*desk)(nil)
	k := key("a", "x", signal.Write)
	s.Feed(t, Rows{Cells: []signal.Cell{cell(0, k, 1, 0)}})
	claimed := old.claim(old.tick())
	young = lead(t, s)
	s.Feed(t, Rows{Cells: []signal.Cell{cell(0, k, 10, 0)}})
	got := young.claim(young.tick())
	same(t, "inputs of the tick that was there", claimed, got)
	if got.Tick.Epoch != old.epoch {
		t.Errorf("the tick has epoch %d, want %d of whoever claimed it", got.Tick.Epoch, old.epoch)
	}
	young.commit(got.Tick, detect.Outputs{})
	same(t, "cells of the next tick", []signal.Cell{cell(0, k, 10, 0)}, young.step(detect.Outputs{}).Cells)
}

func checkpoint(t *testing.T, s Subject) {
	d := lead(t, s)
	k := key("a", "x", signal.Write)
	for n := range 5 {
		s.Feed(t, Rows{Cells: []signal.Cell{cell(10*n, k, uint64(n)+1, 0)}})
		o := detect.Outputs{}
		if n == 0 || n == 2 {
			o.Checkpoint = []byte{byte(n), 0, 255, '\''}
		}
		d.step(o)
	}
	d = lead(t, s)
	r := d.resume()
	if r.CheckpointTick != 3 || r.Unfinished || len(r.Ticks) != 2 {
		t.Fatalf("resume from tick %d with %d ticks, unfinished %v; want from 3 with 2, done", r.CheckpointTick, len(r.Ticks), r.Unfinished)
	}
	same(t, "checkpoint", []byte{2, 0, 255, '\''}, r.Checkpoint)
	same(t, "cells after the checkpoint", []signal.Cell{cell(30, k, 4, 0)}, r.Ticks[0].Cells)
	same(t, "cells of the last tick", []signal.Cell{cell(40, k, 5, 0)}, r.Ticks[1].Cells)
	// Who leaves stores a checkpoint for the last tick, which is done already.
	last := r.Ticks[1].Tick
	d.commit(last, detect.Outputs{Checkpoint: []byte("left")})
	r = d.resume()
	if r.CheckpointTick != last.Number || r.Unfinished || len(r.Ticks) != 0 {
		t.Errorf("resume from tick %d with %d ticks, unfinished %v; want from %d with none", r.CheckpointTick, len(r.Ticks), r.Unfinished, last.Number)
	}
	same(t, "the last checkpoint", []byte("left"), r.Checkpoint)
}
