package detect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	// nearOnset is how close two beginnings have to be for a shared slice or dependency to join them.
	nearOnset = 10 * time.Minute
	// areaOnset is the same for a shared area, which says less; tickets come later than failures.
	areaOnset   = 5 * time.Minute
	ticketsLate = 45 * time.Minute
	// afterlife is how long what has ended still draws what is near: an incident that comes back is the same incident.
	afterlife = 30 * time.Minute
	// What has been near its limit for hours below this level is how that resource is.
	staleAfter = 3 * time.Hour
	staleLevel = 0.97
	// A dependency is troubled by inference when so many, and such a part, of its dependents fail together.
	sharedMin  = 3
	sharedPart = 0.4
	// Without a catalogue, so many of the active services beginning within two minutes are one incident.
	widespreadMin    = 5
	widespreadPart   = 0.1
	widespreadWithin = 2 * time.Minute
	whyWidespread    = "many services began to fail within two minutes"
)

// node is a finding as correlation sees it.
type node struct {
	key   incident.FindingKey
	onset time.Time
	kind  string
	area  string
	value float64
}

func (d *Detector) nodeOf(f *incident.Finding) node {
	n := node{key: f.Key, onset: f.ActiveAt, kind: f.Kind, area: f.Key.Area, value: f.Value}
	n.key.Rule = f.Rule
	if n.key.Service != "" {
		n.area = d.cat.AreaOf(n.key.Service)
	}
	return n
}

// name is the service or resource that a node is about; a ticket finding is about neither.
func (n *node) name() string { return cmp.Or(n.key.Service, n.key.Resource) }

// ofArea tells nodes that are about an area as a whole.
func (n *node) ofArea() bool { return n.kind == "support" || n.kind == highImpact && n.key.Area != "" }

func (n *node) aboutArea() string {
	switch {
	case n.kind == "support":
		return "tickets about "
	case n.ofArea():
		return "evidence about "
	}
	return ""
}

// stale tells that a resource has been near its limit for so long, without reaching it, that it explains nothing new.
func (n *node) stale(onset time.Time) bool {
	if n.kind == "gauge" && onset.Sub(n.onset) > afterlife {
		return true
	}
	return n.kind == "saturation" && onset.Sub(n.onset) > staleAfter && n.value < staleLevel
}

// correlate puts the findings that began to fire into incidents: new ones that belong together, and then what they
// belong to. It never moves a finding that is placed.
func (d *Detector) correlate(t int64) {
	fresh := slices.DeleteFunc(slices.Clone(d.fired), func(f *finding) bool {
		if f.rule.Shadow {
			return true // only recorded
		}
		if x := d.incident(f.Incident); x != nil && x.ours(f, timeOf(t)) {
			return true // fires again where it was
		}
		f.Incident = ""
		return false
	})
	if len(fresh) == 0 {
		return
	}
	slices.SortFunc(fresh, func(a, b *finding) int { return a.key.Compare(b.key) })
	c := d.newScene(fresh, timeOf(t))
	for _, group := range c.groups(fresh) {
		d.place(c, group, timeOf(t))
	}
}

// scene is what edges are judged by at one step.
type scene struct {
	d          *Detector
	now        time.Time
	suspicious map[string]bool // dependencies that are troubled, seen or inferred
	widespread bool
}

func (d *Detector) newScene(fresh []*finding, now time.Time) *scene {
	c := &scene{d: d, now: now, suspicious: map[string]bool{}}
	failing := map[string]time.Time{} // service → newest onset
	see := func(f *incident.Finding) {
		if f.Key.Resource != "" && f.Kind == "gauge" {
			// That it is unlike itself is no reason to take unrelated trouble for one.
		} else if f.Key.Resource != "" {
			c.suspicious[f.Key.Resource] = true
		} else if s := f.Key.Service; s != "" && now.Sub(f.ActiveAt) <= nearOnset && f.ActiveAt.After(failing[s]) {
			failing[s] = f.ActiveAt
		}
	}
	for _, f := range fresh {
		see(&f.F)
	}
	for _, x := range d.inc {
		for i := range x.Members {
			if x.Members[i].live(now) {
				see(&x.Members[i].Finding)
			}
		}
	}
	c.widespread = c.isWidespread(failing)
	dependents := map[string]int{}
	for _, s := range sortedKeys(failing) {
		for n := range d.within(s) {
			dependents[n]++
		}
	}
	for n, k := range dependents {
		if k >= sharedMin && float64(k) >= sharedPart*float64(len(d.cat.DependentServices(n, 2))) {
			c.suspicious[n] = true
		}
	}
	return c
}

