package memory_test

import (
	"context"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/detect/memory"
	"github.com/tocsin-project/tocsin/internal/detect/timelinetest"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

func TestContract(t *testing.T) {
	timelinetest.Run(t, func(*testing.T) timelinetest.Subject {
		m := memory.New()
		return timelinetest.Subject{
			Timeline: func() detect.Timeline { return m.Again() },
			Feed: func(_ *testing.T, r timelinetest.Rows) {
				m.AddCells(r.Cells)
				m.AddGauges(r.Gauges)
				m.AddTickets(r.Tickets)
				m.AddChanges(r.Changes)
				m.AddAlerts(r.Alerts)
			},
			Progress: func(_ *testing.T, watermark, clock time.Time) { m.SetProgress(watermark, clock) },
			Events:   func(_ *testing.T, after uint64) []incident.Event { return m.EventsAfter(after) },
		}
	})
}

func TestEventsFeedWhatTheirCellsWould(t *testing.T) {
	at := time.Date(2026, 9, 13, 8, 43, 7, 0, time.UTC)
	m := memory.New()
	want := signal.Cell{Bucket: signal.BucketOf(at), Key: signal.Key{Path: signal.Path{Service: "a"}}}
	for i := range 3 {
		r := signal.Request{Time: at.Add(time.Duration(i) * time.Millisecond), Path: want.Key.Path, Outcome: signal.Failure, Account: "acme"}
		m.Add(&r)
		want.Count(&r)
	}
	m.Add(&signal.Ticket{Time: at, ID: "1"})
	m.SetProgress(at, at)
	p, err := m.Progress(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	in, err := m.Claim(context.Background(), detect.Tick{Number: 1, Marks: p.Marks})
	if err != nil {
		t.Fatal(err)
	}
	if len(in.Cells) != 1 || in.Cells[0].Outcomes != want.Outcomes || len(in.Cells[0].Accounts) != 1 || len(in.Tickets) != 1 {
		t.Errorf("inputs %+v, want one cell %+v and one ticket", in, want)
	}
}

func TestForgetfulKeepsNoInputs(t *testing.T) {
	m := memory.NewForgetful()
	for n := uint64(1); n <= 3; n++ {
		in, err := m.Claim(context.Background(), detect.Tick{Number: n})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Commit(context.Background(), in.Tick, detect.Outputs{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.Resume(context.Background()); err == nil {
		t.Error("a forgetful past resumes, although it kept nothing to resume from")
	}
}
