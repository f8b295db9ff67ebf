package console

import (
	"strings"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// Open pages must not read the same log over and over, and never show it older than it may be.
func TestPagesReadOncePerTick(t *testing.T) {
	f := newFake()
	f.put(incident.EventDeclared, outage())
	now := began
	_, s := serve(t, f, func(o *Options) { o.Now = func() time.Time { return now } })
	reads := func(path string) int {
		t.Helper()
		before := f.reads
		if status, page, _ := get(t, s, path); status != 200 || !strings.Contains(page, "exhausted") {
			t.Fatalf("%s answers %d", path, status)
		}
		return f.reads - before
	}
	for path, want := range map[string]int{"/": 2, "/incidents/inc-1": 1} {
		if n := reads(path); n != want {
			t.Errorf("the first %s reads %d times", path, n)
		}
		if n := reads(path); n != 0 {
			t.Errorf("%s reads %d times again in the same tick", path, n)
		}
	}
	f.status.Tick++
	if reads("/incidents/inc-1") == 0 {
		t.Error("a new tick is not seen")
	}
	now = now.Add(rememberFor)
	if reads("/incidents/inc-1") == 0 {
		t.Error("an old page is kept although the tick of this process may stand still")
	}
	f.status.Tick = 0
	for range 2 {
		if reads("/") != 2 {
			t.Error("without a tick something is remembered")
		}
		if reads("/api/v1/incidents/inc-1") != 1 {
			t.Error("the API does not read anew")
		}
	}
}
