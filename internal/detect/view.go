package detect

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect/localise"
	"github.com/tocsin-project/tocsin/internal/detect/suspect"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	// scanPaths bounds what one scan looks at: the paths with most failures.
	scanPaths = 5
	maxScope  = 5
	// maxTables bounds the findings of an incident whose evidence over time is in its log.
	maxTables = 20
	// quietLevel is what counts as showing nothing, for a gauge beside one that runs out.
	quietLevel = 0.5
	// calmFactor: a gauge without a limit is calm while it is not this many times what it was.
	calmFactor = 2
)

// view is what is known of an incident now.
func (d *Detector) view(x *tracked, now time.Time) incident.View {
	v := incident.View{
		Areas: []string{}, Services: []string{}, Resources: []string{}, Paths: []incident.PathImpact{},
		Scope: x.Scope, Suspects: x.Suspects, Findings: make([]incident.Attached, 0, len(x.Members)),
		Impact: x.impact(), Tickets: x.tickets(), Accounts: slices.Clone(x.Accounts),
	}
	if v.Scope == nil {
		v.Scope = []incident.ScopeSlice{}
	}
	if v.Suspects == nil {
		v.Suspects = []incident.Suspect{}
	}
	put := func(list *[]string, s string) {
		if s != "" && !slices.Contains(*list, s) {
			*list = append(*list, s)
		}
	}
	for i := range x.Members {
		m := &x.Members[i]
		put(&v.Services, m.Finding.Key.Service)
		put(&v.Resources, m.Finding.Key.Resource)
		put(&v.Areas, d.nodeOf(&m.Finding).area)
		for j := range m.Leads {
			put(&v.Services, m.Leads[j].Key.Service)
		}
		v.Findings = append(v.Findings, m.Attached)
		if len(v.Findings) > maxTables {
			v.Findings[i].Finding.Evidence = nil
		}
		if f := d.finding(m.Finding.Key); f != nil && f.Flapping {
			v.Flapping = true
		}
	}
	slices.Sort(v.Services)
	slices.Sort(v.Resources)
	slices.Sort(v.Areas)
	for i := range x.Paths {
		p := &x.Paths[i]
		v.Paths = append(v.Paths, incident.PathImpact{
			Path: p.Key.Path, Attributes: p.Key.Attributes, Requests: p.Requests, Failures: p.Failures,
			PeakShare: p.PeakShare, PeakAt: p.PeakAt, BaseShare: p.Base,
		})
	}
	slices.SortStableFunc(v.Paths, func(a, b incident.PathImpact) int { return cmp.Compare(b.PeakShare, a.PeakShare) })
	v.Title = d.title(x, now)
	v.Labels = d.incidentLabels(x, &v)
	return v
}

// incidentLabels are what routes match on.
func (d *Detector) incidentLabels(x *tracked, v *incident.View) map[string]string {
	labels := map[string]string{}
	for k, val := range d.cfg.ExternalLabels {
		labels[k] = val
	}
	for _, r := range d.rules {
		if r.Alert == x.Declared {
			for k, val := range r.labelsOf() {
				labels[k] = val
			}
			labels["alertname"] = r.Alert
		}
	}
	if labels["alertname"] == "" && len(x.Members) > 0 {
		labels["alertname"] = x.Members[0].Finding.Rule
	}
	owner := ""
	if len(v.Services) > 0 {
		s := d.mainService(x, v.Services)
		labels["service"] = s
		labels["area"] = d.cat.AreaOf(s)
		owner = d.cat.OwnerOf(s)
	} else if len(v.Areas) > 0 {
		labels["area"] = v.Areas[0]
		owner = d.cat.OwnerOf(v.Areas[0])
	}
	if len(v.Resources) > 0 {
		labels["resource"] = d.mainResource(x)
		owner = cmp.Or(d.cat.OwnerOf(labels["resource"]), owner)
	}
	if owner != "" && labels["team"] == "" {
		labels["team"] = owner
	}
	return labels
}

// mainService is the one with most failed requests.
func (d *Detector) mainService(x *tracked, services []string) string {
	failures := map[string]uint64{}
	for i := range x.Paths {
		failures[x.Paths[i].Key.Service] += x.Paths[i].Failures
	}
	best := services[0]
	for _, s := range services {
		if failures[s] > failures[best] {
			best = s
		}
	}
	return best
}

// mainResource is the one in trouble on which most depends.
func (d *Detector) mainResource(x *tracked) string {
	best, most := "", -1
	for i := range x.Members {
		r := x.Members[i].Finding.Key.Resource
		if r == "" {
			continue
		}
		if n := len(d.cat.DependentServices(r, 2)); n > most {
			best, most = r, n
		}
	}
	return best
}

