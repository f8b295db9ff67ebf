package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// fake is an incident log in memory, a detector's status and a place for commands.
type fake struct {
	mu       sync.Mutex
	logs     map[string][]incident.Event
	err      error
	status   Status
	commands []incident.Command
	refuse   error
	series   []Series
	reads    int
}

var _ Reader = (*fake)(nil)
var _ Commander = (*fake)(nil)

func (f *fake) Incidents(_ context.Context, openOnly bool, limit int) (out []incident.Incident, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	for _, log := range f.logs {
		if in := log[len(log)-1].After; in.State.Open() || !openOnly {
			out = append(out, in)
		}
	}
	slices.SortFunc(out, func(a, b incident.Incident) int { return b.StartedAt.Compare(a.StartedAt) })
	return out[:min(limit, len(out))], f.err
}

func (f *fake) Events(_ context.Context, id string) ([]incident.Event, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	if f.err != nil {
		return nil, f.err
	}
	if len(f.logs[id]) == 0 {
		return nil, ErrNotFound
	}
	return f.logs[id], nil
}

func (f *fake) Command(_ context.Context, c incident.Command) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuse == nil {
		f.commands = append(f.commands, c)
	}
	return f.refuse
}

func (f *fake) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

// put appends an event to the log of an incident.
func (f *fake) put(typ incident.EventType, in incident.Incident) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status.Tick++
	if f.logs == nil {
		f.logs = map[string][]incident.Event{}
	}
	in.Sequence = uint64(len(f.logs[in.ID]) + 1)
	f.logs[in.ID] = append(f.logs[in.ID], incident.Event{
		Incident: in.ID, Sequence: in.Sequence, At: in.StartedAt.Add(time.Duration(in.Sequence) * time.Minute), Type: typ, Reason: in.Reason, After: in,
	})
}

func (f *fake) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	f.status.Tick++
}

var errDown = errors.New("connection refused")

var began = time.Date(2026, 9, 13, 8, 43, 0, 0, time.UTC)

func newFake() *fake {
	return &fake{status: Status{Version: "1.2.3", Tick: 17, To: began.Add(20 * time.Minute), Clock: began.Add(20*time.Minute + 12*time.Second), Lag: 12 * time.Second, Leading: true,
		Partitions: []Partition{{Stream: "requests", Topic: "otlp_spans", Lag: 40, Watermark: began.Add(20 * time.Minute)}}}}
}

// serve starts a console over the fake.
func serve(t testing.TB, f *fake, change ...func(*Options)) (*Console, *httptest.Server) {
	t.Helper()
	o := Options{
		Reader: f, Status: f.Status, Commander: f, Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return began.Add(time.Hour) },
		Deliveries: func(id string) (out []Delivery) {
			for _, d := range []Delivery{
				{Incident: "inc-1", Receiver: "oncall", Action: "trigger", Outcome: "delivered", At: began.Add(90 * time.Second)},
				{Incident: "inc-1", Receiver: "slack", Action: "post", Outcome: "failed", Detail: "rate limited, again in 7 s", At: began.Add(91 * time.Second)},
			} {
				if id == "" || id == d.Incident {
					out = append(out, d)
				}
			}
			return out
		},
	}
	for _, c := range change {
		c(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	c.Register(mux)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return c, s
}

// outage is the incident that most tests show.
func outage() incident.Incident {
	services := []string{"actions", "api-gateway", "issues", "sign-up", "token-service"}
	in := incident.Incident{
		ID: "inc-1", Title: "mysql/permissions/primary exhausted; 5 services fail", State: incident.Declared, Severity: incident.Critical, Page: true,
		Areas: []string{"collaboration", "identity"}, Services: services, Resources: []string{"mysql/permissions/primary"},
		StartedAt: began, FirstFindingAt: began.Add(20 * time.Second), DeclaredAt: began.Add(80 * time.Second),
		Reason: "5 services that depend on mysql/permissions/primary fail more than usual (3.1 points, 1 declares)",
		Impact: incident.Impact{Kind: incident.ImpactFailures, Requests: 1_284_310, Failures: 91_877, PeakShare: 0.962, PeakAt: began.Add(9 * time.Minute), AccountsAtLeast: 2312},
		Scope:  []incident.ScopeSlice{{Share: 1}, {Attributes: signal.NewAttributes(map[string]string{"client": "web"}), Share: 0.71}},
		Suspects: []incident.Suspect{
			{Kind: incident.SuspectChange, ID: "job-4711", Title: "clean-up of orphaned grants", URL: "https://jobs.example.com/4711", Score: 0.81,
				Reasons: []string{"writes to mysql/permissions/primary, which ran out of connections first", "began 70 min before the failures, connections climbed from then on", "runs still"},
				Against: []string{"its safeguard reports replica lag below 1 s"}},
			{Kind: incident.SuspectResource, ID: "mysql/permissions/primary", Score: 0.64, Reasons: []string{"5 of 5 failing services depend on it", "connections reached their limit at 08:43"}},
			{Kind: incident.SuspectChange, ID: "deploy-2291", Title: "deploy of issues v381", Score: 0.07, Reasons: []string{"11 min before the failures"}, Against: []string{"4 services fail that it does not touch"}},
		},
		Warnings: []incident.Warning{{At: began.Add(-41 * time.Minute), Resource: "mysql/permissions/primary", Metric: "connections", Value: 3412, Limit: 5000, ExhaustedAt: began.Add(-2 * time.Minute)}},
		Tickets:  37,
	}
	for i, s := range services {
		in.Paths = append(in.Paths, incident.PathImpact{
			Path: signal.Path{Service: s, Operation: "create", Access: signal.Write}, Requests: 48_000, Failures: 4224 * uint64(i+1), PeakShare: []float64{0.04, 0.3, 0.962, 0.91, 0.088}[i],
			PeakAt: began.Add(9 * time.Minute), BaseShare: 0.0004,
		})
	}
	return in
}

// curves are failure shares as they were around the outage.
func curves(in incident.Incident) (all []Series) {
	for i, s := range in.Services {
		c := Series{Name: s}
		for m := -10; m <= 20; m++ {
			v := 0.0004 * float64(1+(m+i)*(m+i)%3)
			if m > 0 {
				v = in.Paths[i].PeakShare * (1 - 0.5/float64(m)) * (0.9 + 0.05*float64((m*7+i)%3))
			}
			c.Points = append(c.Points, Point{At: began.Add(time.Duration(m) * time.Minute), Share: v})
		}
		all = append(all, c)
	}
	return all
}
