package backtest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/rule"
)

// unanswered are the sql rules of a replay whose queries nobody asked live: ticks carry no answers to them, and what a database says
// now is another matter. Where a query was asked live, a missing answer was missing then, too, and the replay is right.
type unanswered struct {
	since time.Time            // the first tick that was replayed
	first map[string]time.Time // by rule, the first tick that it could not judge
	live  map[string]*rule.Set // by revision; nil where its text is not stored
}

// note looks at a tick that was judged live by other rules than those of the replay.
func (u *unanswered) note(ctx context.Context, h History, d *detect.Detector, t *detect.Tick) error {
	live, known := u.live[t.Rules]
	if !known {
		nothing := detect.Config{Rules: &rule.Set{}, Catalogue: catalogue.Empty()}
		c, ok, err := detect.ConfigOf(ctx, h, t.Rules, nothing.Catalogue.Revision, nothing)
		if errors.Is(err, detect.ErrNoAnswer) {
			return err
		}
		if live = c.Rules; err != nil || !ok {
			live = nothing.Rules // of another version, or not stored: the answers alone say what was asked
		}
		if u.live == nil {
			u.live, u.first = map[string]*rule.Set{}, map[string]time.Time{}
		}
		u.live[t.Rules] = live
	}
	for _, alert := range d.Unanswered(u.since, live) {
		if _, known := u.first[alert]; !known {
			u.first[alert] = t.To
		}
	}
	return nil
}

// String names them; "" if there are none.
func (u *unanswered) String() string {
	names := slices.Sorted(maps.Keys(u.first))
	for i, n := range names {
		names[i] = n + " (from " + stamp(u.first[n]) + " on)"
	}
	return strings.Join(names, ", ")
}
