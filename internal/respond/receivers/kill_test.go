package receivers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/respond/outbox"
	"github.com/tocsin-project/tocsin/internal/respond/respondtest"
)

// fileLog is an incident log that two processes share.
type fileLog string

func (f fileLog) read() []incident.Event {
	data, _ := os.ReadFile(string(f))
	var out []incident.Event
	for line := range bytes.Lines(data) {
		var e incident.Event
		if json.Unmarshal(line, &e) == nil {
			out = append(out, e)
		}
	}
	return out
}

func (f fileLog) memory() *respond.MemoryLog {
	m := &respond.MemoryLog{}
	m.Append(f.read()...)
	return m
}

func (f fileLog) After(ctx context.Context, c respond.Cursor, limit int) ([]incident.Event, respond.Cursor, respond.Head, error) {
	return f.memory().After(ctx, c, limit)
}

func (f fileLog) Open(ctx context.Context, since time.Time) ([]incident.Event, error) {
	return f.memory().Open(ctx, since)
}

// child is the process that gets killed.
func child(dir string) {
	urls := strings.Split(os.Getenv("TOCSIN_RESPOND_URLS"), " ")
	cfg := shipped(nil, dir, urls[0], urls[1])
	store, err := outbox.OpenWAL(filepath.Join(dir, "outbox"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	places, err := Build(cfg, Options{Dir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	l, err := respond.New(respond.Options{Log: fileLog(filepath.Join(dir, "log.jsonl")), Routes: cfg, Places: quick(places), Store: store, Settings: settings, Poll: 3 * time.Millisecond})
	if err == nil {
		err = l.Run(context.Background())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// grafana#68162 and the promise of the loop: killed at any moment, again and again, every incident has one alert
// that is opened and closed once, one first message, and each change is told exactly once.
func TestKilledAtRandomMoments(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes for some seconds")
	}
	w := newWorld(t)
	log := filepath.Join(w.dir, "log.jsonl")
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	start := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "TOCSIN_RESPOND_CHILD="+w.dir, "TOCSIN_RESPOND_URLS="+w.pager.URL+" "+w.slack.URL)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	const incidents = 3
	tick, kills := uint64(0), 0
	var said []string
	write := func(i incident.Incident, seq uint64, typ incident.EventType) {
		tick++
		e := event(i, seq, tick, typ)
		e.Reason = fmt.Sprintf("change %d of %s", seq, i.ID)
		if seq > 1 {
			said = append(said, e.Reason)
		}
		raw, _ := json.Marshal(e)
		if _, err := f.Write(append(raw, '\n')); err != nil {
			t.Fatal(err)
		}
	}
	kill := func(cmd *exec.Cmd) {
		time.Sleep(time.Duration(rnd.IntN(60)) * time.Millisecond) //nolint:forbidigo // a kill comes at any moment
		if rnd.IntN(2) == 0 {                                      // some answers are lost on top
			w.slack.Fail("lost", 1, "")
			w.pager.Fail("lost", 1)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		kills++
	}
	states := []incident.State{incident.Declared, incident.Declared, incident.Acknowledged, incident.Mitigated, incident.Resolved}
	types := []incident.EventType{incident.EventDeclared, incident.EventSuspects, incident.EventAcknowledged, incident.EventMitigated, incident.EventResolved}
	for n := range incidents {
		for s := range states {
			i := in(respondtest.Example(), states[s])
			i.ID = fmt.Sprintf("incident-%d", n)
			write(i, uint64(s+1), types[s])
			for range 2 {
				cmd := start()
				kill(cmd)
			}
			if s == 0 || s == 3 { // it lives long enough to have opened and told before it goes on
				cmd := start()
				wait(t, "the page is out", func() bool {
					a := w.pager.State().Alerts
					return len(a) == n+1 && len(w.slack.Channel("incidents").Messages) == n+1
				})
				kill(cmd)
			}
		}
	}
	cmd := start()
	replies := func() string {
		var b strings.Builder
		for _, m := range w.slack.Channel("incidents").Messages {
			for _, r := range m.Replies {
				b.WriteString(r.Text + "\n")
			}
		}
		return b.String()
	}
	wait(t, "all is closed and told", func() bool {
		closed := 0
		for _, a := range w.pager.State().Alerts {
			if a.Status == "resolved" {
				closed++
			}
		}
		for _, s := range said {
			if !strings.Contains(replies(), s+"\n") {
				return false
			}
		}
		return closed == incidents
	})
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if st := w.pager.State(); len(st.Alerts) != incidents {
		t.Errorf("%d alerts for %d incidents: %+v", len(st.Alerts), incidents, st.Alerts)
	}
	if m := w.slack.Channel("incidents").Messages; len(m) != incidents {
		t.Errorf("%d first messages for %d incidents", len(m), incidents)
	}
	for _, s := range said {
		if n := strings.Count(replies(), s+"\n"); n != 1 {
			t.Errorf("%q was told %d times", s, n)
		}
	}
	t.Logf("%d kills", kills)
}

// fatal stands for a test in the child process.
type fatal struct{ testing.TB }

func (fatal) Helper()           {}
func (fatal) Fatal(args ...any) { fmt.Fprintln(os.Stderr, args...); os.Exit(1) }
