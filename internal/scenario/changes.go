package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// makeChanges lays out all changes of the day: those of the file, and the routine ones.
func (g *Generator) makeChanges() (out []signal.Change) {
	add := func(c signal.Change, start, end time.Duration, last signal.Phase) {
		c.Time, c.Phase = g.at(start), signal.Started
		out = append(out, c)
		if end > start {
			c.Time, c.Phase = g.at(end), last
			out = append(out, c)
		}
	}
	for _, f := range g.scenario.file.Changes {
		c := signal.Change{
			ID: f.ID, Kind: signal.ChangeKind(f.Kind), Target: f.Target, Title: f.Title, Actor: f.Actor, Dose: f.Dose,
			Attributes: signal.NewAttributes(f.Attributes),
		}
		var end time.Duration
		if f.End != nil {
			end = time.Duration(*f.End) + g.shifts[f.Shift]
		}
		add(c, time.Duration(f.Start)+g.shifts[f.Shift], end, cmp.Or(f.Outcome, signal.Finished))
	}
	g.routine(add)
	from, to := g.scenario.Start, g.scenario.End
	out = slices.DeleteFunc(out, func(c signal.Change) bool { return c.Time.Before(from) || !c.Time.Before(to) })
	slices.SortStableFunc(out, func(a, b signal.Change) int { return a.Time.Compare(b.Time) })
	return out
}

func (g *Generator) routine(add func(signal.Change, time.Duration, time.Duration, signal.Phase)) {
	f := g.scenario.file.Routine
	if f.PerHour <= 0 {
		return
	}
	r := newRand(g.seed, "routine changes")
	services := f.Services
	if len(services) == 0 {
		for _, s := range g.scenario.catalogue.Services {
			services = append(services, s.Name)
		}
	}
	weights := make([]float64, len(f.Kinds))
	for i, k := range f.Kinds {
		weights[i] = k.Weight
	}
	kinds := newShares(weights)
	at, end := time.Duration(g.scenario.file.Start), time.Duration(g.scenario.file.End)
	for n := 1; ; n++ {
		at += time.Duration(r.ExpFloat64() / f.PerHour * float64(time.Hour)).Truncate(time.Millisecond)
		if at >= end {
			return
		}
		k, target := f.Kinds[kinds.draw(r)], pick(r, services)
		c := signal.Change{
			ID: fmt.Sprintf("%s-%s-%d", k.Kind, target, 4000+n), Kind: signal.ChangeKind(k.Kind), Target: target,
			Title: strings.ReplaceAll(pick(r, k.Titles), "{service}", target), Actor: pick(r, actors),
			Dose: []float64{0, 0.1, 0.5, 1}[r.IntN(4)],
		}
		add(c, at, at+lognormalMinutes(r.NormFloat64(), f.Lasting.Std()), signal.Finished)
	}
}

var actors = []string{"deploy-bot", "hubot", "mreyes", "tanaka", "osei", "lindqvist", "pchen"}

func lognormalMinutes(normal float64, median time.Duration) time.Duration {
	d := float64(median) * (1 + 0.4*normal)
	return time.Duration(max(d, float64(median)/4)).Truncate(time.Second)
}