// title says what is going on in a responder's words.
func (d *Detector) title(x *tracked, now time.Time) string {
	services := map[string]bool{}
	var worst, tickets, other *member
	var full, near *finding
	for i := range x.Members {
		m := &x.Members[i]
		switch {
		case onPath(&m.Finding):
			services[m.Finding.Key.Service] = true
			if worst == nil || m.Active && !worst.Active || m.Active == worst.Active && m.Finding.Value > worst.Finding.Value {
				worst = m
			}
		case m.Finding.Kind == "support" && !isPastLimit(&m.Finding.Key):
			if tickets == nil || m.Finding.Value > tickets.Finding.Value {
				tickets = m
			}
		case m.Finding.Kind == "saturation" && m.Active && !isPastLimit(&m.Finding.Key):
			f := d.finding(m.Finding.Key)
			switch {
			case f == nil:
			case f.Full:
				if full == nil {
					full = f
				}
			case near == nil || !f.Exhausted.IsZero() && (near.Exhausted.IsZero() || f.Exhausted.Before(near.Exhausted)):
				near = f
			}
		case (m.Finding.Kind != "saturation" || isPastLimit(&m.Finding.Key)) && (other == nil || m.Active && (!other.Active || isPastLimit(&m.Finding.Key))):
			other = m
		}
	}
	switch {
	case full != nil:
		x.Cause = fmt.Sprintf("%s out of %s", full.key.Resource, metricWords(full.key.Metric))
	case near != nil && x.Cause == "":
		x.Cause = fmt.Sprintf("%s near its limit of %s", near.key.Resource, metricWords(near.key.Metric))
	}
	cause := x.Cause
	switch n := len(services); {
	case other != nil && isPastLimit(&other.Finding.Key) && other.Finding.State == incident.Firing:
		return titleOfOther(&other.Finding)
	case n > 1 && !worst.Active:
		return fmt.Sprintf("%d services failed: %s", n, cmp.Or(cause, list(sortedKeys(services), 3)))
	case n > 1 && cause != "":
		return fmt.Sprintf("%d services failing: %s", n, cause)
	case n > 1 && x.Wide:
		return fmt.Sprintf("widespread: %d services failing at once", n)
	case n > 1:
		return fmt.Sprintf("%d services failing: %s", n, list(sortedKeys(services), 3))
	case n == 1:
		return x.titleOfPath(worst, cause)
	case full != nil:
		return cause
	case near != nil && !near.Exhausted.IsZero():
		return fmt.Sprintf("%s: %s %s in about %s", near.key.Resource, metricWords(near.key.Metric), runOut(near.key.Metric), shortDuration(near.Exhausted.Sub(now)))
	case near != nil:
		return fmt.Sprintf("%s: %s at %s of its limit", near.key.Resource, metricWords(near.key.Metric), percent(max(near.F.Value, x.peak(near))))
	case other != nil && other.Finding.State == incident.Firing:
		return titleOfOther(&other.Finding)
	case tickets != nil:
		return fmt.Sprintf("customers report trouble with %s (%.0f accounts)", tickets.Finding.Key.Area, tickets.Finding.Value)
	case x.Inc.Title != "":
		return x.Inc.Title
	}
	return "something is abnormal"
}

// peak is the worst level that a resource's finding has come to in this incident.
func (x *tracked) peak(f *finding) float64 {
	if i := x.index(f.key); i >= 0 {
		return x.Members[i].Peak
	}
	return 0
}

// titleOfPath speaks of how it is while it lasts, and of the worst once it is over.
func (x *tracked) titleOfPath(m *member, cause string) string {
	f := &m.Finding
	what, share := "failing", percent(f.Value)
	if f.Kind == "latency" {
		what = "slow"
	}
	if !m.Active {
		what = map[string]string{"failing": "failed", "slow": "were slow"}[what]
		share = "up to " + percent(max(f.Value, m.Peak))
	}
	t := fmt.Sprintf("%s: %s of %s %ss %s", f.Key.Service, share, f.Key.Operation, f.Key.Access, what)
	if f.Key.Attributes != "" {
		t += " where " + f.Key.Attributes.String()
	}
	if cause != "" {
		t += ", " + cause
	}
	return t
}

// localise finds the slices that explain the excess failures of the worst paths.
func (d *Detector) localise(x *tracked, t int64) {
	worst := make([]*pathTrack, 0, len(x.Paths))
	for i := range x.Paths {
		if p := &x.Paths[i]; p.Failures > 0 {
			worst = append(worst, p)
		}
	}
	slices.SortStableFunc(worst, func(a, b *pathTrack) int { return cmp.Compare(b.Failures, a.Failures) })
	var leaves []localise.Leaf
	seen := map[signal.Path]bool{}
	for _, p := range worst {
		s := d.paths.by[signal.Key{Path: p.Key.Path}]
		if s == nil || seen[p.Key.Path] || len(seen) >= scanPaths {
			continue
		}
		seen[p.Key.Path] = true
		leaves = append(leaves, s.scan(minuteOf(bucketOf(p.From)), minuteOf(t))...)
	}
	if len(leaves) == 0 {
		return
	}
	var scope []incident.ScopeSlice
	for _, s := range localise.Scan(leaves, maxScope) {
		scope = append(scope, incident.ScopeSlice{Attributes: s.Attributes, Share: s.Share})
	}
	if len(scope) > 0 {
		x.Scope = scope
	}
}

