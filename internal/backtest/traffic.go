package backtest

import (
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// maxTraffic bounds the rows that a plot is made of; where there would be more they are put together in pairs.
const maxTraffic = 600

// traffic counts what all paths do together, in rows as wide as it takes to stay below the bound.
type traffic struct {
	width time.Duration
	by    map[int64]*Traffic
}

func (t *traffic) count(r *signal.Request) {
	n := max(r.Count, 1)
	switch r.Outcome {
	case signal.Success:
		t.add(r.Time, n, 0)
	case signal.Failure:
		t.add(r.Time, n, n)
	default:
	}
}

func (t *traffic) add(at time.Time, total, failures uint64) {
	if t.by == nil {
		t.by, t.width = map[int64]*Traffic{}, time.Minute
	}
	k := at.Unix() / int64(t.width/time.Second)
	x := t.by[k]
	if x == nil {
		x = &Traffic{At: time.Unix(k*int64(t.width/time.Second), 0).UTC()}
		t.by[k] = x
	}
	x.Total += total
	x.Failures += failures
	if len(t.by) > maxTraffic {
		old := t.by
		t.by, t.width = map[int64]*Traffic{}, 2*t.width
		for _, x := range old {
			t.add(x.At, x.Total, x.Failures)
		}
	}
}

func (t *traffic) rows() []Traffic {
	out := make([]Traffic, 0, len(t.by))
	for _, x := range t.by {
		out = append(out, *x)
	}
	slices.SortFunc(out, func(a, b Traffic) int { return a.At.Compare(b.At) })
	return out
}
