package incident

import "time"

// EventType says what an event of the incident log reports.
type EventType string

const (
	EventSuspected    EventType = "suspected"
	EventDeclared     EventType = "declared"
	EventAcknowledged EventType = "acknowledged"
	EventSeverity     EventType = "severity_changed"
	EventWarned       EventType = "warned"
	EventFinding      EventType = "finding_attached"
	EventFindingEnded EventType = "finding_ended"
	EventSuspects     EventType = "suspects_changed"
	EventTickets      EventType = "tickets_attached"
	EventImpact       EventType = "impact_updated"
	EventMuted        EventType = "muted"
	EventUnmuted      EventType = "unmuted"
	EventMitigated    EventType = "mitigated"
	EventReopened     EventType = "reopened"
	EventResolved     EventType = "resolved"
	EventMerged       EventType = "merged"
	EventDismissed    EventType = "dismissed"
)

// Event is one row of the append-only incident log: what happened, and the whole incident after it. It is
// unique by (incident, sequence) and holds nothing that depends on who wrote it or when by the wall clock,
// but for Tick and Clock, which belong to the stored tick.
type Event struct {
	Incident string    `json:"incident"`
	Sequence uint64    `json:"sequence"`
	At       time.Time `json:"at"` // event time
	Type     EventType `json:"type"`
	By       string    `json:"by,omitempty"` // a person, for what a person did
	Reason   string    `json:"reason"`       // one sentence, for the log and the Slack thread
	Tick     uint64    `json:"tick"`
	Clock    time.Time `json:"clock"` // the ingest clock when the tick was claimed; Clock − At is how late this was known
	After    Incident  `json:"after"`
}

// CommandType is what a person may tell an incident.
type CommandType string

const (
	CommandAcknowledge CommandType = "acknowledge"
	CommandMitigate    CommandType = "mitigate"
	CommandResolve     CommandType = "resolve"
	CommandDismiss     CommandType = "dismiss"
	CommandMerge       CommandType = "merge"
	CommandReopen      CommandType = "reopen"
)

// Command is a person's word on an incident, from a button, the page, the command line or a provider's webhook.
// Its ID makes a repeated delivery harmless.
type Command struct {
	ID       string      `json:"id"`
	Type     CommandType `json:"type"`
	Incident string      `json:"incident"`
	Into     string      `json:"into,omitempty"`
	By       string      `json:"by"`
	Via      string      `json:"via,omitempty"` // slack, pagerduty, web, cli
	At       time.Time   `json:"at"`            // when it was given, wall clock of the sender
	Note     string      `json:"note,omitempty"`
}