// suspects ranks what may have caused the incident.
func (d *Detector) suspects(x *tracked, t int64) []incident.Suspect {
	now := timeOf(t)
	in := suspect.Input{Now: now, Slices: x.Scope, Active: map[string]bool{}, Graph: d.cat, Served: x.Served}
	for s, last := range d.known {
		if t-last <= usualDelay {
			in.Active[s] = true
		}
	}
	failing := map[string]*suspect.Service{}
	resources := map[string]*suspect.Resource{}
	see := func(service string, f *incident.Finding, failures uint64) {
		s := failing[service]
		if s == nil {
			s = &suspect.Service{Name: service, Onset: f.ActiveAt}
			failing[s.Name] = s
		}
		if f.ActiveAt.Before(s.Onset) {
			s.Onset = f.ActiveAt
		}
		s.Failures += failures
	}
	for i := range x.Members {
		f := &x.Members[i].Finding
		for _, l := range x.Members[i].Leads {
			see(l.Key.Service, f, 0)
		}
		switch {
		case onPath(f):
			see(f.Key.Service, f, f.Failures)
		case f.Kind == "saturation" && f.Key.Resource != "":
			d.suspectResource(resources, &x.Members[i])
		}
	}
	for _, k := range sortedKeys(failing) {
		in.Failing = append(in.Failing, *failing[k])
	}
	for _, k := range sortedKeys(resources) {
		resources[k].Low = d.lowGauges(k, bucketOf(resources[k].FiredAt), t)
		in.Resources = append(in.Resources, *resources[k])
	}
	for _, c := range d.changes {
		in.Changes = append(in.Changes, suspect.Change{
			ID: c.ID, Target: c.Target, Title: c.Title, URL: c.URL, Kind: c.Kind, Dose: c.Dose,
			Started: c.Started, Ended: c.Ended, Aborted: c.Aborted,
		})
	}
	return suspect.Rank(&in)
}

// suspectResource folds the metrics of one resource into one suspect: the level of the fullest, the trend of the
// earliest that has one.
func (d *Detector) suspectResource(resources map[string]*suspect.Resource, m *member) {
	f := &m.Finding
	r := resources[f.Key.Resource]
	if r == nil {
		r = &suspect.Resource{Name: f.Key.Resource, FiredAt: f.FiredAt}
		resources[r.Name] = r
	}
	if f.FiredAt.Before(r.FiredAt) {
		r.FiredAt = f.FiredAt
	}
	if m.Trend.IsZero() {
		// The bend is looked for in what led up to the finding, once: later a full gauge is flat, and would hide it.
		if g := d.byGauge[gaugeKey{f.Key.Resource, f.Key.Metric, f.Key.Attributes}]; g != nil {
			if at, ok := g.bend(minuteOf(bucketOf(f.FiredAt))); ok {
				m.Trend = time.Unix(at*60, 0).UTC()
			}
		}
	}
	if !m.Trend.IsZero() && (r.Trend.IsZero() || m.Trend.Before(r.Trend)) {
		r.Trend = m.Trend
	}
	r.Full = r.Full || m.Full
	if live := d.finding(f.Key); live != nil && !live.Exhausted.IsZero() && (r.ExhaustedAt.IsZero() || live.Exhausted.Before(r.ExhaustedAt)) {
		r.ExhaustedAt = live.Exhausted
	}
	if level := max(m.Peak, f.Value); level > r.Level {
		r.Level, r.Metric = level, metricWords(f.Key.Metric)
	}
}

// lowGauges are those of the resource that have shown nothing since it was in trouble, and those of its siblings that it does not have itself, such as
// the lag of its replicas.
func (d *Detector) lowGauges(resource string, from, t int64) (out []suspect.Low) {
	own := map[string]bool{}
	for _, g := range d.gauges {
		if g.Key.Resource == resource {
			own[g.Key.Metric] = true
		}
	}
	for _, g := range d.gauges {
		if g.Key.Resource != resource && (parent(g.Key.Resource) != parent(resource) || own[g.Key.Metric]) || g.missing(t) || len(out) == 3 {
			continue
		}
		own[g.Key.Metric] = g.Key.Resource != resource
		if g.calm(from, t) {
			level, _, ok := g.level(t)
			if !ok {
				level = -1
			}
			out = append(out, suspect.Low{Resource: g.Key.Resource, Metric: metricWords(g.Key.Metric), Level: level})
		}
	}
	return out
}

// parent is a resource's name without its last part: mysql/collab of mysql/collab/primary.
func parent(name string) string {
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '/' {
			return name[:i]
		}
	}
	return name
}
