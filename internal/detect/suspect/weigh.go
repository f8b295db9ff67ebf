package suspect

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// The points. They are log-odds in spirit and were set by reasoning, not fitted: what is a mechanism (the target is
// the very resource that runs out) counts most, then time, then breadth; nothing that a bystander shares with the cause
// (the same hour, the same area) can win alone.
const (
	// A resource that runs out explains those that depend on it.
	pointsResource      = 0.5
	pointsReach         = 2.0 // times the part of the failing services that it explains
	pointsBefore        = 1.5 // it was in trouble before they were
	pointsAfter         = -1.0
	pointsFull          = 0.5
	pointsOdd           = -0.5 // it behaves oddly, but does not run out
	pointsHealthyOthers = -1.5 // times the part of its dependents that are well

	// A change gets its target's points and its own.
	pointsOnSaturated = -0.5 // on top of the resource's: less than its timing brings, so that bad timing loses to the resource itself
	pointsUsesIt      = 0.3  // its target uses the resource that runs out
	pointsNoTarget    = -0.5
	pointsExplained   = -2.0 // a resource that ran out before explains what its target suffers
	pointsRunning     = 0.7
	pointsRecovery    = 1.5 // it ended, and then so did the trouble
	pointsWentOn      = -1.0
	pointsOverBefore  = -1.5
	pointsSmallDose   = -0.3

	pointsService   = 0.0
	pointsFirst     = 0.7
	pointsDownhill  = -1.5 // it has troubled dependencies of its own
	pointsSlice     = 0.5
	pointsSliceHalf = 2.0 // times its share of the excess
	pointsNext      = 0.2 // less than the slice before
)

// leads are points by how long before the trouble a change began.
var leads = []struct {
	upTo   time.Duration
	points float64
}{
	{5 * time.Minute, 2.0}, {15 * time.Minute, 1.2}, {time.Hour, 0.4}, {4 * time.Hour, -0.6}, {24 * time.Hour, -2.0},
}

const (
	maxSlices = 3
	// worthSlice is the share of the excess from which a slice is a suspect: of two or three values each has a part.
	worthSlice = 0.25
)

// slack is by how much a beginning may be estimated too early.
const slack = 4 * time.Minute

type weigher struct {
	in      *Input
	failing map[string]time.Time
	onset   time.Time // of the first failure; zero while nothing fails
	hops    int
}

func (w *weigher) resource(r *Resource) *candidate {
	c := &candidate{Suspect: incident.Suspect{Kind: incident.SuspectResource, ID: r.Name, Title: r.Name}}
	c.add(pointsResource, "")
	level := fmt.Sprintf("%s at %.0f%% of the limit", r.Metric, r.Level*100)
	switch {
	case r.What != "":
		c.add(pointsOdd, r.What)
	case r.Full:
		c.add(pointsFull, r.Metric+" reached the limit")
	case !r.ExhaustedAt.IsZero():
		c.add(0, level+fmt.Sprintf(", which is reached at about %s UTC by the trend", hm(r.ExhaustedAt)))
	default:
		c.add(0, level)
	}
	deps := w.in.Graph.Dependents(r.Name, w.hops)
	if len(w.failing) == 0 {
		c.add(pointsReach+pointsBefore, "")
		if len(deps) > 0 {
			c.add(0, fmt.Sprintf("%d services and resources depend on it", len(deps)))
		}
	} else {
		hit := w.reach(r.Name, deps)
		c.add(pointsReach*float64(hit)/float64(len(w.failing)), fmt.Sprintf("%d of %d failing services depend on it", hit, len(w.failing)))
		if !r.FiredAt.After(w.onset.Add(30 * time.Second)) {
			c.add(pointsBefore, fmt.Sprintf("it was in trouble at %s UTC, before the first failures at %s", hm(r.FiredAt), hm(w.onset)))
		} else {
			c.add(pointsAfter, fmt.Sprintf("failures began at %s UTC, before it was in trouble at %s", hm(w.onset), hm(r.FiredAt)))
		}
		w.healthy(c, r.Name, deps)
	}
	for _, l := range r.Low {
		text := fmt.Sprintf("%s of %s stayed low", l.Metric, l.Resource)
		if l.Level >= 0 {
			text += fmt.Sprintf(" (%.0f%% of its limit)", l.Level*100)
		}
		if strings.Contains(l.Metric, "lag") {
			text += ", but it never vouches for a primary"
		}
		c.note(text)
	}
	return c
}