// isWidespread is the way out where nothing is known of what depends on what.
func (c *scene) isWidespread(failing map[string]time.Time) bool {
	if c.d.cat.HasEdges() {
		return false
	}
	began, active := 0, 0
	for _, at := range failing {
		if c.now.Sub(at) <= widespreadWithin {
			began++
		}
	}
	for _, last := range c.d.known {
		if bucketOf(c.now)-last <= usualDelay {
			active++
		}
	}
	return float64(began) > max(widespreadMin, widespreadPart*float64(active))
}

// edge says why two nodes belong to one incident; "" if nothing strong does.
func (c *scene) edge(a, b node) string {
	apart := a.onset.Sub(b.onset).Abs()
	an, bn := a.name(), b.name()
	if a.key == b.key {
		return "the same finding"
	}
	if a.key.Rule == b.key.Rule && apart <= nearOnset && (isPastLimit(&a.key) || isPastLimit(&b.key)) {
		return "past the limit of " + a.key.Rule
	}
	if an != "" && an == bn {
		if apart <= time.Hour || a.kind == "saturation" {
			return "same " + kindOfNode(a) + " " + an
		}
	}
	if an != "" && bn != "" && an != bn {
		for _, p := range [2][2]node{{a, b}, {b, a}} {
			down, up := p[0], p[1]
			hops, ok := c.d.within(down.name())[up.name()]
			if ok && !up.onset.After(down.onset.Add(areaOnset)) && !up.stale(down.onset) {
				return fmt.Sprintf("%s depends on %s%s", down.name(), up.name(), via(hops))
			}
		}
		if apart <= nearOnset {
			if dep := c.shared(an, bn); dep != "" {
				return fmt.Sprintf("%s and %s both depend on %s", an, bn, dep)
			}
		}
		if apart <= widespreadWithin && c.widespread {
			return whyWidespread
		}
	}
	if apart <= nearOnset && a.key.Attributes != "" && b.key.Attributes != "" && a.key.Resource == "" && b.key.Resource == "" {
		for n, v := range a.key.Attributes.All() {
			if b.key.Attributes.Get(n) == v {
				return "both only where " + n + "=" + v
			}
		}
	}
	if a.area != "" && a.area == b.area {
		switch {
		case a.ofArea() || b.ofArea():
			if apart <= ticketsLate {
				return cmp.Or(a.aboutArea(), b.aboutArea()) + a.area
			}
		case apart <= areaOnset && an != "" && bn != "":
			return "same area " + a.area + ", within minutes"
		}
	}
	return ""
}

func kindOfNode(n node) string {
	if n.key.Resource != "" {
		return "resource"
	}
	return "service"
}

func via(hops int) string {
	if hops > 1 {
		return " through another"
	}
	return ""
}

// shared finds a troubled dependency of both.
func (c *scene) shared(a, b string) string {
	da, db := c.d.within(a), c.d.within(b)
	best := ""
	for n := range da {
		if _, ok := db[n]; ok && c.suspicious[n] && (best == "" || n < best) {
			best = n
		}
	}
	return best
}

