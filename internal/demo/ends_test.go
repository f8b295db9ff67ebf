package demo

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// What is open to others takes their orders; and an address that is none is told before anything is started or emptied.
func TestTheConsoleStaysOnLoopback(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:9460": "", "127.0.0.1:0": "", "localhost:80": "", "[::1]:9460": "",
		"0.0.0.0:9460": "not on loopback", ":9460": "not on loopback", "192.0.2.1:9460": "not on loopback", "example.com:1": "not on loopback",
		"nonsense": "is not host:port", "": "is not host:port",
	} {
		err := checkListen(listen)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", listen, err, want)
		}
	}
	if _, err := Start(t.Context(), Options{Listen: "0.0.0.0:1", Dir: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("a demo for everybody: %v", err)
	}
}

// lines is what a person sees, safe to read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.b.Reset()
	return l.b.String()
}

// A daemon that is gone is told at once, not after the minutes that a slow one is given; and a demo that ends gives no
// addresses of what ends with it.
func TestADaemonThatEndsEndsTheDemo(t *testing.T) {
	t.Parallel()
	screen := &lines{}
	s := load(t, "2026-09-13")
	d := up(t, Options{Scenario: s, Seed: 1, Speed: 60, Out: screen})
	screen.take()
	if err := d.Summary(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if got := screen.take(); strings.Contains(got, "http://") || !strings.Contains(got, "PagerDuty   0 alerts opened, 0 repeats of their keys\n") {
		t.Errorf("a demo that ends says\n%s", got)
	}
	if err := d.Summary(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if got := screen.take(); strings.Count(got, "http://") != 4 {
		t.Errorf("a demo that stays says\n%s", got)
	}
	played := make(chan error, 1)
	go func() { played <- d.Play(t.Context()) }()
	eventually(t, time.Minute, "the scenario is played", func() bool { return d.Feed.events.Load() > 0 })
	if got := screen.take(); !strings.Contains(got, "seed 1, 60 times real time") {
		t.Errorf("the pace is not told:\n%s", got)
	}
	d.KillDaemon()
	select {
	case err := <-played:
		if err == nil || !strings.Contains(err.Error(), "the daemon ended by itself (signal: killed); its log is "+d.Dir) {
			t.Errorf("the demo ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the demo goes on without its daemon")
	}
}
