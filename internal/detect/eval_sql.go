package detect

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// answerHolds is how many of a rule's intervals an answer holds.
const answerHolds = 3

// answers is what one sql rule has been told: the newest answer, and whether it has been judged.
type answers struct {
	question Question // of any moment
	every    int64    // steps between two questions
	newest   *Answer
	fresh    bool // the newest answer has not been judged
}

func newAnswers(c *compiled) recall {
	a := &answers{every: everyOf(c.group.Interval.Std())}
	a.question, _ = QuestionAt(c.group, &c.Rule, timeOf(0))
	return a
}

// due tells when to judge: once for each answer, and where no answer comes any more, to say so.
func (as *answers) due(t int64) bool { return as.fresh || t%as.every == 0 && as.stale(t) }

// stale tells that nothing has been heard for so long that nothing is known any more. It is counted in event time, so that a replay
// comes to the same.
func (as *answers) stale(t int64) bool {
	return as.newest == nil || t-bucketOf(as.newest.At) > as.holds()
}

// holds is for how many steps an answer counts.
func (as *answers) holds() int64 { return answerHolds*as.every + buckets(as.question.Timeout) }

// unanswered tells that nothing is known, which no rule may take for good news.
func (as *answers) unanswered(t int64) bool {
	return as.newest == nil || as.newest.Error != "" || as.stale(t)
}

// why says what is missing, for findings that become unknown.
func (as *answers) why(t int64, misses signal.Stream) string {
	switch {
	case misses != "":
		return "a part of the " + string(misses) + " is missing, and its query finds too little or nothing without it"
	case as.newest == nil:
		return "its query has not been answered yet"
	case as.newest.Error != "":
		return "its query failed: " + as.newest.Error
	case !as.stale(t):
		return "its query gives no value for it any more"
	}
	return "its query has not been answered since " + as.newest.At.Format("15:04:05") + " UTC"
}

// hear takes the answers that a tick carries. Each counts from the tick's first step on; what was asked by another text of the rule,
// or is older than what is known, does not count.
func (d *Detector) hear(all []Answer) {
	for i := range all {
		r := d.ruleOf(all[i].Rule)
		if r == nil {
			continue
		}
		as, ok := r.recall.(*answers)
		if ok && as.question.Of == all[i].Of && (as.newest == nil || all[i].At.After(as.newest.At)) {
			as.newest, as.fresh = &all[i], true
		}
	}
}

// questions are what rules ask about the data that has been judged, of each rule the newest one without an answer.
func (d *Detector) questions() (out []Question) {
	if d.at == 0 {
		return nil
	}
	for _, r := range d.rules {
		as, ok := r.recall.(*answers)
		if !ok {
			continue
		}
		if q, ok := QuestionAt(r.group, &r.Rule, timeOf(d.at)); ok && (as.newest == nil || as.newest.At.Before(q.At)) {
			q.Partial = d.anyPartial()
			out = append(out, q)
		}
	}
	return out
}

// Unanswered names the sql rules that have heard nothing for longer than an answer holds, neither since a moment nor before, unless
// other rules ask the same: whoever replays ticks that were judged by those has no answers to what they did not ask.
func (d *Detector) Unanswered(since time.Time, others *rule.Set) (alerts []string) {
	asked := map[string]string{} // of rules, what they ask
	for gi := range others.Groups {
		g := &others.Groups[gi]
		for ri := range g.Rules {
			if q, ok := QuestionAt(g, &g.Rules[ri], since); ok {
				asked[q.Rule] = q.Of
			}
		}
	}
	for _, r := range d.rules {
		as, ok := r.recall.(*answers)
		if !ok || asked[r.Alert] == as.question.Of {
			continue
		}
		last := bucketOf(since)
		if as.newest != nil {
			last = max(last, bucketOf(as.newest.At))
		}
		if d.at-last > as.holds() {
			alerts = append(alerts, r.Alert)
		}
	}
	return alerts
}

// evalSQL judges the rows of the newest answer.
func evalSQL(d *Detector, r *compiled, t int64, yield func(verdict)) {
	p, as := r.Params.(*rule.SQL), r.recall.(*answers)
	as.fresh = false
	failed := incident.FindingKey{Rule: r.Alert} // that its query fails is what the rule finds, where no_data says so
	if as.unanswered(t) {
		if r.NoData == rule.Alert && as.newest != nil {
			yield(verdict{key: failed, abnormal: true, explain: func() string { return r.Alert + ": " + as.why(t, "") }})
		}
		return // what was found before is unknown
	}
	misses := d.missesFor(as)
	there := make(map[incident.FindingKey]bool, len(as.newest.Rows))
	for i := range as.newest.Rows {
		row := &as.newest.Rows[i]
		key, value := row.key(r.Alert), float64(row.Value)
		there[key] = true
		abnormal := p.Abnormal(value)
		if math.IsNaN(value) || !abnormal && r.active[key] == nil || misses != "" && p.TooLow(value) {
			continue // what misses data is low for that alone
		}
		yield(as.verdict(r, key, value, abnormal, misses))
	}
	for _, key := range sortedFindings(r.active) {
		switch {
		case there[key]:
		case !p.Compares(), key == failed && r.NoData == rule.Alert:
			yield(verdict{key: key, partial: misses != "", explain: func() string { return "its query no longer returns it" }})
		case r.NoData == rule.Zero && !(misses != "" && p.TooLow(0)):
			yield(as.verdict(r, key, 0, p.Abnormal(0), misses))
		}
	}
}

func (as *answers) verdict(r *compiled, key incident.FindingKey, value float64, abnormal bool, misses signal.Stream) verdict {
	a := as.newest
	finite := max(-math.MaxFloat64, min(value, math.MaxFloat64)) // a division by zero; JSON has no other number for it
	return verdict{key: key, abnormal: abnormal, value: finite, partial: misses != "", explain: func() string {
		text := r.Alert
		if s := rowSubject(&key); s != "" {
			text = s + ": " + text
		}
		p := r.Params.(*rule.SQL)
		text += " is " + number(value, "")
		switch {
		case p.Above != nil && value > *p.Above:
			text += ", above " + number(*p.Above, "")
		case p.Below != nil && value < *p.Below:
			text += ", below " + number(*p.Below, "")
		}
		return text + fmt.Sprintf("; by its query from %s to %s UTC", a.From.UTC().Format("15:04:05"), a.To.UTC().Format("15:04:05"))
	}}
}

// missesFor is a stream that misses data, or did when the newest answer was asked for, if one does: what a query reads is not known here,
// so a good answer is none while any is, and neither is one that finds too little.
func (d *Detector) missesFor(as *answers) signal.Stream {
	if as.newest != nil && as.newest.Partial != "" {
		return as.newest.Partial
	}
	return d.anyPartial()
}

// anyPartial is a stream that misses data as of the newest tick, if one does.
func (d *Detector) anyPartial() signal.Stream {
	if len(d.tick.Partial) > 0 {
		return d.tick.Partial[0]
	}
	return ""
}

type answersState struct {
	Newest *Answer `json:",omitempty"`
	Fresh  bool    `json:",omitempty"`
}

func (as *answers) save() ([]byte, error) { return json.Marshal(answersState{as.newest, as.fresh}) }

// load forgets what was asked otherwise.
func (as *answers) load(data []byte) error {
	var s answersState
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	if s.Newest != nil && s.Newest.Of == as.question.Of {
		as.newest, as.fresh = s.Newest, s.Fresh
	}
	return nil
}
