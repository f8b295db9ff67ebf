package rule

import (
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// MaxOffset is the largest query_offset of a group but for sql rules. What is abnormal must be known as such before it becomes usual,
// which is ten minutes later.
const MaxOffset = 10 * time.Minute

// checkOffset refuses an offset where a rule could not be judged as of an earlier moment: kinds that take each value in as it comes
// have no earlier state to ask.
func (r *Rule) checkOffset(g *Group) (errs strictyaml.Errors) {
	d := g.QueryOffset.Std()
	if d == 0 {
		return nil
	}
	fail := func(format string, args ...any) {
		errs = append(errs, r.Pos.Errorf("query_offset %s of group %s: "+format, append([]any{g.QueryOffset, g.Name}, args...)...))
	}
	if d < 0 || d%signal.BucketSize != 0 {
		fail("want a multiple of %s", signal.BucketSize)
		return errs
	}
	evidence := false
	var window time.Duration
	switch p := r.Params.(type) {
	case *SQL:
		return nil // its query is asked about any span
	case *FailureRate:
		evidence, window = p.FalsePages != Budget{}, oldestAsked(p.Window, p.Objective, p.BurnRates)
	case *Latency:
		evidence, window = p.FalsePages != Budget{}, oldestAsked(p.Window, p.Objective, p.BurnRates)
	default:
		fail("a rule of kind %s takes each value in as it comes, so it can't be judged as of an earlier moment; put %s into another group", r.Kind, r.Alert)
		return errs
	}
	switch {
	case evidence:
		fail("evidence takes each minute in as it comes, so %s can't be judged as of an earlier moment; put it into another group", r.Alert)
	case d > MaxOffset:
		fail("want at most %s", strictyaml.Duration(MaxOffset))
	case window+d > MaxWindow:
		fail("%s looks %s back from there, and all is kept for %s only", r.Alert, strictyaml.Duration(window), strictyaml.Duration(MaxWindow))
	}
	return errs
}

// oldestAsked is how far back a rule looks in what is kept in full; of longer windows sums are kept.
func oldestAsked(window strictyaml.Duration, objective Share, rates []BurnRate) (oldest time.Duration) {
	if objective == 0 {
		return window.Std()
	}
	for _, b := range rates {
		for _, w := range []time.Duration{b.Long, b.Short} {
			if w <= MaxWindow {
				oldest = max(oldest, w)
			}
		}
	}
	return oldest
}
