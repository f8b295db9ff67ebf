package detect

import (
	"fmt"
	"math"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// evalSupport judges from how many accounts an area's tickets come. A burst from one account is one account.
func evalSupport(d *Detector, r *compiled, t int64, yield func(verdict)) {
	p := r.Params.(*rule.Support)
	if e, ok := r.recall.(*ears); ok {
		evalSupportEvidence(d, r, e, t, yield)
		return
	}
	now, window := timeOf(t), p.Window.Std()
	for _, name := range sortedKeys(d.desk) {
		a := d.desk[name]
		if len(a.Tickets) == 0 && len(r.active) == 0 || !rule.MatchesAny(p.Areas, name) {
			continue
		}
		cs := a.within(now.Add(-window), now)
		key := incident.FindingKey{Rule: r.Alert, Area: name}
		who, usual := distinct(cs), a.expected(window)
		need := p.TimesUsual * usual
		if a.UsualHours < 1 {
			// Nothing is known of what is usual yet: only a burst that would be one at most help desks counts.
			need = p.TimesUsual * float64(p.MinAccounts)
		}
		abnormal := who >= p.MinAccounts && float64(who) >= need
		if !abnormal && r.active[key] == nil {
			continue
		}
		if f := r.active[key]; abnormal && (f == nil || now.Sub(f.F.ActiveAt) < usualAfter) {
			a.QuietTo = now
		}
		yield(verdict{
			key: key, abnormal: abnormal, value: float64(who), requests: uint64(len(cs)), stream: signal.Tickets,
			accounts: func() signal.Sketch { return accounts(cs) },
			explain: func() string {
				return fmt.Sprintf("%d tickets about %s from %d accounts in %s, usually %s", len(cs), name, who, shortDuration(window), about(usual))
			},
		})
	}
}

// accounts is the sketch of the accounts that are known.
func accounts(cs []contact) (s signal.Sketch) {
	for _, c := range cs {
		if c.Known {
			s.Add(c.Who)
		}
	}
	return s
}

func about(v float64) string {
	if v < 0.05 {
		return "none"
	}
	return fmt.Sprintf("%.1f", math.Round(v*10)/10)
}
