// Package respondtest makes incidents that are hard to send: large, multibyte, hostile. It is used by tests of receivers.
package respondtest

import (
	"fmt"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Start is when the example incident began.
var Start = time.Date(2026, 9, 13, 8, 43, 0, 0, time.UTC)

// Event is an incident as its declaration gives it.
func Event(i incident.Incident) incident.Event {
	return incident.Event{Incident: i.ID, Sequence: 1, At: Start.Add(2 * time.Minute), Clock: Start.Add(2 * time.Minute), Type: incident.EventDeclared, After: i}
}

// Example is the usual one: many services behind one database.
func Example() incident.Incident {
	return incident.Incident{
		ID: "20260913-0843-mysql-collab-primary", Title: "mysql/collab/primary and 28 services", State: incident.Declared, Severity: incident.Critical,
		Sequence: 3, Areas: []string{"platform"}, Services: []string{"issues", "auth", "actions"}, Resources: []string{"mysql/collab/primary"}, Page: true,
		StartedAt: Start, FirstFindingAt: Start, DeclaredAt: Start.Add(2 * time.Minute),
		Reason: "96% of issue creations fail; connections of mysql/collab/primary are at their limit.",
		Impact: incident.Impact{Kind: incident.ImpactFailures, Requests: 20_000, Failures: 12_300, PeakShare: .96, AccountsAtLeast: 1204},
		Paths: []incident.PathImpact{
			{Path: signal.Path{Service: "issues", Operation: "create", Access: signal.Write}, Requests: 1000, Failures: 960, PeakShare: .96, BaseShare: .003},
			{Path: signal.Path{Service: "auth", Operation: "token", Access: signal.Write}, Requests: 9000, Failures: 790, PeakShare: .088, BaseShare: .0002},
		},
		Scope: []incident.ScopeSlice{{Attributes: signal.NewAttributes(map[string]string{"site": "iad"}), Share: .9}},
		Suspects: []incident.Suspect{
			{Kind: incident.SuspectChange, ID: "job/data-clean-up", Title: "job data-clean-up", URL: "https://jobs.example.com/17?a=1&b=2", Score: .82,
				Reasons: []string{"began 70 min before", "writes to mysql/collab/primary"}, Against: []string{"3 other jobs ran as well"}},
			{Kind: incident.SuspectResource, ID: "mysql/collab/primary", Score: .11, Reasons: []string{"connections at their limit"}},
			{Kind: incident.SuspectUnknown, Score: .07},
		},
		Findings: []incident.Attached{{Finding: incident.Finding{Annotations: map[string]string{"runbook_url": "https://runbooks.example.com/mysql"}}}},
		Tickets:  14,
		Labels:   map[string]string{"team": "storage"},
	}
}

// Warning is the same before anything failed.
func Warning() incident.Incident {
	i := Example()
	i.State, i.Page, i.Paths, i.Services, i.Suspects, i.Impact = incident.Suspected, false, nil, nil, nil, incident.Impact{Kind: incident.ImpactSaturation}
	i.StartedAt = Start.Add(-30 * time.Minute)
	i.Warnings = []incident.Warning{{At: Start, Resource: "mysql/collab/primary", Metric: "connections", Value: 920, Limit: 1000, ExhaustedAt: Start.Add(16 * time.Minute),
		Suspects: []incident.Suspect{{Kind: incident.SuspectChange, ID: "job/data-clean-up", Title: "job data-clean-up"}}}}
	return i
}

// Hostile are incidents that have broken other systems, by name.
func Hostile() map[string]incident.Incident {
	nasty := "a<b & \"c\" <!channel> <@U123456789> @here *b* `x` \x00\xff 🔥"
	long := strings.Repeat("ü🔥&<", 1250) // 5,000 runes
	many, texts, mentions, empty := Example(), Example(), Example(), incident.Incident{ID: "x", State: incident.Declared, Page: true}
	many.Paths = nil
	for k := range 90 {
		many.Paths = append(many.Paths, incident.PathImpact{Path: signal.Path{Service: fmt.Sprintf("service-%02d-%s", k, strings.Repeat("&", 60)), Operation: strings.Repeat("operation", 20), Access: signal.Write}, Failures: uint64(k), PeakShare: .5})
		many.Services = append(many.Services, fmt.Sprintf("service-%02d", k))
	}
	texts.Title, texts.Reason, texts.Muted, texts.AcknowledgedBy = long, long, long, long
	texts.ID = "id-" + strings.Repeat("x", 400)
	texts.Services, texts.Areas, texts.Resources = []string{long}, []string{long}, []string{long}
	texts.Suspects = nil
	for range 20 {
		texts.Suspects = append(texts.Suspects, incident.Suspect{Kind: incident.SuspectChange, ID: long, Title: long, URL: "https://x.example.com/" + strings.Repeat("y", 900),
			Reasons: []string{long, long, long, long, long, long, long}, Against: []string{long, long, long}})
	}
	for range 30 {
		texts.Paths = append(texts.Paths, incident.PathImpact{Path: signal.Path{Service: long, Operation: long}, Failures: 5, PeakShare: 1})
		texts.Warnings = append(texts.Warnings, incident.Warning{Resource: long, Metric: long, Guard: long, Limit: 1, Value: 2})
	}
	mentions.Title, mentions.Reason, mentions.AcknowledgedBy, mentions.MergedInto = nasty, nasty, nasty, nasty
	mentions.Services, mentions.Suspects[0].Title, mentions.Suspects[0].URL = []string{nasty}, nasty, "https://x.example.com/a|b>c<!channel>"
	mentions.Suspects[0].Reasons, mentions.Suspects[0].Against = []string{nasty}, []string{nasty}
	mentions.Paths[0].Path.Service, mentions.Paths[0].Attributes = nasty, signal.NewAttributes(map[string]string{"x": nasty})
	mentions.Suspects[1].URL = "javascript:alert(1)"
	return map[string]incident.Incident{"90 paths": many, "5,000 runes everywhere": texts, "mentions": mentions, "empty": empty}
}

// Delivery is a first page for an incident.
func Delivery(a respond.Action, i incident.Incident, key string) respond.Delivery {
	return respond.Delivery{Action: a, Key: key, Since: time.Now(), Notice: respond.NewNotice(Event(i))}
}
