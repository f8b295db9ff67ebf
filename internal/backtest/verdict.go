package backtest

import (
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// Verdict is what responders made of an incident.
type Verdict string

const (
	Real  Verdict = "real"
	Noise Verdict = "noise"
)

// verdictOf reads a person's command: whoever works on an incident takes it for real, whoever dismisses it for noise. The
// last word counts.
func verdictOf(c *incident.Command) Verdict {
	if c.By == "" {
		return ""
	}
	if c.Type == incident.CommandDismiss {
		return Noise
	}
	return Real
}

// verdictLabels makes labels of responders' verdicts, for what they were told of: real incidents are labels, the time that
// neither these nor undecided incidents cover is quiet. nil where nobody said anything.
func (j *journal) verdictLabels(from, to time.Time) *Labels {
	if len(j.verdicts) == 0 {
		return nil
	}
	l := &Labels{}
	var busy []interval
	for _, id := range j.order {
		in := j.last[id]
		if in.DeclaredAt.IsZero() || in.State == incident.Merged || j.verdicts[id] == Noise {
			continue
		}
		end := in.ResolvedAt
		if end.IsZero() {
			end = to
		}
		busy = append(busy, interval{in.StartedAt.Add(-head), end})
		if j.verdicts[id] == Real {
			x := Label{ID: id, Start: in.StartedAt, End: end}
			if len(in.Services) == 1 {
				x.Scope.Service = in.Services[0]
			}
			l.Incidents = append(l.Incidents, x)
		}
	}
	slices.SortFunc(busy, func(a, b interval) int { return a.from.Compare(b.from) })
	at := from
	for _, b := range busy {
		if b.from.After(at) {
			l.Quiet = append(l.Quiet, Span{at, minTime(b.from, to)})
		}
		at = maxTime(at, b.to)
	}
	if at.Before(to) {
		l.Quiet = append(l.Quiet, Span{at, to})
	}
	return l
}
