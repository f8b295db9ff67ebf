package detect

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	// flapRuns and flapToggles: ten changes in twenty evaluations are flapping, which ends with as many clean runs.
	flapRuns    = 20
	flapToggles = 10
)

// verdict is what an evaluator found for one key at one step.
type verdict struct {
	key                incident.FindingKey
	abnormal           bool
	value              float64
	requests, failures uint64
	accounts           func() signal.Sketch // nil where there are none
	explain            func() string
	exhausted          time.Time // saturation with a forecast
	limit              float64
	full               bool // saturation: nothing is left
	labels             map[string]string
	subjects           int // services or resources that it stands for, past a limit
	stream             signal.Stream
	partial            bool                          // something is missing for it, whether or not the tick says so
	table              func() []incident.EvidenceRow // what explain says in numbers; nil where there are none
	leads              []leading                     // the paths that a finding about an area is about
}

// finding is a finding with what its rule must remember of it.
type finding struct {
	F         incident.Finding
	Last      time.Time           // newest abnormal evaluation
	History   uint32              // raw verdicts, the newest in the lowest bit
	Flapping  bool                `json:",omitempty"`
	Incident  string              `json:",omitempty"` // where it is attached while firing
	Exhausted time.Time           `json:",omitzero"`  // forecast
	Full      bool                `json:",omitempty"`
	Level     [2]float64          // value and limit of a resource
	Labels    map[string]string   `json:",omitempty"` // that the evaluator gave, beside the rule's
	Subjects  int                 `json:",omitempty"` // past a limit
	Leads     []leading           `json:",omitempty"` // the paths that a finding about an area is about
	key       incident.FindingKey // F.Key with its rule
	rule      *compiled
}

// evaluate runs each rule that is due.
func (d *Detector) evaluate(t int64) {
	for _, r := range d.rules {
		if r.due(t) {
			d.evaluateRule(r, t)
		}
	}
}

// due tells whether a rule is judged at a step. One that asks a question is judged when it is answered.
func (r *compiled) due(t int64) bool {
	if as, ok := r.recall.(*answers); ok {
		return as.due(t)
	}
	return t%r.interval == 0
}

func (d *Detector) evaluateRule(r *compiled, t int64) {
	var verdicts []verdict
	r.eval(d, r, t-r.offset, func(v verdict) { verdicts = append(verdicts, v) })
	if len(verdicts) == 0 && len(r.active) == 0 {
		return
	}
	judged := map[incident.FindingKey]bool{}
	for _, v := range r.within(d, verdicts, t) {
		judged[v.key] = true
		d.judge(r, v, t)
	}
	if len(judged) == len(r.active) {
		return
	}
	for _, k := range sortedFindings(r.active) {
		if !judged[k] {
			d.missing(r, r.active[k], t)
		}
	}
}

func sortedFindings(m map[incident.FindingKey]*finding) []incident.FindingKey {
	keys := make([]incident.FindingKey, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, incident.FindingKey.Compare)
	return keys
}

// judge moves one finding on by a verdict.
func (d *Detector) judge(r *compiled, v verdict, t int64) {
	now := timeOf(t)
	f := r.active[v.key]
	if f == nil {
		if !v.abnormal {
			return
		}
		f = &finding{key: v.key, rule: r}
		f.F = incident.Finding{Key: v.key, Rule: r.Alert, Kind: r.Kind, ActiveAt: now}
		r.active[v.key] = f
	}
	partial := v.partial || d.partial(v.stream)
	f.History = f.History<<1 | bit(v.abnormal)
	f.damp()
	abnormal := v.abnormal || f.Flapping
	if f.F.State == incident.Inactive {
		if !abnormal {
			f.forget()
			return
		}
		f.F.ActiveAt, f.F.FiredAt, f.F.EndedAt = now, time.Time{}, time.Time{}
	}
	if v.abnormal {
		f.Last = now
	}
	f.F.Partial = partial
	f.F.Value, f.F.Requests, f.F.Failures = v.value, v.requests, v.failures
	if v.labels != nil {
		f.Labels = v.labels
	}
	if len(v.leads) > 0 {
		f.Leads = v.leads
	}
	f.Exhausted, f.Full, f.Level, f.Subjects = v.exhausted, v.full, [2]float64{v.value, v.limit}, v.subjects
	from := f.F.State
	switch {
	case abnormal && from == incident.Firing:
		if v.abnormal {
			f.say(&v)
		}
		return
	case abnormal && from == incident.Unknown:
		f.F.State = incident.Firing
	case abnormal && now.Sub(f.F.ActiveAt) >= r.For.Std():
		f.F.State, f.F.FiredAt = incident.Firing, now
	case abnormal:
		f.F.State = incident.Pending
	case from == incident.Pending:
		f.F.State = incident.Inactive
	case partial:
		// Nothing bad was seen, but not all was seen: that is no recovery.
		f.F.State = incident.Unknown
	case now.Sub(f.Last) >= r.KeepFiringFor.Std():
		f.F.State, f.F.EndedAt = incident.Inactive, now
	default:
		f.F.State = incident.Firing
	}
	if f.F.State == from {
		return
	}
	d.transition(r, f, from, v, now)
}