// groups unites new findings that strong edges connect, in order of their first.
func (c *scene) groups(fresh []*finding) (out [][]*finding) {
	parent := make([]int, len(fresh))
	for i := range parent {
		parent[i] = i
	}
	root := func(i int) int {
		for parent[i] != i {
			i = parent[i]
		}
		return i
	}
	nodes := make([]node, len(fresh))
	for i, f := range fresh {
		nodes[i] = c.d.nodeOf(&f.F)
		for j := range i {
			if c.edge(nodes[i], nodes[j]) != "" {
				a, b := root(i), root(j)
				parent[max(a, b)] = min(a, b)
			}
		}
	}
	by := map[int][]*finding{}
	for i, f := range fresh {
		by[root(i)] = append(by[root(i)], f)
	}
	for _, r := range slices.Sorted(maps.Keys(by)) {
		out = append(out, by[r])
	}
	return out
}

// place attaches a group to the incident it belongs to, or opens one. Suspected incidents that the group connects are
// merged into it: nobody was told of them. Incidents that were declared stay apart, merging those is a person's word.
func (d *Detector) place(c *scene, group []*finding, now time.Time) {
	linked := map[*tracked]string{}
	for _, f := range group {
		n := d.nodeOf(&f.F)
		for _, x := range d.inc {
			if why := x.edge(c, n); why != "" && linked[x] == "" {
				linked[x] = why
			}
		}
	}
	var target *tracked
	for _, x := range d.inc { // oldest first
		if linked[x] == "" {
			continue
		}
		if target == nil || rank(x) > rank(target) {
			target = x
		}
	}
	if target == nil {
		// Customers of areas that telemetry finds nothing wrong with write, too, while much is down: their tickets belong to
		// what is down, and must not become an incident that somebody has to look at beside it.
		if target = d.wide(group); target != nil {
			linked[target] = "tickets that came while much is failing"
		}
	}
	if target == nil {
		target = d.open(group[0], now, c.widespread)
	}
	for _, x := range d.inc {
		if x != target && linked[x] != "" && x.Inc.State == incident.Suspected {
			target.absorb(d, x, now, linked[x])
		}
	}
	for _, f := range group {
		why := target.edge(c, d.nodeOf(&f.F))
		target.attach(f, now, cmp.Or(why, linked[target], "began together"))
	}
}

// wide is the incident that many services are part of, for a group that is tickets alone; nil if there is none.
func (d *Detector) wide(group []*finding) *tracked {
	if slices.ContainsFunc(group, func(f *finding) bool { return f.F.Kind != "support" }) {
		return nil
	}
	for _, x := range d.inc {
		if rank(x) == 3 && float64(len(x.Inc.Services)) >= max(widespreadMin, widespreadPart*float64(len(d.known))) {
			return x
		}
	}
	return nil
}

// rank prefers incidents that people work on, then open ones, then those that can be reopened.
func rank(x *tracked) int {
	switch x.Inc.State {
	case incident.Declared, incident.Acknowledged, incident.Mitigated:
		return 3
	case incident.Suspected:
		return 2
	default:
		return 1
	}
}

// edge links a node to an incident through any member that is active or ended a short while ago.
func (x *tracked) edge(c *scene, n node) string {
	if x.Inc.State == incident.Merged || x.ByPerson && !x.Inc.State.Open() {
		return ""
	}
	if !x.Inc.State.Open() && c.now.Sub(x.Closed) > afterlife {
		return ""
	}
	for i := range x.Members {
		m := &x.Members[i]
		if !m.live(c.now) {
			continue
		}
		if why := c.edge(n, c.d.nodeOf(&m.Finding)); why != "" {
			return why
		}
	}
	if n.kind == "support" && n.area == unclassified && x.Inc.State != incident.Suspected && x.Inc.State.Open() && len(x.Inc.Services) > 0 {
		return "tickets that name no area, while this is on"
	}
	return ""
}

// troubledPaths are the paths of open incidents with the minute in which each began.
func (d *Detector) troubledPaths() map[signal.Path]int64 {
	out := map[signal.Path]int64{}
	for _, x := range d.inc {
		if !x.Inc.State.Open() {
			continue
		}
		for _, p := range x.Paths {
			if m := minuteOf(bucketOf(p.From)); out[p.Key.Path] == 0 || m < out[p.Key.Path] {
				out[p.Key.Path] = m
			}
		}
	}
	return out
}
