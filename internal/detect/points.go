package detect

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// forecastStands is for how long a forecast must have stood before it may wake somebody.
const forecastStands = 2 * time.Minute

// coasting is after how long without a bad evaluation a finding that is kept firing no longer weighs.
const coasting = 30 * time.Second

// points are the weight of an incident's evidence under the rule that gives it most.
type points struct {
	rule      *compiled
	sum       float64
	declare   bool
	severity  incident.Severity
	why       string
	recovered time.Duration
}

// weigh lets each high_impact rule weigh the incident; the one that it comes closest to, or exceeds by most, speaks. A
// finding whose own rule says page or critical needs no weighing.
func (d *Detector) weigh(x *tracked, now time.Time) (best points) {
	best.recovered = defaultRecovered
	var by *rule.HighImpact
	for _, r := range d.rules {
		p, ok := r.Params.(*rule.HighImpact)
		if !ok || r.Shadow || p.FalsePages != (rule.Budget{}) || !d.concerns(x, p) {
			continue
		}
		sum, why := d.evidence(x, p, now, nil)
		if by == nil || sum*by.Declare >= best.sum*p.Declare { // each counts in points of its own
			by, best = p, points{rule: r, sum: sum, why: why, recovered: p.Recovered.Std()}
		}
	}
	held := false
	switch {
	case by != nil && best.sum >= by.Declare:
		if x.Ready.IsZero() {
			x.Ready = now
		}
		held = now.Sub(x.Ready) >= best.rule.For.Std()
		if !held && x.Inc.State == incident.Suspected {
			lasting, _ := d.evidence(x, by, now, func(m *member) bool { return d.lasted(m, now, best.rule.For.Std()) })
			held = lasting >= by.Declare
		}
		best.severity = incident.Major
		if best.sum >= by.Critical {
			best.severity = incident.Critical
		}
	case by != nil:
		x.Ready = time.Time{}
	}
	best.declare = held
	if !held && x.Inc.State == incident.Suspected {
		best.severity = incident.Minor
	}
	for i := range x.Members {
		m := &x.Members[i]
		if !m.Active || m.Finding.State != incident.Firing {
			continue
		}
		sev := incident.Major
		f, fused := d.ruleOf(m.Finding.Rule).fuser()
		switch label := m.Finding.Labels["severity"]; {
		case label == "critical":
			sev = incident.Critical
		case label == "page":
		case !fused:
			continue
		case best.rule == nil || !best.declare:
			best.rule, best.recovered = f.rule, f.params.Recovered.Std()
		}
		if !best.declare {
			best.why = m.Finding.Explain
		}
		best.declare = true
		best.severity = max(best.severity, sev)
	}
	return best
}

func (d *Detector) concerns(x *tracked, p *rule.HighImpact) bool {
	if len(p.Areas) == 0 {
		return true
	}
	for i := range x.Members {
		n := d.nodeOf(&x.Members[i].Finding)
		if n.area != "" && rule.MatchesAny(p.Areas, n.area) {
			return true
		}
	}
	return false
}

// lasted tells that a path has been bad in enough of its buckets for trouble to have lasted as long as the rule that declares asks,
// whatever its findings and their weight needed to be sure of it: at low traffic they take most of two minutes, and to wait
// another one from then on tells nothing more. A burst that is shorter has fewer bad buckets, for as long as windows remember it.
func (d *Detector) lasted(m *member, now time.Time, atLeast time.Duration) bool {
	r := d.ruleOf(m.Finding.Rule)
	if r == nil || !onPath(&m.Finding) || isPastLimit(&m.Finding.Key) {
		return false
	}
	p, ok := r.Params.(*rule.FailureRate)
	s := d.seriesOf(keyOf(&m.Finding.Key))
	if !ok || p.Above == 0 || s == nil {
		return false
	}
	bad, n := p.BadOutcomes(), time.Duration(0)
	for b := bucketOf(m.Finding.ActiveAt) - buckets(p.Window.Std()); b < bucketOf(now); b++ {
		c := s.sum(b, b+1, -1)
		if all, failed := c.judged(bad); failed > 0 && float64(failed) > float64(p.Above)*float64(all) {
			n += signal.BucketSize
		}
	}
	return n >= atLeast
}

