package detect

import (
	"fmt"
	"math"
	"strings"

	"github.com/tocsin-project/tocsin/internal/detect/evidence"
	"github.com/tocsin-project/tocsin/internal/incident"
)

// sentence says what is wrong first, which is the incident's title if nothing else is found, and then what each source has to say.
func (x *fused) sentence() string {
	failing, slow := false, false
	var parts []string
	for _, l := range x.leads {
		slow, failing = slow || l.bank.rule.Kind == "latency", failing || l.bank.rule.Kind != "latency"
		parts = append(parts, fmt.Sprintf("%s %s: %s", l.series.key.Service, l.series.key.Operation, l.bank.say(l.series.key, l.key).Sentence))
	}
	desks := x.speaking()
	for _, e := range desks {
		parts = append(parts, e.key.Explain(wroteAbout(x.subject.Area)).Sentence)
	}
	var what []string
	for _, w := range []struct {
		is   bool
		text string
	}{{failing, "failing requests"}, {slow, "slow requests"}, {len(desks) > 0, "tickets"}} {
		if w.is {
			what = append(what, w.text)
		}
	}
	together, how := "", ""
	if len(what) > 1 {
		together = " together"
	}
	if len(desks) > 0 && len(x.leads) > 0 {
		how = "together, as requests and tickets are independent, "
	}
	return fmt.Sprintf("%s: %s%s are beyond chance; %sevidence %+.1f: %s", x.subject.name(), strings.Join(what, " and "), together, how, x.score, strings.Join(parts, "; "))
}

// speaking are the sources of tickets that have proven something.
func (x *fused) speaking() (out []*ear) {
	for _, e := range x.desks {
		if e.key.Gain(e.key.Minute()) >= leadGain || len(x.leads) == 0 {
			out = append(out, e)
		}
	}
	return out
}

func (x *fused) table() (out []incident.EvidenceRow) {
	for _, l := range x.leads {
		of := fmt.Sprintf("%s / %s / %s", l.series.key.Service, l.series.key.Operation, l.series.key.Access) + where(l.series.key)
		out = append(out, rowsOf(of, l.bank.say(l.series.key, l.key).Rows)...)
	}
	for _, e := range x.speaking() {
		out = append(out, rowsOf("tickets about "+x.subject.Area, e.key.Explain(wroteAbout(x.subject.Area)).Rows)...)
	}
	return out
}

// rowsOf turns the table of one source into rows of a finding.
func rowsOf(of string, rows []evidence.Row) (out []incident.EvidenceRow) {
	for _, r := range rows {
		out = append(out, incident.EvidenceRow{
			Of: of, From: r.From, To: r.To, N: r.N, F: r.F,
			Tolerated: math.Round(r.Tolerated*100) / 100, Evidence: math.Round(r.Evidence*10) / 10,
		})
	}
	return out
}
