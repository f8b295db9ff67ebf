package detect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// maxReceived bounds the alerts that one rule remembers; the ones seen longest ago go first.
const maxReceived = 20_000

// received are the alerts of other systems that one rule selects, by their fingerprint.
type received struct {
	alert  string // of the rule; keys are stored without
	params *rule.External
	by     map[string]*receivedAlert
}

type receivedAlert struct {
	Fingerprint string
	Key         incident.FindingKey
	Name        string
	Summary     string `json:",omitempty"`
	Severity    string `json:",omitempty"`
	Seen        int64  // the step that saw it last
	Until       int64  // when it ends by itself; 0 if it does not say
}

func newReceived(c *compiled) recall {
	return &received{alert: c.Alert, params: c.Params.(*rule.External), by: map[string]*receivedAlert{}}
}

// take remembers an alert that fires and forgets one that is resolved.
func (rs *received) take(r *compiled, a *signal.Alert, t int64) {
	if !rs.params.MatchesLabels(a.Labels.Get) {
		return
	}
	id := cmp.Or(a.Fingerprint, string(a.Labels))
	if a.Status == "resolved" {
		delete(rs.by, id)
		return
	}
	name := a.Labels.Get("alertname")
	x := &receivedAlert{
		Fingerprint: id, Name: name, Seen: t, Severity: rs.params.Severities[a.Labels.Get("severity")],
		Summary: cmp.Or(a.Annotations.Get("summary"), a.Annotations.Get("description")),
		Key: incident.FindingKey{
			Rule: r.Alert, Service: a.Labels.Get(rs.params.Service), Resource: a.Labels.Get(rs.params.Resource),
			Attributes: signal.AttributesOf(signal.Attr{Name: "alertname", Value: name}),
		},
	}
	if a.EndsAt.After(a.Time) {
		x.Until = bucketOf(a.EndsAt)
	}
	if len(rs.by) >= maxReceived && rs.by[id] == nil {
		rs.dropOldest()
	}
	rs.by[id] = x
}

func (rs *received) dropOldest() {
	oldest := ""
	for id, x := range rs.by {
		if o := rs.by[oldest]; o == nil || x.Seen < o.Seen || x.Seen == o.Seen && id < oldest {
			oldest = id
		}
	}
	delete(rs.by, oldest)
}

// evalExternal makes one finding of the alerts of one name about one service or resource. What is neither repeated nor resolved is
// over when the rule says so: a resolution that got lost must not keep an incident open for ever.
func evalExternal(_ *Detector, r *compiled, t int64, yield func(verdict)) {
	p, rs := r.Params.(*rule.External), r.recall.(*received)
	groups := map[incident.FindingKey][]*receivedAlert{}
	for id, x := range rs.by {
		if t-x.Seen > buckets(p.Expires.Std()) || x.Until > 0 && t > x.Until {
			delete(rs.by, id)
			continue
		}
		groups[x.Key] = append(groups[x.Key], x)
	}
	for k := range r.active {
		if groups[k] == nil {
			groups[k] = nil // over
		}
	}
	for _, k := range sortedGroups(groups) {
		as := groups[k]
		slices.SortFunc(as, func(a, b *receivedAlert) int { return cmp.Compare(a.Fingerprint, b.Fingerprint) })
		v := verdict{key: k, abnormal: len(as) > 0, value: float64(len(as)), stream: signal.Alerts}
		v.explain = func() string { return explainAlerts(k, as) }
		for _, a := range as {
			if severe(a.Severity) > severe(v.labels["severity"]) {
				v.labels = map[string]string{"severity": a.Severity}
			}
		}
		yield(v)
	}
}

func sortedGroups(m map[incident.FindingKey][]*receivedAlert) []incident.FindingKey {
	keys := make([]incident.FindingKey, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, incident.FindingKey.Compare)
	return keys
}

// severe orders severities; what is none comes first.
func severe(s string) int {
	return 1 + slices.Index([]string{"info", "warning", "page", "critical"}, s)
}

func explainAlerts(k incident.FindingKey, as []*receivedAlert) string {
	if len(as) == 0 {
		return k.Attributes.Get("alertname") + " is resolved or has not been repeated"
	}
	text := as[0].Name
	if s := cmp.Or(k.Service, k.Resource); s != "" {
		text = s + ": " + text
	}
	if as[0].Summary != "" {
		text += ", " + as[0].Summary
	}
	if n := len(as); n > 1 {
		text += fmt.Sprintf("; %s from elsewhere fire", plural(n, "alert"))
	}
	return text
}

// observeAlert tells all rules of an alert.
func (d *Detector) observeAlert(a *signal.Alert, t int64) {
	for _, r := range d.rules {
		if rs, ok := r.recall.(*received); ok {
			rs.take(r, a, t)
		}
	}
}

func (rs *received) save() ([]byte, error) {
	out := make([]*receivedAlert, 0, len(rs.by))
	for _, x := range rs.by {
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b *receivedAlert) int { return cmp.Compare(a.Fingerprint, b.Fingerprint) })
	return json.Marshal(out)
}

func (rs *received) load(data []byte) error {
	var from []*receivedAlert
	if err := json.Unmarshal(data, &from); err != nil {
		return err
	}
	for _, x := range from {
		x.Key.Rule = rs.alert
		rs.by[x.Fingerprint] = x
	}
	return nil
}