func bit(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// damp marks a finding that comes and goes, and holds it until it has been clean for as long as it is watched.
func (f *finding) damp() {
	const mask = 1<<flapRuns - 1
	h := f.History & mask
	toggles := bits.OnesCount32((h ^ h>>1) & (mask >> 1))
	switch {
	case h == 0:
		f.Flapping = false
	case toggles >= flapToggles && (f.F.State == incident.Firing || f.F.State == incident.Unknown || f.rule.For == 0):
		f.Flapping = true
	}
}

// forget drops a finding that ended, once its past can no longer make it flapping.
func (f *finding) forget() {
	if f.History&(1<<flapRuns-1) == 0 {
		delete(f.rule.active, f.key)
	}
}

// missing is a finding whose key has no data.
func (d *Detector) missing(r *compiled, f *finding, t int64) {
	now, from := timeOf(t), f.F.State
	if from == incident.Inactive {
		f.History <<= 1
		f.forget()
		return
	}
	noData := r.NoData
	as, asks := r.recall.(*answers)
	var misses signal.Stream
	if asks {
		switch misses = d.missesFor(as); {
		case as.unanswered(t):
			if misses = ""; noData != rule.Alert {
				noData = rule.Keep // that a query fails is not what "no data" says of its rows
			}
		case misses != "":
			noData = rule.Keep // nor is that it did not see all of them
		}
	}
	switch noData {
	case rule.Alert:
		f.Last = now
		if from != incident.Firing && now.Sub(f.F.ActiveAt) >= r.For.Std() {
			f.F.State = incident.Firing
			f.F.FiredAt = cmpTime(f.F.FiredAt, now)
		}
	case rule.OK, rule.Zero:
		f.History <<= 1
		if from == incident.Pending || now.Sub(f.Last) >= r.KeepFiringFor.Std() {
			f.F.State = incident.Inactive
			if from != incident.Pending {
				f.F.EndedAt = now
			}
		}
	default:
		switch {
		case from == incident.Firing:
			f.F.State = incident.Unknown
		case from == incident.Pending && now.Sub(f.Last) > rule.MaxWindow:
			f.F.State = incident.Inactive
		}
	}
	if f.F.State != from {
		d.transition(r, f, from, verdict{key: f.key, value: f.F.Value, requests: f.F.Requests, failures: f.F.Failures,
			explain: func() string {
				if asks {
					return r.Alert + ": " + as.why(t, misses)
				}
				return "no data since " + now.Add(-signal.BucketSize*missingSpacings).Format("15:04:05") + " UTC"
			}}, now)
	}
}

func cmpTime(a, b time.Time) time.Time {
	if a.IsZero() {
		return b
	}
	return a
}

// transition renders the finding, logs the change and tells correlation about it.
func (d *Detector) transition(r *compiled, f *finding, from incident.FindingState, v verdict, now time.Time) {
	d.describe(r, f, v)
	if v.accounts != nil {
		f.F.Accounts = v.accounts()
	}
	d.out.Transitions = append(d.out.Transitions, incident.Transition{At: now, From: from, Finding: f.F})
	switch f.F.State {
	case incident.Firing:
		if from != incident.Unknown {
			d.fired = append(d.fired, f)
		}
	case incident.Inactive:
		f.forget()
	case incident.Pending, incident.Unknown:
	}
	if f.Incident != "" {
		if x := d.incident(f.Incident); x != nil {
			x.update(f, now)
		}
	}
}

// describe renders labels, annotations and the explanation.
func (d *Detector) describe(r *compiled, f *finding, v verdict) {
	k := &f.F.Key
	labels := map[string]string{}
	set := func(n, v string) {
		if v != "" {
			labels[n] = v
		}
	}
	for n, v := range k.Attributes.All() {
		set(n, v)
	}
	for n, v := range r.labels {
		set(n, v)
	}
	set("service", k.Service)
	set("operation", k.Operation)
	set("access", k.Access)
	set("resource", k.Resource)
	set("metric", k.Metric)
	set("area", k.Area)
	if k.Service != "" {
		set("area", d.cat.AreaOf(k.Service))
	}
	set("team", d.cat.OwnerOf(cmp.Or(k.Service, k.Resource, k.Area)))
	data := rule.TemplateData{
		Labels: labels, ExternalLabels: d.cfg.ExternalLabels, Value: f.F.Value, ActiveAt: f.F.ActiveAt, Partial: f.F.Partial,
	}
	rendered := map[string]string{"alertname": r.Alert}
	for _, n := range rule.SortedKeys(r.Labels) {
		rendered[n] = render(r.Labels[n].Value, data)
	}
	for n, v := range rendered {
		set(n, v)
	}
	for n, v := range f.Labels {
		set(n, v)
	}
	f.F.Labels = labels
	f.F.Annotations = map[string]string{}
	for _, n := range rule.SortedKeys(r.Annotations) {
		f.F.Annotations[n] = render(r.Annotations[n].Value, data)
	}
	f.say(&v)
}

func (f *finding) say(v *verdict) {
	if v.explain != nil {
		f.F.Explain = v.explain()
	}
	if v.table != nil {
		f.F.Evidence = v.table()
	}
}

// render never loses a finding to a template: the mistake takes the text's place.
func render(text string, data rule.TemplateData) string {
	s, err := rule.Render(text, data)
	if err != nil {
		return text + " (" + err.Error() + ")"
	}
	return s
}
