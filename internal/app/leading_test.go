package app

import (
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/respond"
)

// Without ClickHouse there is no epoch. What is due goes out all the same, from whoever the group says, a while after the
// term began; never from a process that has lost touch with the group or knows no silences yet.
func TestPagesGoOutWithoutAnEpoch(t *testing.T) {
	known := make(silencesRead)
	close(known)
	for name, c := range map[string]struct {
		l    *lead
		want bool
	}{
		"a member for long":         {&lead{silenced: known, may: true, member: true, answer: &respond.Loop{}, since: time.Now().Add(-time.Minute)}, true},
		"just begun":                {&lead{silenced: known, may: true, member: true, answer: &respond.Loop{}, since: time.Now()}, false},
		"out of touch with Kafka":   {&lead{silenced: known, may: true, answer: &respond.Loop{}, since: time.Now().Add(-time.Minute)}, false},
		"another leads":             {&lead{silenced: known, member: true, answer: &respond.Loop{}, since: time.Now().Add(-time.Minute)}, false},
		"before its term":           {&lead{silenced: known, may: true, member: true, since: time.Now().Add(-time.Minute)}, false},
		"without silences, late":    {&lead{silenced: make(silencesRead), may: true, member: true, answer: &respond.Loop{}, since: time.Now().Add(-time.Minute)}, true},
		"without silences, at once": {&lead{silenced: make(silencesRead), may: true, member: true, answer: &respond.Loop{}, since: time.Now()}, false},
	} {
		if got := c.l.leading(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if c.l.claim() != 0 {
			t.Errorf("%s: claims the lead without an epoch", name)
		}
	}
}
