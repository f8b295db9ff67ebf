package backtest

import (
	"cmp"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// RuleScore is what one rule did over a recording. What needs labels is null without them.
type RuleScore struct {
	Rule   string `json:"rule"`
	Kind   string `json:"kind"`
	Shadow bool   `json:"shadow"` // it only records what it would have done
	Fired  int    `json:"fired"`  // findings that began to fire
	// Episodes are stretches of time in which any finding of it fired.
	Episodes  int      `json:"episodes"`
	True      int      `json:"true_episodes"`  // overlap a label
	False     int      `json:"false_episodes"` // began in a quiet span and overlap no label
	Precision *float64 `json:"precision"`      // true of true and false
	Detected  int      `json:"detected"`       // labels during which it fired
	Recall    *float64 `json:"recall"`
	Delay     *float64 `json:"delay_seconds"` // median from a label's start to its first firing; negative is before
	// Pages are those of incidents that a finding of it belonged to; several rules may share one.
	Pages          int      `json:"pages"`
	FalsePages     int      `json:"false_pages"`
	FalsePagesWeek *float64 `json:"false_pages_per_week"`

	delays     []float64
	labels     int
	quietHours float64
}

// interval is a stretch of time, its end open.
type interval struct{ from, to time.Time }

// episodesOf unites the stretches in which any finding of each rule fired.
func episodesOf(findings []incident.Transition, end time.Time) map[string][]interval {
	type key struct {
		rule string
		of   incident.FindingKey
	}
	since := map[key]time.Time{}
	all := map[string][]interval{}
	for i := range findings {
		f := &findings[i].Finding
		k := key{f.Rule, f.Key}
		began, firing := since[k]
		switch {
		case f.State == incident.Firing && !firing:
			since[k] = findings[i].At
		case f.State == incident.Inactive && firing:
			all[f.Rule] = append(all[f.Rule], interval{began, findings[i].At})
			delete(since, k)
		}
	}
	for k, began := range since {
		all[k.rule] = append(all[k.rule], interval{began, end})
	}
	for rule, list := range all {
		slices.SortFunc(list, func(a, b interval) int { return cmp.Or(a.from.Compare(b.from), a.to.Compare(b.to)) })
		united := list[:1]
		for _, x := range list[1:] {
			if last := &united[len(united)-1]; !x.from.After(last.to) {
				last.to = maxTime(last.to, x.to)
			} else {
				united = append(united, x)
			}
		}
		all[rule] = united
	}
	return all
}

func maxTime(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// scoreRules judges each rule that fired, by name.
func (j *journal) scoreRules(l *Labels, end time.Time) []RuleScore {
	by := map[string]*RuleScore{}
	for i := range j.transitions {
		f := &j.transitions[i].Finding
		r := by[f.Rule]
		if r == nil {
			r = &RuleScore{Rule: f.Rule, Kind: f.Kind, Shadow: f.Labels["shadow"] == "true"}
			by[f.Rule] = r
		}
		if f.State == incident.Firing && j.transitions[i].From != incident.Unknown {
			r.Fired++
		}
	}
	for rule, list := range episodesOf(j.transitions, end) {
		by[rule].judge(list, l, end)
	}
	j.addPages(by, l, end)
	out := []RuleScore{}
	for _, r := range by {
		if r.Fired > 0 {
			r.finish(l != nil)
			out = append(out, *r)
		}
	}
	slices.SortFunc(out, func(a, b RuleScore) int { return cmp.Compare(a.Rule, b.Rule) })
	return out
}

func (r *RuleScore) judge(list []interval, l *Labels, end time.Time) {
	r.Episodes = len(list)
	if l == nil {
		return
	}
	answers := make([]bool, len(list))
	r.labels = len(l.Incidents)
	for _, label := range l.Incidents {
		first := -1
		for i, x := range list {
			if x.from.After(label.endOr(end)) || x.to.Before(label.Start) || x.from.Before(label.Start.Add(-head)) || inQuiet(l.Quiet, x.from) {
				continue
			}
			answers[i] = true
			if first < 0 {
				first = i
			}
		}
		if first >= 0 {
			r.Detected++
			r.delays = append(r.delays, list[first].from.Sub(label.Start).Seconds())
		}
	}
	for i, x := range list {
		switch {
		case answers[i]:
			r.True++
		case inQuiet(l.Quiet, x.from):
			r.False++
		}
	}
	r.quietHours = l.quietHours()
}

// addPages gives each rule the pages of the incidents that it had a part in.
func (j *journal) addPages(by map[string]*RuleScore, l *Labels, end time.Time) {
	for _, id := range j.order {
		in := j.last[id]
		pages := len(j.pages[id])
		if pages == 0 {
			continue
		}
		wrong := 0
		if l != nil && in.answersNone(l, end) && inQuiet(l.Quiet, in.DeclaredAt) {
			wrong = pages
		}
		seen := map[string]bool{in.Labels["alertname"]: true}
		for i := range in.Findings {
			seen[in.Findings[i].Finding.Rule] = true
		}
		for rule := range seen {
			if r := by[rule]; r != nil {
				r.Pages += pages
				r.FalsePages += wrong
			}
		}
	}
}

func (r *RuleScore) finish(labelled bool) {
	if !labelled {
		return
	}
	if n := r.True + r.False; n > 0 {
		r.Precision = ratio(r.True, n)
	}
	if r.labels > 0 {
		r.Recall = ratio(r.Detected, r.labels)
	}
	r.Delay = median(r.delays)
	r.FalsePagesWeek = perWeek(r.FalsePages, r.quietHours)
}

// add sums up what a rule did in two recordings.
func (r *RuleScore) add(o *RuleScore) {
	r.Fired += o.Fired
	r.Episodes += o.Episodes
	r.True += o.True
	r.False += o.False
	r.Detected += o.Detected
	r.Pages += o.Pages
	r.FalsePages += o.FalsePages
	r.delays = append(r.delays, o.delays...)
}