// settling is how long trouble takes to spread: before that, what is well proves nothing.
const settling = 5 * time.Minute

// explains names a resource in trouble that the node depends on.
func (w *weigher) explains(node string) string {
	up := w.in.Graph.Upstream(node, w.hops)
	for i := range w.in.Resources {
		r := &w.in.Resources[i]
		if _, ok := up[r.Name]; ok && !r.FiredAt.After(w.onset) {
			return r.Name
		}
	}
	return ""
}

// healthy counts what should fail and does not.
func (w *weigher) healthy(c *candidate, node string, deps map[string]int) {
	var well []string
	n := 0
	for d := range deps {
		if !w.in.Active[d] {
			continue
		}
		n++
		if _, bad := w.failing[d]; !bad {
			well = append(well, d)
		}
	}
	if len(well) == 0 || w.in.Now.Sub(w.onset) < settling {
		return
	}
	slices.Sort(well)
	c.add(pointsHealthyOthers*float64(len(well))/float64(n), fmt.Sprintf("%d other services on %s are healthy (%s)", len(well), node, first(well, 3)))
}

// reach counts the failing services that are the node or depend on it.
func (w *weigher) reach(node string, deps map[string]int) (n int) {
	for s := range w.failing {
		if _, ok := deps[s]; ok || s == node {
			n++
		}
	}
	return n
}

// change gives nil for a change that has nothing to do with the trouble, or began after it.
func (w *weigher) change(x *Change, resources map[string]*candidate) *candidate {
	c := &candidate{Suspect: incident.Suspect{Kind: incident.SuspectChange, ID: x.ID, Title: x.Title, URL: x.URL}}
	began, what := w.relate(c, x, resources)
	if began.IsZero() {
		return nil
	}
	lead := began.Sub(x.Started)
	if lead < -slack {
		return nil
	}
	lead = max(lead, 0)
	for _, l := range leads {
		if lead <= l.upTo {
			text := fmt.Sprintf("%s began at %s UTC, %s before %s at %s", x.Kind, hm(x.Started), minutes(lead), what, hm(began))
			if lead < 2*time.Minute {
				text = fmt.Sprintf("%s when the %s began (%s UTC)", what, x.Kind, hm(x.Started))
			}
			c.add(l.points, text)
			w.span(c, x, began)
			if x.Dose > 0 && x.Dose < 0.1 {
				c.add(pointsSmallDose, fmt.Sprintf("it touches only %.0f%% of its target", x.Dose*100))
			}
			w.crowd(c, x)
			return c
		}
	}
	return nil
}

// relate gives the points of how the target is connected to the trouble, and the beginning to hold its start against.
func (w *weigher) relate(c *candidate, x *Change, resources map[string]*candidate) (began time.Time, what string) {
	for i := range w.in.Resources {
		r := &w.in.Resources[i]
		if x.Target != r.Name {
			continue
		}
		c.add(resources[r.Name].points+pointsOnSaturated, fmt.Sprintf("its target is %s, which runs out of %s", r.Name, r.Metric))
		if !r.Trend.IsZero() {
			return r.Trend, r.Metric + " began to climb"
		}
		return r.FiredAt, r.Metric + " came near the limit"
	}
	if x.Target == "" {
		c.add(pointsNoTarget, "its target is not known")
		return w.trouble(), "trouble began"
	}
	if deps := w.in.Graph.Dependents(x.Target, w.hops); len(w.failing) > 0 {
		if n := w.reach(x.Target, deps); n > 0 {
			c.add(pointsReach*float64(n)/float64(len(w.failing)), fmt.Sprintf("%d of %d failing services are %s or depend on it", n, len(w.failing), x.Target))
			if n == 1 && len(w.failing) > 3 {
				c.note(fmt.Sprintf("%d other services fail as well", len(w.failing)-1))
			}
			if r := w.explains(x.Target); r != "" {
				c.add(pointsExplained, r+" ran out before that, which explains these failures without it")
			}
			return w.onset, "failures began"
		}
	}
	for i := range w.in.Resources {
		r := &w.in.Resources[i]
		if _, uses := w.in.Graph.Upstream(x.Target, 1)[r.Name]; uses {
			c.add(pointsUsesIt, fmt.Sprintf("%s uses %s", x.Target, r.Name))
			if !r.Trend.IsZero() {
				return r.Trend, r.Metric + " began to climb"
			}
			return r.FiredAt, r.Metric + " came near the limit"
		}
	}
	return time.Time{}, ""
}

