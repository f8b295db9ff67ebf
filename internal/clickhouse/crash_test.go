package clickhouse

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/chlocal/chlocaltest"
	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/detect/timelinetest"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// insist repeats f as a loop does: at once, for as long as the error is worth it.
func insist(ctx context.Context, f func() error) (tries int, err error) {
	for {
		tries++
		if err = f(); err == nil || !Retryable(err) || ctx.Err() != nil {
			return tries, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestKilledEngineLosesAndDoublesNothing(t *testing.T) {
	opts := chlocaltest.Options(t)
	opts.Restart = true
	server := chlocaltest.StartServer(t, opts)
	db := open(t, server.Addr(), "tocsin")
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	const writers, batches, cells, kills = 2, 30, 2000, 3
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var done, retries atomic.Int64
	var group sync.WaitGroup
	for w := range writers {
		store := NewStore(db)
		group.Go(func() {
			for n := range int64(batches) {
				b := requests(n*100, n*100+100, cells)
				b.Range.Partition = int32(w)
				tries, err := insist(ctx, func() error { return store.Insert(ctx, b) })
				if err != nil {
					t.Errorf("batch %d of writer %d: %v", n, w, err)
					return
				}
				retries.Add(int64(tries - 1))
				done.Add(1)
			}
		})
	}
	for k := range kills { // each in the middle of some insert
		for done.Load() < int64((k+1)*writers*batches/(kills+1)) && ctx.Err() == nil {
			time.Sleep(time.Millisecond) //nolint:forbidigo // the moment of the kill is meant to be arbitrary
		}
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond) //nolint:forbidigo // as above
		if err := syscall.Kill(server.Pid(), syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	group.Wait()
	if server.Restarts() == 0 || retries.Load() == 0 {
		t.Fatalf("%d restarts, %d retries: nothing was tried", server.Restarts(), retries.Load())
	}
	all := writers * batches
	if got, want := totals(t, db), fmt.Sprintf("(%d,%d,%d) %d %d", all*cells*9, all*cells, all, all*2, cells); got != want {
		t.Errorf("stored %s, want %s", got, want)
	}
	p, err := NewTimeline(db).Progress(t.Context())
	if err != nil || len(p.Marks) != writers || p.Marks[0].End != batches*100 || p.Marks[1].End != batches*100 {
		t.Errorf("progress %+v, %v; want both at %d", p, err, batches*100)
	}
	t.Logf("%d restarts, %d retries", server.Restarts(), retries.Load())
}

// forgetful passes requests on, and of some answers nothing back: the caller cannot know what happened.
type forgetful struct {
	proxy *httputil.ReverseProxy
	lose  atomic.Int32 // answers to lose, of requests whose text contains what
	what  string
}

func (f *forgetful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if strings.Contains(r.URL.Query().Get("query")+string(body[:min(len(body), 1000)]), f.what) && f.lose.Add(-1) >= 0 {
		f.proxy.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}
	f.proxy.ServeHTTP(w, r)
}

func through(t *testing.T, db *DB, what string) (*DB, *forgetful) {
	t.Helper()
	f := &forgetful{what: what, proxy: httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: db.cfg.Addresses[0]})}
	transport := &http.Transport{}
	f.proxy.Transport = transport
	server := httptest.NewServer(f)
	t.Cleanup(func() { server.Close(); transport.CloseIdleConnections() })
	return open(t, strings.TrimPrefix(server.URL, "http://"), db.cfg.Database), f
}

func TestLostAnswersDoubleNothing(t *testing.T) {
	for _, table := range []string{"cells", "dead_letters", "keys"} {
		t.Run(table, func(t *testing.T) {
			db := migrated(t)
			lossy, f := through(t, db, "INSERT INTO "+table)
			f.lose.Store(2)
			store := NewStore(lossy)
			tries, err := insist(t.Context(), func() error { return store.Insert(t.Context(), requests(0, 10, 5)) })
			if err != nil || tries != 3 {
				t.Fatalf("%d tries, %v; want 3", tries, err)
			}
			if got := totals(t, db); got != "(45,5,1) 2 5" {
				t.Errorf("stored %s", got)
			}
		})
	}
}

func TestLostAnswersOfCommitDoubleNothing(t *testing.T) {
	for _, table := range []string{"findings", "incident_events", "warnings", "checkpoints", "ticks_done"} {
		t.Run(table, func(t *testing.T) {
			db := migrated(t)
			lossy, f := through(t, db, "INSERT INTO "+table)
			f.lose.Store(1)
			line := NewTimeline(lossy)
			in, err := line.Claim(t.Context(), detect.Tick{Number: 1, To: at(10)})
			if err != nil {
				t.Fatal(err)
			}
			o := detect.Outputs{Transitions: []incident.Transition{{At: at(1)}}, Events: []incident.Event{{Incident: "i", Sequence: 1, At: at(1)}},
				Warnings: []incident.Warning{{At: at(1)}}, Checkpoint: []byte("c")}
			if err := line.Commit(t.Context(), in.Tick, o); !Retryable(err) {
				t.Fatalf("a lost answer gives %v, want something to retry", err)
			}
			events, _, head, err := NewIncidentLog(db).After(t.Context(), respond.Cursor{}, 10)
			if err != nil || (head.Tick == 1) != (table == "ticks_done") || len(events) != int(head.Tick) {
				t.Errorf("before the repetition: %d events, head %+v, %v", len(events), head, err)
			}
			if err := line.Commit(t.Context(), in.Tick, o); err != nil {
				t.Fatal(err)
			}
			got := one[string](t, db, `SELECT toString(((SELECT count() FROM findings), (SELECT count() FROM incident_events), (SELECT count() FROM warnings),
				(SELECT count() FROM checkpoints), (SELECT count() FROM ticks_done)))`)
			if got != "(1,1,1,1,1)" {
				t.Errorf("rows %s, want one each", got)
			}
		})
	}
}

// The claim's record is stored, but whoever claimed died before the inputs were gathered, or after.
func TestResumeGathersWhatAClaimDidNot(t *testing.T) {
	for _, what := range []string{"INSERT INTO ticks ", "INSERT INTO tick_cells"} {
		t.Run(what, func(t *testing.T) {
			db := migrated(t)
			f := newFeeder(db)
			cell := signal.Cell{Bucket: at(0), Key: signal.Key{Path: pathOf("a")}, Outcomes: [signal.NumOutcomes]uint64{3, 4}}
			f.feed(t, timelinetest.Rows{Cells: []signal.Cell{cell}, Tickets: []signal.Ticket{{Time: at(1), ID: "1"}}})
			lossy, proxy := through(t, db, what)
			proxy.lose.Store(1)
			dying := NewTimeline(lossy)
			p, err := dying.Progress(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := dying.Claim(t.Context(), detect.Tick{Number: 1, To: at(10), Marks: p.Marks, Clock: p.Clock}); err == nil {
				t.Fatal("no answer was lost")
			}
			r, err := NewTimeline(db).Resume(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !r.Unfinished || len(r.Ticks) != 1 || len(r.Ticks[0].Cells) != 1 || r.Ticks[0].Cells[0].Outcomes != cell.Outcomes || len(r.Ticks[0].Tickets) != 1 {
				t.Errorf("resume %+v, want the unfinished tick with its inputs", r)
			}
		})
	}
}
