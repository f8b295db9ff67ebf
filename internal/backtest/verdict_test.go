package backtest

import (
	"testing"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// Who works on an incident takes it for real, who dismisses it for noise; what nobody spoke of is neither.
func TestVerdicts(t *testing.T) {
	j := newJournal()
	for id, at := range map[string]string{"real": "08:00", "noise": "12:00", "nobody": "16:00"} {
		in := incident.Incident{ID: id, StartedAt: clock(at), DeclaredAt: clock(at), ResolvedAt: clock(at[:3] + "30"), Services: []string{"issues"}, State: incident.Resolved}
		j.last[id] = known{in}
	}
	j.order = []string{"real", "noise", "nobody"}
	if l := j.verdictLabels(clock("00:00"), clock("23:00")); l != nil {
		t.Errorf("without a word: %+v", l)
	}
	for _, c := range []incident.Command{
		{Incident: "real", Type: incident.CommandDismiss, By: "ada"}, {Incident: "real", Type: incident.CommandReopen, By: "ada"},
		{Incident: "noise", Type: incident.CommandAcknowledge, By: "bob"}, {Incident: "noise", Type: incident.CommandDismiss, By: "bob"},
		{Incident: "nobody", Type: incident.CommandDismiss},
	} {
		if v := verdictOf(&c); v != "" {
			j.verdicts[c.Incident] = v
		}
	}
	l := j.verdictLabels(clock("00:00"), clock("23:00"))
	if len(l.Incidents) != 1 || l.Incidents[0].ID != "real" || l.Incidents[0].Scope.Service != "issues" {
		t.Errorf("labels %+v", l.Incidents)
	}
	if !inQuiet(l.Quiet, clock("12:10")) || inQuiet(l.Quiet, clock("16:10")) || inQuiet(l.Quiet, clock("08:10")) || inQuiet(l.Quiet, clock("07:30")) {
		t.Errorf("quiet %+v", l.Quiet)
	}
}