// trouble is the first sign of any kind.
func (w *weigher) trouble() time.Time {
	t := w.onset
	for i := range w.in.Resources {
		r := &w.in.Resources[i]
		at := r.FiredAt
		if !r.Trend.IsZero() {
			at = r.Trend
		}
		if t.IsZero() || at.Before(t) {
			t = at
		}
	}
	return t
}

// lasting tells kinds that act while they run from those that act by having been done.
func lasting(k signal.ChangeKind) bool {
	return k == signal.Job || k == signal.Migration || k == signal.Maintenance
}

// span weighs whether a change was still running, and what its end did.
func (w *weigher) span(c *candidate, x *Change, began time.Time) {
	const settle = 20 * time.Minute
	switch {
	case x.Ended.IsZero():
		if lasting(x.Kind) {
			c.add(pointsRunning, "it is still running")
		}
	case lasting(x.Kind) && x.Ended.Before(began.Add(-2*time.Minute)):
		c.add(pointsOverBefore, fmt.Sprintf("it had ended at %s UTC, before trouble began", hm(x.Ended)))
	case !lasting(x.Kind):
	case !w.in.Served.IsZero() && w.in.Served.After(x.Ended.Add(-slack)) && w.in.Served.Sub(x.Ended) <= settle:
		c.add(pointsRecovery, fmt.Sprintf("it ended at %s UTC, and requests succeeded again from %s", hm(x.Ended), hm(w.in.Served)))
	case w.in.Served.IsZero() && w.in.Now.Sub(x.Ended) > settle:
		c.add(pointsWentOn, fmt.Sprintf("it ended at %s UTC, and the trouble went on", hm(x.Ended)))
	}
}

// crowd notes how many others stood in the same place: being there proves little then.
func (w *weigher) crowd(c *candidate, x *Change) {
	n := 0
	for i := range w.in.Changes {
		if o := &w.in.Changes[i]; o.ID != x.ID && o.Started.Sub(x.Started).Abs() <= 30*time.Minute {
			n++
		}
	}
	if n > 0 {
		c.note(fmt.Sprintf("%d other changes in the same hour", n))
	}
}

// slices are suspects in the order in which they explain, so a wider one never gets more than a better one before it.
func (w *weigher) slices() (out []*candidate) {
	most := math.Inf(1)
	for _, s := range w.in.Slices {
		if s.Attributes == "" || len(out) == maxSlices {
			break // the whole explains more than what follows
		}
		if s.Share < worthSlice {
			continue
		}
		c := &candidate{Suspect: incident.Suspect{Kind: incident.SuspectAttributes, ID: s.Attributes.String(), Title: s.Attributes.String()}}
		points := math.Min(most-pointsNext, pointsSlice+pointsSliceHalf*s.Share)
		c.add(points, fmt.Sprintf("%.0f%% of what is beyond the usual is in it", s.Share*100))
		most = points
		out = append(out, c)
	}
	return out
}

func hm(t time.Time) string { return t.UTC().Format("15:04") }

func minutes(d time.Duration) string {
	if d >= 2*time.Hour {
		return fmt.Sprintf("%.1f h", d.Hours())
	}
	return fmt.Sprintf("%d min", int(d.Round(time.Minute)/time.Minute))
}

func first(names []string, n int) string {
	if len(names) > n {
		return strings.Join(names[:n], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
