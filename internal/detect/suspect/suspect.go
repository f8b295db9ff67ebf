// Package suspect ranks candidate causes of one incident: resources that run out, changes, services that others depend
// on, and slices that explain the failures. It judges by structure and time only, never by names, and knows nothing of
// rules or of how the trouble was found. Nothing here confirms a cause; that is a person's word.
package suspect

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Graph answers what depends on what; *catalogue.Catalogue is one.
type Graph interface {
	Upstream(node string, hops int) map[string]int
	Dependents(node string, hops int) map[string]int
}

// Service is one that fails.
type Service struct {
	Name     string
	Onset    time.Time
	Failures uint64
	// Where trouble was measured rather than found by rules: how sure it is, in decades; whether it is of the symptom's kind
	// (failures explain failures better than slowness does); and what was seen, for people.
	Decades float64
	Alike   bool
	What    []string
	// Unseen says that it has no requests that are counted, only gauges.
	Unseen bool
}

// Resource is one that runs out, or has.
type Resource struct {
	Name        string
	Metric      string // the one nearest to its limit
	Level       float64
	FiredAt     time.Time // first finding on it
	Trend       time.Time // when its climb began; zero if not seen
	Full        bool
	ExhaustedAt time.Time
	// Low are other gauges of it, or of its siblings, that show nothing.
	Low []Low
	// What says what is odd about one that has no limit near, and Decades how surely.
	What    string
	Decades float64
}

// Low is a gauge that shows nothing.
type Low struct {
	Resource, Metric string
	Level            float64 // of its limit; negative where it has none
}

// Change is a deploy, job, flag, …
type Change struct {
	ID, Target, Title, URL string
	Kind                   signal.ChangeKind
	Dose                   float64
	Started, Ended         time.Time
	Aborted                bool
}

// Input is all that is looked at.
type Input struct {
	Now       time.Time
	Failing   []Service // by name
	Resources []Resource
	Changes   []Change // by start
	Slices    []incident.ScopeSlice
	Active    map[string]bool // services with traffic now, failing or not
	// Served is when requests began to succeed again; zero while they do not.
	Served time.Time
	Graph  Graph
	// Symptom is the failing service that a person asks about; "" ranks for all that fail. Then causes are looked for among it
	// and what it depends on.
	Symptom string
	// Hops is how far a cause reaches along dependencies; 0 is two.
	Hops int
}

const (
	// usualHops is how far a cause reaches along dependencies.
	usualHops = 2
	// temper makes scores less sure than the points alone would: the evidence is not independent.
	temper = 1.5
	// unknownPoints is what "no cause known" starts with: about as much as a change in the right hour and nothing else.
	unknownPoints = 1.0
	// most is how many suspects a list has.
	most = 8
	// worth is the score below which a candidate is not shown.
	worth = 0.01
)

// candidate collects points, and says what for.
type candidate struct {
	incident.Suspect
	points float64
}

func (c *candidate) add(points float64, reason string) {
	c.points += points
	if reason == "" {
		return
	}
	if points >= 0 {
		c.Reasons = append(c.Reasons, reason)
	} else {
		c.Against = append(c.Against, reason)
	}
}

func (c *candidate) note(against string) { c.Against = append(c.Against, against) }

// Rank gives the suspects, the likeliest first, with "no cause known" among them. The scores of all add up to 1.
func Rank(in *Input) []incident.Suspect {
	w := &weigher{in: in, failing: map[string]time.Time{}, hops: cmp.Or(in.Hops, usualHops)}
	for _, s := range in.Failing {
		w.failing[s.Name] = s.Onset
		if w.onset.IsZero() || s.Onset.Before(w.onset) {
			w.onset = s.Onset
		}
	}
	if t, ok := w.failing[in.Symptom]; ok {
		w.onset = t // others may have had trouble of their own before
	}
	var all []*candidate
	resources := map[string]*candidate{}
	for i := range in.Resources {
		c := w.resource(&in.Resources[i])
		resources[in.Resources[i].Name] = c
		all = append(all, c)
	}
	for i := range in.Changes {
		if c := w.change(&in.Changes[i], resources); c != nil {
			all = append(all, c)
		}
	}
	if in.Symptom == "" {
		all = append(all, w.services()...)
	} else {
		all = append(all, w.measured()...)
	}
	all = append(all, w.slices()...)
	all = append(all, &candidate{
		Suspect: incident.Suspect{Kind: incident.SuspectUnknown, ID: "unknown", Title: "no cause known"}, points: unknownPoints,
	})
	return finish(all)
}

// finish turns points into scores by softmax.
func finish(all []*candidate) []incident.Suspect {
	slices.SortStableFunc(all, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(b.points, a.points), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
	sum := 0.0
	for _, c := range all {
		c.Score = math.Exp((c.points - all[0].points) / temper)
		sum += c.Score
	}
	var out []incident.Suspect
	for _, c := range all {
		c.Score = math.Round(c.Score/sum*1e4) / 1e4
		if c.Kind != incident.SuspectUnknown && (c.Score < worth || len(out) >= most) {
			continue
		}
		if c.Reasons == nil {
			c.Reasons = []string{}
		}
		if c.Against == nil {
			c.Against = []string{}
		}
		out = append(out, c.Suspect)
	}
	return out
}