// evidence adds up the points of all sources, and says the largest first. Only members count that `of` accepts; nil accepts all.
func (d *Detector) evidence(x *tracked, p *rule.HighImpact, now time.Time, of func(*member) bool) (sum float64, why string) {
	services := map[string]bool{}
	var share float64
	var worst string
	var dependents, bad, past int
	var resource string
	for i := range x.Members {
		m := &x.Members[i]
		if !m.Active || of != nil && !of(m) {
			continue
		}
		f := &m.Finding
		live := d.finding(f.Key)
		if live == nil || f.State != incident.Unknown && now.Sub(live.Last) >= max(coasting, 2*spanOf(live.rule.interval)) {
			continue // kept firing, but not seen bad any more
		}
		bad++
		switch {
		case isPastLimit(&f.Key):
			if telemetry(f.Kind) || f.Kind == "absence" { // of other kinds none would weigh alone, or it is no service
				past = max(past, live.Subjects)
			}
		case onPath(f) && d.harmless(f, now):
			bad--
		case onPath(f):
			services[f.Key.Service] = true
			if f.Failures >= p.MinFailures && f.Value > share {
				share, worst = f.Value, f.Explain
			}
		case f.Kind == "absence" && f.Key.Service != "":
			services[f.Key.Service] = true
		case f.Kind == "absence":
			if int(f.Value) > dependents { // everybody needs what all have in common
				dependents, resource = int(f.Value), f.Explain
			}
		case f.Kind == "saturation":
			if now.Sub(f.FiredAt) < forecastStands {
				continue
			}
			soon := !live.Exhausted.IsZero() && live.Exhausted.Sub(now) <= p.ExhaustedIn.Std()
			if n := len(d.cat.DependentServices(f.Key.Resource, 2)); (soon || live.Full) && n > dependents {
				dependents = n
				resource = fmt.Sprintf("%s services depend on %s, whose %s", countOf(n), f.Key.Resource, metricWords(f.Key.Metric))
				if live.Full {
					resource += " reached the limit"
				} else {
					resource += " " + runOut(f.Key.Metric) + " in about " + shortDuration(live.Exhausted.Sub(now))
				}
			}
		}
	}
	type part struct {
		points float64
		text   string
	}
	var parts []part
	add := func(points float64, text string) {
		if points > 0 {
			sum += points
			parts = append(parts, part{points, text})
		}
	}
	add(float64(dependents)/p.Dependents, resource)
	failing := max(len(services), past)
	add(float64(failing)/p.Services, plural(failing, "service")+" failing")
	add(share/float64(p.Share), worst)
	n := x.Accounts.Estimate()
	if bad == 0 {
		n = 0 // they were affected; nobody is now
	}
	add(float64(n)/p.Accounts, fmt.Sprintf("at least %d accounts", n))
	texts := make([]string, 0, len(parts))
	for _, q := range parts {
		texts = append(texts, q.text)
	}
	return sum, fmt.Sprintf("%s (%.1f points; an incident is declared at %g)", strings.Join(texts, "; "), sum, p.Declare)
}

func countOf(n int) string { return fmt.Sprintf("%d", n) }

// callersReach is how far up the callers of a service are asked whether they are well.
const callersReach = 8

// harmless tells of a path that has failed for as long as it is known, while all that need it succeed: nothing has become worse, and
// nobody is hurt. Judged for the first time, an inner service that always fails must not wake anybody. One that nobody is known
// to depend on may be where customers come in, so it does.
func (d *Detector) harmless(f *incident.Finding, now time.Time) bool {
	if !d.alwaysFailed(f) {
		return false
	}
	callers := d.cat.DependentServices(f.Key.Service, callersReach)
	well := false
	for _, c := range callers {
		well = well || bucketOf(now)-d.known[c] <= usualDelay
	}
	if !well {
		return false
	}
	for _, r := range d.rules {
		for _, o := range r.active {
			if onPath(&o.F) && o.F.State == incident.Firing && slices.Contains(callers, o.F.Key.Service) && !d.alwaysFailed(&o.F) {
				return false
			}
		}
	}
	return true
}

// alwaysFailed tells that nothing is known of the path but its failing.
func (d *Detector) alwaysFailed(f *incident.Finding) bool {
	s := d.seriesOf(keyOf(&f.Key))
	if s == nil || f.Kind != "failure_rate" {
		return false
	}
	_, known := s.usualShare(onlyFailures)
	return !known
}
