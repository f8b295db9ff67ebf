// Package timelinetest is the contract of detect.Timeline as tests: every implementation runs the same ones, so that a
// backtest in memory and the live detector on ClickHouse see the same. It is for tests only.
package timelinetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Rows are what the ingest loop stored in one go.
type Rows struct {
	Cells   []signal.Cell
	Gauges  []signal.Gauge
	Tickets []signal.Ticket
	Changes []signal.Change
	Alerts  []signal.Alert
}

// Subject is an empty past and the ways into it.
type Subject struct {
	// Timeline makes the view of one detector; each call is another detector on the same past.
	Timeline func() detect.Timeline
	// Feed stores rows.
	Feed func(t *testing.T, r Rows)
	// Progress says for every stream that nothing older than watermark is expected, at the given ingest clock.
	Progress func(t *testing.T, watermark, clock time.Time)
	// Events reads the incident log of whole ticks after the given one.
	Events func(t *testing.T, after uint64) []incident.Event
}

// Run holds an implementation to the contract. fresh is called once for each test.
func Run(t *testing.T, fresh func(t *testing.T) Subject) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Subject)
	}{
		{"an empty past has nothing to resume", emptyPast},
		{"progress only advances", progressAdvances},
		{"the tick's record comes back whole", recordComesBack},
		{"rows of every stream come back whole", rowsComeBack},
		{"a row belongs to one tick", oneTickARow},
		{"rows beyond the marks wait", rowsBeyondMarks},
		{"late rows belong to the tick that sees them", lateRows},
		{"cells of one key and bucket are summed", cellsSummed},
		{"inputs have a fixed order", fixedOrder},
		{"a ticket counts at its first sight", ticketFirstSight},
		{"a change counts once a phase", changeFirstSight},
		{"a repeated claim gives what was stored", repeatedClaim},
		{"a repeated commit doubles nothing", repeatedCommit},
		{"the lead is taken by one at a time", leads},
		{"whoever is superseded writes nothing", superseded},
		{"a new leader finishes the unfinished tick", takeOver},
		{"a claim finds the tick of a lower epoch", foreignTick},
		{"resume starts from the newest checkpoint", checkpoint},
		{"resume tells what the log says", logSays},
		{"what a revision names is kept", sourcesKept},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, fresh(t)) })
	}
}

var start = time.Date(2026, 9, 13, 7, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func key(service, operation string, access signal.Access, attributes ...signal.Attr) signal.Key {
	return signal.Key{Path: signal.Path{Service: service, Operation: operation, Access: access}, Attributes: signal.AttributesOf(attributes...)}
}

func cell(bucket int, k signal.Key, successes, failures uint64) signal.Cell {
	return signal.Cell{Bucket: at(bucket), Key: k, Outcomes: [signal.NumOutcomes]uint64{signal.Success: successes, signal.Failure: failures}}
}

// desk is one detector at work: it claims and commits ticks in order.
type desk struct {
	t     *testing.T
	line  detect.Timeline
	epoch uint64
	next  uint64
}

func lead(t *testing.T, s Subject) *desk {
	t.Helper()
	d := &desk{t: t, line: s.Timeline(), next: 1}
	var err error
	if d.epoch, err = d.line.Lead(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) progress() detect.Progress {
	d.t.Helper()
	p, err := d.line.Progress(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	return p
}

// tick is the next tick with all that is there.
func (d *desk) tick() detect.Tick {
	d.t.Helper()
	p := d.progress()
	n := int(d.next)
	return detect.Tick{Number: d.next, Epoch: d.epoch, From: at(10*n - 10), To: at(10 * n), Marks: p.Marks, Clock: p.Clock}
}

func (d *desk) claim(tick detect.Tick) detect.Inputs {
	d.t.Helper()
	in, err := d.line.Claim(d.t.Context(), tick)
	if err != nil {
		d.t.Fatal(err)
	}
	return in
}

func (d *desk) commit(tick detect.Tick, o detect.Outputs) {
	d.t.Helper()
	if err := d.line.Commit(d.t.Context(), tick, o); err != nil {
		d.t.Fatal(err)
	}
	d.next = tick.Number + 1
}

// step claims and commits a tick with all that is there.
func (d *desk) step(o detect.Outputs) detect.Inputs {
	d.t.Helper()
	in := d.claim(d.tick())
	d.commit(in.Tick, o)
	return in
}

func (d *desk) resume() detect.Resume {
	d.t.Helper()
	r, err := d.line.Resume(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	return r
}

func event(id string, sequence uint64, at time.Time) incident.Event {
	return incident.Event{Incident: id, Sequence: sequence, At: at, Type: incident.EventDeclared, Reason: "because",
		After: incident.Incident{ID: id, Sequence: sequence, Title: "it", State: incident.Declared, Services: []string{"a"}}}
}

func ids(events []incident.Event) (out []string) {
	for _, e := range events {
		out = append(out, e.Incident)
	}
	return out
}

// same compares what was given with what came back; no list and an empty one are the same.
func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s differ (-want +got):\n%s", what, d)
	}
}
