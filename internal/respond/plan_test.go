package respond

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/respond/route"
	"github.com/tocsin-project/tocsin/internal/signal"
)

func testConfig(t testing.TB) *route.Config {
	t.Helper()
	cfg, err := route.Load("routes.yaml", []byte(defaultRoutes), testKinds)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// keep#6300, #3159: with 10,000 open incidents a plan of everything stays far below half a second.
func TestPlanWithTenThousandIncidents(t *testing.T) {
	cfg := testConfig(t)
	p := NewPlanner(cfg, testPlaces(cfg), Settings{})
	now := testStart
	for k := range 10_000 {
		i := incident.Incident{ID: fmt.Sprintf("i%05d", k), State: incident.Declared, DeclaredAt: now, Page: k%10 == 0, Services: []string{"s"}}
		p.Observe(incident.Event{Incident: i.ID, Sequence: 1, At: now, Clock: now, Type: incident.EventDeclared, After: i}, true)
	}
	p.SetHead(Head{To: now, Clock: now})
	p.Plan(now)
	var took []time.Duration
	for range 20 {
		now = now.Add(time.Second)
		begun := time.Now()
		p.Plan(now)
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	if usual := took[len(took)/2]; usual > 500*time.Millisecond { // the slowest one tells how busy the machine is
		t.Errorf("a plan took %s", usual)
	}
	pages := 0
	for _, r := range p.byPlace["pager"] {
		if r.Joined == "" {
			pages++
		}
	}
	if pages != 4 { // three and the summary
		t.Errorf("%d pages for a thousand incidents", pages)
	}
	for _, v := range p.Dirty() {
		if len(v) > 64<<10 {
			t.Fatalf("a record of %d bytes", len(v))
		}
	}
}

// A record stays far below what a Kafka record may hold, whatever the incident.
func TestRecordsAreBounded(t *testing.T) {
	long := strings.Repeat("ü", 100_000)
	i := incident.Incident{ID: "i", Title: long, Reason: long, Accounts: signal.Sketch{}}
	for range 2000 {
		i.Paths = append(i.Paths, incident.PathImpact{Path: signal.Path{Service: long, Operation: long}})
		i.Suspects = append(i.Suspects, incident.Suspect{Title: long, Reasons: []string{long, long}})
		i.Warnings = append(i.Warnings, incident.Warning{Suspects: []incident.Suspect{{ID: long}, {ID: long}}})
		i.Findings = append(i.Findings, incident.Attached{Why: long})
	}
	raw, err := json.Marshal(NewNotice(incident.Event{After: i}))
	if err != nil || len(raw) > 256<<10 {
		t.Errorf("a notice of %d bytes, %v", len(raw), err)
	}
	r := Record{}
	for k := range uint64(1000) {
		r.addNote(Note{Sequence: k + 1, Text: "x"})
		r.addNote(Note{Sequence: k + 1, Text: "again"})
	}
	if len(r.Notes) != maxNotes || r.Dropped != 1000-maxNotes || r.Notes[maxNotes-1].Sequence != 1000 {
		t.Errorf("%d notes, %d dropped", len(r.Notes), r.Dropped)
	}
}

// What is over is forgotten after the retention, in memory and in the store, and not before.
func TestForgets(t *testing.T) {
	cfg := testConfig(t)
	p := NewPlanner(cfg, testPlaces(cfg), Settings{})
	now := testStart
	turn := func(state incident.State, seq uint64) map[string][]byte {
		i := incident.Incident{ID: "a", State: state, DeclaredAt: now, Page: true}
		p.Observe(incident.Event{Incident: "a", Sequence: seq, At: now, Clock: now, Type: incident.EventDeclared, After: i}, true)
		p.SetHead(Head{To: now, Clock: now})
		p.Plan(now)
		for _, place := range []string{"pager", "chat"} {
			for s, ok, _ := p.Take(place, now); ok; s, ok, _ = p.Take(place, now) {
				p.Done(s, Receipt{}, nil, now)
			}
		}
		return p.Dirty()
	}
	turn(incident.Declared, 1)
	turn(incident.Resolved, 2)
	now = now.Add(47 * time.Hour)
	if turn(incident.Resolved, 2); len(p.records) != 2 {
		t.Fatalf("%d records", len(p.records))
	}
	now = now.Add(2 * time.Hour)
	if gone := turn(incident.Resolved, 2); len(p.records)+len(p.incidents) > 0 || len(gone) != 2 || gone["a/pager"] != nil {
		t.Errorf("%d records, %d incidents, %v", len(p.records), len(p.incidents), gone)
	}
}

// A close that has not arrived is tried for two weeks, and then given up aloud: it is not forgotten with what is over.
func TestAnUndeliveredCloseIsNotForgotten(t *testing.T) {
	cfg := testConfig(t)
	p := NewPlanner(cfg, testPlaces(cfg), Settings{})
	now, down := testStart, false
	turn := func(state incident.State, seq uint64) {
		i := incident.Incident{ID: "a", State: state, DeclaredAt: now, Page: true}
		p.Observe(incident.Event{Incident: "a", Sequence: seq, At: now, Clock: now, Type: incident.EventDeclared, After: i}, true)
		p.SetHead(Head{To: now, Clock: now})
		p.Plan(now)
		for _, place := range []string{"pager", "chat"} {
			for s, ok, _ := p.Take(place, now); ok; s, ok, _ = p.Take(place, now) {
				var err *SendError
				if down && place == "pager" {
					err = &SendError{Class: Retry, Reason: ReasonNetwork, Err: errors.New("down")}
				}
				p.Done(s, Receipt{}, err, now)
			}
		}
	}
	turn(incident.Declared, 1)
	down = true
	turn(incident.Resolved, 2)
	for range 13 {
		now = now.Add(24 * time.Hour)
		turn(incident.Resolved, 2)
	}
	if r := p.records["a/pager"]; r == nil || !r.owesClose() || p.records["a/chat"] != nil || len(p.abandoned) > 0 {
		t.Fatalf("after 13 days: %+v, %d abandoned", r, len(p.abandoned))
	}
	for range 2 {
		now = now.Add(24 * time.Hour)
		turn(incident.Resolved, 2)
	}
	if len(p.records) > 0 || len(p.abandoned) != 1 || p.abandoned[0].Place != "pager" {
		t.Errorf("after 15 days: %d records, abandoned %+v", len(p.records), p.abandoned)
	}
	// The provider is back in time.
	p, now, down = NewPlanner(cfg, testPlaces(cfg), Settings{}), testStart, false
	turn(incident.Declared, 1)
	down = true
	turn(incident.Resolved, 2)
	now, down = now.Add(72*time.Hour), false
	turn(incident.Resolved, 2)
	if len(p.records) > 0 && p.records["a/pager"].Got.Status != Closed || len(p.abandoned) > 0 {
		t.Errorf("%+v", p.records["a/pager"])
	}
}

// A record that cannot be read is named, and does not keep the others from being used.
func TestRestoreOfBadRecords(t *testing.T) {
	cfg := testConfig(t)
	p := NewPlanner(cfg, testPlaces(cfg), Settings{})
	bad := p.Restore(map[string][]byte{
		cursorKey: []byte(`{"tick":7}`), "x/pager": []byte("{"), "y/pager": []byte(`{"incident":"z","place":"pager"}`),
		"ok/pager": []byte(`{"incident":"ok","place":"pager","want":{"status":"open"},"got":{"status":"open"},"future":true}`),
	}, testStart)
	if !slices.Equal(bad, []string{"x/pager", "y/pager"}) || p.records["ok/pager"] == nil {
		t.Errorf("bad %v, records %v", bad, p.records)
	}
}

func TestNewer(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{`{"revision":2}`, `{"revision":1}`, true}, {`{"revision":1}`, `{"revision":1}`, false}, {`{"revision":1}`, `broken`, true}, {`broken`, `{}`, false}} {
		if got := Newer([]byte(c.a), []byte(c.b)); got != c.want {
			t.Errorf("Newer(%s, %s) is %v", c.a, c.b, got)
		}
	}
}

func TestTexts(t *testing.T) {
	for got, want := range map[string]string{
		Percent(.96): "96%", Percent(.088): "8.8%", Percent(.0003): "0.03%", Percent(0): "0%", Percent(1): "100%", Percent(.04): "4%", Percent(.9999): "100%",
		Number(1234567): "1,234,567", Number(12): "12", Number(123): "123",
		Minutes(14 * time.Minute): "14 min", Minutes(125 * time.Minute): "2 h 5 min", Minutes(2 * time.Hour): "2 h", Minutes(time.Second): "1 min",
		Cut("üüüü", 3): "üü…", Cut("ab", 3): "ab",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	w := incident.Warning{Resource: "db", Metric: "connections", Value: 10, Limit: 10, ExhaustedAt: testStart}
	if got := WarningText(w, testStart.Add(-time.Minute)); got != "db connections near its limit (10 of 10)" {
		t.Error(got)
	}
}

// Notes of unknown outcome are sent again as the same batch, whatever was added or had to be sent first meanwhile.
func TestNotesOfUnknownOutcome(t *testing.T) {
	cfg := testConfig(t)
	p := NewPlanner(cfg, testPlaces(cfg), Settings{})
	now, seq := testStart, uint64(0)
	turn := func(state incident.State, typ incident.EventType) {
		seq++
		now = now.Add(time.Minute)
		i := incident.Incident{ID: "a", State: state, DeclaredAt: now}
		p.Observe(incident.Event{Incident: "a", Sequence: seq, At: now, Clock: now, Type: typ, After: i}, true)
		p.SetHead(Head{To: now, Clock: now})
		p.Plan(now)
	}
	take := func(want Action) Step {
		t.Helper()
		s, ok, _ := p.Take("chat", now)
		if !ok || s.Delivery.Action != want {
			t.Fatalf("took %v %s, want %s", ok, s.Delivery.Action, want)
		}
		return s
	}
	turn(incident.Declared, incident.EventDeclared)
	p.Done(take(ActionOpen), Receipt{}, nil, now)
	turn(incident.Declared, incident.EventSuspects)
	p.Done(take(ActionUpdate), Receipt{}, nil, now)
	lost := take(ActionNote)
	p.Done(lost, Receipt{}, &SendError{Class: Retry, Reason: ReasonTimeout, Unknown: true, Err: errTest}, now)
	turn(incident.Resolved, incident.EventResolved)
	p.Done(take(ActionClose), Receipt{}, nil, now) // says more than a note, so it goes first
	again := take(ActionNote)
	if d := again.Delivery; !d.Uncertain || len(d.Notes) != 1 || d.Notes[0].Sequence != 2 || d.Since != lost.Delivery.Since {
		t.Errorf("got %+v", d)
	}
	p.Done(again, Receipt{}, nil, now)
	if d := take(ActionNote).Delivery; d.Uncertain || len(d.Notes) != 1 || d.Notes[0].Sequence != 3 {
		t.Errorf("got %+v", d)
	}
}

var errTest = errors.New("a test's error")

// halfLog gives a first page and then fails: the story's end is missing.
type halfLog struct {
	*MemoryLog
	mu     sync.Mutex
	broken bool
	failed int
}

func (h *halfLog) After(ctx context.Context, c Cursor, limit int) ([]incident.Event, Cursor, Head, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.broken && c.Tick > 0 {
		h.failed++
		return nil, c, Head{}, errTest
	}
	return h.MemoryLog.After(ctx, c, limit)
}

type store struct{}

func (store) Load(context.Context) (map[string][]byte, error) { return nil, nil }
func (store) Put(context.Context, string, []byte) error       { return nil }
func (store) Close() error                                    { return nil }
func (store) Key(string) string                               { return "" }
func (store) Send(context.Context, Delivery) (Receipt, error) { return Receipt{}, nil }

// Half a story pages nobody: what the unread rest of the log closes was never worth a page.
func TestHalfALogPagesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig(t)
		places := testPlaces(cfg)
		for i := range places {
			places[i].Sender = store{}
		}
		log := &halfLog{MemoryLog: &MemoryLog{}, broken: true}
		i := incident.Incident{ID: "a", State: incident.Declared, Page: true, DeclaredAt: time.Now()}
		now := time.Now()
		for k := range uint64(readLimit + 10) {
			e := incident.Event{Incident: "a", Sequence: k + 1, At: now, Clock: now, Tick: k + 1, Type: incident.EventImpact, After: i}
			if k == readLimit+5 {
				e.After.State = incident.Resolved
				i.State = incident.Resolved
			}
			log.Append(e)
		}
		log.MemoryLog.events = slices.Clone(log.MemoryLog.events)
		l, err := New(Options{Log: &onlyAfter{log}, Routes: cfg, Places: places, Store: store{}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { _ = l.Run(ctx); close(done) }()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if got := l.Records(""); len(got) > 0 || log.failed == 0 {
			t.Errorf("%d failed reads, records %+v", log.failed, got)
		}
		log.mu.Lock()
		log.broken = false
		log.mu.Unlock()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if got := l.Records("a"); len(got) != 1 || got[0].Incident != "missed-a" || got[0].Kind != "chat" {
			t.Errorf("records %+v", got)
		}
		cancel()
		<-done
	})
}

// onlyAfter has no picture, as on a first start.
type onlyAfter struct{ *halfLog }

func (onlyAfter) Open(context.Context, time.Time) ([]incident.Event, error) { return nil, nil }
