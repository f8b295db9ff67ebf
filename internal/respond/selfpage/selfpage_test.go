package selfpage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type fake struct {
	mu   sync.Mutex
	fail error
	said []string
	at   []time.Time
}

func (f *fake) Key(id string) string { return "tocsin/" + id }

func (f *fake) Send(_ context.Context, d respond.Delivery) (respond.Receipt, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return respond.Receipt{}, f.fail
	}
	f.said, f.at = append(f.said, string(d.Action)+" "+d.Key), append(f.at, time.Now())
	return respond.Receipt{Key: d.Key}, nil
}

func (f *fake) list() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.said...)
}

func start(t *testing.T, sender respond.Sender) (*Pager, func()) {
	t.Helper()
	p := New(Options{Places: []respond.Place{{ID: "pager", Pages: true, Sender: sender}}, Name: "tocsin-0"})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { _ = p.Run(ctx); close(done) }()
	return p, func() { cancel(); <-done }
}

// VictoriaMetrics#9925: the database is down and all rules are silently dead. Here: paged within a minute, once, and closed.
func TestPagesItselfBlindWithinAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		p, stop := start(t, f)
		defer stop()
		r := p.From("detect")
		begun := time.Now()
		for range 120 { // two minutes of failing reads, twice a second
			r.Report(ClickHouseUnreachable, false, "dial tcp 127.0.0.1:8123: connection refused")
			time.Sleep(500 * time.Millisecond)
		}
		if len(f.list()) != 1 || f.at[0].Sub(begun) > time.Minute {
			t.Fatalf("said %v at %v", f.list(), f.at)
		}
		r.Report(ClickHouseUnreachable, true, "")
		time.Sleep(3 * time.Minute)
		want := []string{"open tocsin/self/clickhouse_unreachable", "close tocsin/self/clickhouse_unreachable"}
		if diff := cmp.Diff(want, f.list()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestShortTroubleWakesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		p, stop := start(t, f)
		defer stop()
		for range 10 {
			p.From("ingest").Report(KafkaUnreachable, false, "a rebalance")
			time.Sleep(20 * time.Second)
			p.From("ingest").Report(KafkaUnreachable, true, "")
			time.Sleep(5 * time.Second)
		}
		if got := f.list(); len(got) != 0 {
			t.Errorf("said %v", got)
		}
	})
}

// One part that finds ClickHouse well must not hide another that cannot reach it.
func TestPartsDoNotMaskEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		p, stop := start(t, f)
		defer stop()
		for range 50 {
			p.From("ingest").Report(ClickHouseUnreachable, true, "")
			p.From("detect").Report(ClickHouseUnreachable, false, "code 516")
			time.Sleep(time.Second)
		}
		if got := f.list(); len(got) != 1 {
			t.Errorf("said %v", got)
		}
		if ok, bad := p.Healthy(); ok || bad[0] != ClickHouseUnreachable {
			t.Errorf("healthy %v %v", ok, bad)
		}
	})
}

func TestSilenceOfAWatchedLoopPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		p, stop := start(t, f)
		defer stop()
		r := p.From("detect")
		r.Watch(DetectorStalled, 20*time.Second)
		for range 10 {
			time.Sleep(10 * time.Second)
			r.Report(DetectorStalled, true, "")
		}
		if got := f.list(); strings.Contains(fmt.Sprint(got), "open") {
			t.Fatalf("said %v although it reports", got)
		}
		time.Sleep(time.Minute) // it hangs
		if got := f.list(); got[len(got)-1] != "open tocsin/self/detector_stalled" {
			t.Errorf("said %v", got)
		}
	})
}

