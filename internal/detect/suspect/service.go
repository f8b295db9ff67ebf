package suspect

import (
	"fmt"
	"math"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// services are suspects where others that fail depend on them.
func (w *weigher) services() (out []*candidate) {
	if len(w.failing) < 2 {
		return nil
	}
	for _, s := range w.in.Failing {
		deps := w.in.Graph.Dependents(s.Name, w.hops)
		n := w.reach(s.Name, deps)
		if n < 2 || float64(n) < 0.3*float64(len(w.failing)) {
			continue
		}
		c := &candidate{Suspect: incident.Suspect{Kind: incident.SuspectService, ID: s.Name, Title: s.Name}}
		c.add(pointsService+pointsReach*float64(n)/float64(len(w.failing)), fmt.Sprintf("%d of %d failing services are it or depend on it", n, len(w.failing)))
		if !s.Onset.After(w.onset.Add(time.Minute)) {
			c.add(pointsFirst, fmt.Sprintf("it was among the first to fail (%s UTC)", hm(s.Onset)))
		}
		if up := w.troubledUpstream(s.Name); up != "" {
			c.add(pointsDownhill, "it depends on "+up+", which is in trouble itself")
		}
		w.healthy(c, s.Name, deps)
		out = append(out, c)
	}
	return out
}

func (w *weigher) troubledUpstream(node string) string {
	up := w.in.Graph.Upstream(node, w.hops)
	for i := range w.in.Resources {
		if _, ok := up[w.in.Resources[i].Name]; ok {
			return w.in.Resources[i].Name
		}
	}
	for _, s := range w.in.Failing {
		if _, ok := up[s.Name]; ok {
			return s.Name
		}
	}
	return ""
}

const (
	pointsMeasured = 2.0 // times how sure its trouble is
	pointsEnough   = 1.5 // times the part of the symptom's bad requests that its own can account for
	pointsUnlike   = -0.8
	pointsSymptom  = -1.5 // what is asked about is mostly where it shows
	pointsLate     = -0.5
	pointsNoWay    = -2.0 // times how little of its trouble is seen on the way to the symptom
	// sure is the number of decades from which more makes no difference.
	sure = 200
	// behind is how much later than the symptom a cause may show: what is rare is noticed late.
	behind = 10 * time.Minute
)

// measured are suspects by what was measured: the symptom's service and what it depends on, where that is in trouble. What
// matters is how sure the trouble is, how much of the trouble around it explains, that it can be followed to the symptom, and
// that nothing it depends on explains it.
func (w *weigher) measured() (out []*candidate) {
	by := map[string]*Service{}
	for i := range w.in.Failing {
		by[w.in.Failing[i].Name] = &w.in.Failing[i]
	}
	symptom := by[w.in.Symptom]
	if symptom == nil {
		return nil
	}
	ways := w.ways(by)
	for i := range w.in.Failing {
		s := &w.in.Failing[i]
		way, below := ways[s.Name]
		if s != symptom && !below || s.Decades <= 0 {
			continue
		}
		c := &candidate{Suspect: incident.Suspect{Kind: incident.SuspectService, ID: s.Name, Title: s.Name}}
		c.add(pointsService+pointsMeasured*certainty(s), "")
		c.Reasons = append(c.Reasons, s.What...)
		deps := w.in.Graph.Dependents(s.Name, w.hops)
		if n := len(w.failing); n > 1 {
			hit := w.reach(s.Name, deps)
			c.add(pointsReach*float64(hit)/float64(n), fmt.Sprintf("%d of %d services in trouble are it or depend on it", hit, n))
		}
		if s == symptom {
			c.add(pointsSymptom+pointsEnough*certainty(s), "")
		} else {
			w.against(c, s, symptom, way)
		}
		if d, part := w.excused(s); d != "" {
			c.add(pointsDownhill*part, "it depends on "+d+", which is in trouble itself")
		}
		w.healthy(c, s.Name, deps)
		out = append(out, c)
	}
	return out
}

// against holds a dependency's trouble against the symptom.
func (w *weigher) against(c *candidate, s, symptom *Service, way float64) {
	if s.Onset.After(symptom.Onset.Add(behind)) {
		c.add(pointsLate, fmt.Sprintf("its trouble began at %s UTC, after the symptom at %s", hm(s.Onset), hm(symptom.Onset)))
	} else {
		c.add(pointsFirst, fmt.Sprintf("its trouble began at %s UTC, the symptom at %s", hm(s.Onset), hm(symptom.Onset)))
	}
	if !s.Alike {
		c.add(pointsUnlike, "its trouble is of another kind than the symptom")
	}
	if s.Unseen {
	} else if part := float64(s.Failures) / math.Max(float64(symptom.Failures), 1); part < 0.9 && symptom.Failures > 0 {
		c.add(pointsEnough*part*certainty(s), "")
		c.note(fmt.Sprintf("it has %d more bad requests than usual, the symptom %d", s.Failures, symptom.Failures))
	} else if s.Failures > 0 {
		c.add(pointsEnough*certainty(s), fmt.Sprintf("it has %d more bad requests than usual, enough for the symptom's %d", s.Failures, symptom.Failures))
	}
	if lost := 1 - math.Min(1, way/certainty(s)); lost > 0.1 {
		c.add(pointsNoWay*lost, "what stands between it and the symptom shows little of it")
	}
}

// ways tells for each dependency of the symptom how much trouble there is on the way to it: the certainty of the weakest
// service on the best way. Of what is not observed the best is believed.
func (w *weigher) ways(by map[string]*Service) map[string]float64 {
	out := map[string]float64{w.in.Symptom: 1}
	next := []string{w.in.Symptom}
	for range w.hops {
		var more []string
		for _, n := range next {
			through := out[n]
			if s := by[n]; n != w.in.Symptom {
				switch {
				case s != nil:
					through = math.Min(through, certainty(s))
				case w.in.Active[n]:
					through = 0
				}
			}
			for m := range w.in.Graph.Upstream(n, 1) {
				if old, seen := out[m]; !seen || through > old {
					out[m] = through
					more = append(more, m)
				}
			}
		}
		next = more
	}
	return out
}

// certainty grows with the effect, not with its square as decades do, to 1.
func certainty(s *Service) float64 { return math.Sqrt(math.Min(s.Decades, sure) / sure) }

// excused names the dependency in most certain trouble, and how far that goes to explain the service's own.
func (w *weigher) excused(s *Service) (name string, part float64) {
	up := w.in.Graph.Upstream(s.Name, w.hops)
	for i := range w.in.Resources {
		if _, ok := up[w.in.Resources[i].Name]; ok {
			return w.in.Resources[i].Name, 1
		}
	}
	for i := range w.in.Failing {
		d := &w.in.Failing[i]
		if _, ok := up[d.Name]; !ok || d.Name == s.Name {
			continue
		}
		p := math.Min(1, certainty(d)/certainty(s))
		if !d.Unseen && !s.Unseen {
			p *= math.Min(1, float64(d.Failures)/math.Max(1, float64(s.Failures)))
		}
		if !d.Alike && s.Alike {
			p /= 2
		}
		if p > part {
			name, part = d.Name, p
		}
	}
	if part < 0.2 {
		return "", 0
	}
	return name, part
}
