package respond

import (
	"fmt"
	"strings"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// noteText says what an event changed, or "" where the edited first message says enough.
func noteText(e incident.Event) string {
	by := ""
	if e.By != "" {
		by = " by " + e.By
	}
	var what string
	switch e.Type {
	case incident.EventDeclared:
		what = "declared " + e.After.Severity.String()
	case incident.EventAcknowledged:
		what = "acknowledged" + by
	case incident.EventSeverity:
		what = "severity is now " + e.After.Severity.String()
	case incident.EventWarned:
		what = "warning"
	case incident.EventFinding:
		what = "joined"
	case incident.EventSuspects:
		what = "suspects changed"
		if s, ok := FirstSuspect(e.After); ok {
			what = "first suspect is now " + SuspectName(s)
		}
	case incident.EventTickets:
		what = fmt.Sprintf("%d tickets", e.After.Tickets)
	case incident.EventMuted:
		what = "pages muted"
	case incident.EventUnmuted:
		what = "pages no longer muted"
	case incident.EventMitigated:
		what = "mitigated" + by
	case incident.EventReopened:
		what = "reopened" + by
	case incident.EventResolved:
		what = "resolved" + by
	case incident.EventMerged:
		what = "merged into " + e.After.MergedInto + by
	case incident.EventDismissed:
		what = "dismissed" + by
	default: // suspected begins the thread; ended findings and impact are in the first message
		return ""
	}
	reason := strings.TrimSpace(e.Reason)
	if reason == "" {
		return cut(what, maxText)
	}
	return cut(what+": "+reason, maxText)
}