// Who loses the lead in the middle of trouble is no longer the one to ask, nor missed when he is silent.
func TestWhoRestsHasNoTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		p, stop := start(t, f)
		defer stop()
		r := p.From("lead")
		r.Watch(RespondStalled, 20*time.Second)
		r.Report(ClickHouseUnreachable, false, "code 516")
		time.Sleep(40 * time.Second)
		r.Rest(ClickHouseUnreachable)
		r.Rest(RespondStalled)
		r.Rest(Lag) // of which it never spoke
		time.Sleep(2 * time.Minute)
		if got := f.list(); len(got) != 3 || !slices.Contains(got, "close tocsin/self/clickhouse_unreachable") || slices.Contains(got, "open tocsin/self/respond_stalled") {
			t.Errorf("said %v", got)
		}
		if ok, bad := p.Healthy(); !ok {
			t.Errorf("still unhealthy: %v", bad)
		}
	})
}

// A page that an earlier process opened is closed by the next one; an open page is repeated in case a replica closed it.
func TestClosesWhatAnEarlierProcessOpenedAndRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		p, stop := start(t, f)
		defer stop()
		p.From("x").Report(Lag, true, "")
		time.Sleep(2 * time.Minute)
		if diff := cmp.Diff([]string{"close tocsin/self/lag"}, f.list()); diff != "" {
			t.Error(diff)
		}
		p.From("x").Report(Lag, false, "an hour")
		time.Sleep(6 * time.Minute)
		if diff := cmp.Diff([]string{"close tocsin/self/lag", "open tocsin/self/lag", "open tocsin/self/lag"}, f.list()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRetriesUntilTheProviderAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{fail: errors.New("down")}
		p, stop := start(t, f)
		defer stop()
		p.From("x").Report(DiskFull, false, "99%")
		time.Sleep(3 * time.Minute)
		f.mu.Lock()
		f.fail = nil
		f.mu.Unlock()
		time.Sleep(40 * time.Second)
		if got := f.list(); len(got) != 1 {
			t.Errorf("said %v", got)
		}
	})
}

func TestUnknownCausePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a cause outside the set was taken")
		}
	}()
	New(Options{}).From("x").Report("mood", false, "")
}

// IncidentRelay#10, prometheus-operator#883: the heartbeat goes out while healthy, stops while not, and hides its URL.
func TestHeartbeat(t *testing.T) {
	var beats, code atomic.Int64
	code.Store(200)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { beats.Add(1); w.WriteHeader(int(code.Load())) }))
	defer srv.Close()
	var healthy atomic.Bool
	healthy.Store(true)
	var logs strings.Builder
	var logMu sync.Mutex
	log := slog.New(slog.NewTextHandler(writer(func(b []byte) { logMu.Lock(); logs.Write(b); logMu.Unlock() }), nil))
	h, err := NewHeartbeat(HeartbeatConfig{URL: strictyaml.Secret(srv.URL + "/ping/s3cret-token"), Interval: strictyaml.Duration(5 * time.Millisecond)},
		"", func() (bool, []Cause) { return healthy.Load(), nil }, srv.Client(), log, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { _ = h.Run(ctx); close(done) }()
	wait(t, func() bool { return beats.Load() > 3 })
	healthy.Store(false)
	wait(t, func() bool { before := beats.Load(); time.Sleep(20 * time.Millisecond); return beats.Load() == before })
	healthy.Store(true)
	code.Store(404)
	wait(t, func() bool {
		logMu.Lock()
		defer logMu.Unlock()
		return strings.Contains(logs.String(), "send heartbeat")
	})
	cancel()
	<-done
	if strings.Contains(logs.String(), "s3cret") {
		t.Errorf("the log shows the URL: %s", logs.String())
	}
	srv.Close()
	if err := h.beat(t.Context()); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the error shows the URL: %v", err)
	}
	if none, err := NewHeartbeat(HeartbeatConfig{}, "", nil, nil, nil, nil); none != nil || err != nil || none.Run(t.Context()) != nil {
		t.Error("without a URL there must be no heartbeat and no error")
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

func wait(t *testing.T, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !cond(); {
		if time.Now().After(end) {
			t.Fatal("it did not happen")
		}
		time.Sleep(time.Millisecond)
	}
}
