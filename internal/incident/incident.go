package incident

import (
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// State is where an incident is in its life.
type State uint8

const (
	// Suspected is being watched: warned about or too weak to wake anybody.
	Suspected State = iota
	Declared
	Acknowledged
	// Mitigated: customers are served again, but it may come back.
	Mitigated
	Resolved
	// Merged lives on in another incident.
	Merged
	// Dismissed was ended by a person as no incident, or was suspected and went away.
	Dismissed
)

var states = []string{"suspected", "declared", "acknowledged", "mitigated", "resolved", "merged", "dismissed"}

func (s State) String() string { return name(states, int(s)) }

func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s *State) UnmarshalText(b []byte) error {
	i, err := index("incident state", states, string(b))
	*s = State(i)
	return err
}

// Open tells whether somebody may still have to act.
func (s State) Open() bool {
	return s == Suspected || s == Declared || s == Acknowledged || s == Mitigated
}

// Severity orders incidents by impact; a higher value is worse.
type Severity uint8

const (
	Minor Severity = iota
	Major
	Critical
)

var severities = []string{"minor", "major", "critical"}

func (s Severity) String() string { return name(severities, int(s)) }

func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s *Severity) UnmarshalText(b []byte) error {
	i, err := index("severity", severities, string(b))
	*s = Severity(i)
	return err
}

// ImpactKind says what customers notice most.
type ImpactKind string

const (
	ImpactFailures   ImpactKind = "failures"
	ImpactLatency    ImpactKind = "latency"
	ImpactAbsence    ImpactKind = "absence"
	ImpactTickets    ImpactKind = "tickets"
	ImpactSaturation ImpactKind = "saturation"
	ImpactBacklog    ImpactKind = "backlog"
)

// Impact sums up an incident in numbers.
type Impact struct {
	Kind            ImpactKind `json:"kind"`
	Requests        uint64     `json:"requests"`
	Failures        uint64     `json:"failures"`
	PeakShare       float64    `json:"peak_share"`
	PeakAt          time.Time  `json:"peak_at,omitzero"`
	AccountsAtLeast uint64     `json:"accounts_at_least"`
}

// PathImpact is what one path suffered while it belonged to the incident.
type PathImpact struct {
	Path       signal.Path       `json:"path"`
	Attributes signal.Attributes `json:"attributes,omitempty"`
	Requests   uint64            `json:"requests"`
	Failures   uint64            `json:"failures"`
	PeakShare  float64           `json:"peak_share"`
	PeakAt     time.Time         `json:"peak_at,omitzero"`
	BaseShare  float64           `json:"base_share"` // the share before it began
}

// ScopeSlice is a slice and the share of the excess failures that it explains.
type ScopeSlice struct {
	Attributes signal.Attributes `json:"attributes"`
	Share      float64           `json:"share"`
}

// SuspectKind says what a suspect is.
type SuspectKind string

const (
	SuspectService    SuspectKind = "service"
	SuspectResource   SuspectKind = "resource"
	SuspectChange     SuspectKind = "change"
	SuspectAttributes SuspectKind = "attributes"
	SuspectUnknown    SuspectKind = "unknown"
)

// Suspect is a candidate cause. Only a person confirms one.
type Suspect struct {
	Kind    SuspectKind `json:"kind"`
	ID      string      `json:"id"`
	Title   string      `json:"title,omitempty"` // what a person calls it
	URL     string      `json:"url,omitempty"`
	Score   float64     `json:"score"` // 0–1, comparable within one list
	Reasons []string    `json:"reasons"`
	Against []string    `json:"against"`
}

// Attached is a finding that belongs to an incident.
type Attached struct {
	Finding Finding   `json:"finding"`
	At      time.Time `json:"at"`  // when it joined
	Why     string    `json:"why"` // the edge that joined it
}

// Incident is one thing that is wrong, as of its last event.
type Incident struct {
	ID        string   `json:"id"`
	Title     string   `json:"title"`
	State     State    `json:"state"`
	Severity  Severity `json:"severity"`
	Sequence  uint64   `json:"sequence"` // of the event that made this state
	Areas     []string `json:"areas"`
	Services  []string `json:"services"`
	Resources []string `json:"resources"`
	// Page says that the incident may wake somebody now; Muted says why not although it would.
	Page           bool          `json:"page"`
	Muted          string        `json:"muted,omitempty"`
	StartedAt      time.Time     `json:"started_at"`
	FirstFindingAt time.Time     `json:"first_finding_at"`
	DeclaredAt     time.Time     `json:"declared_at,omitzero"`
	AcknowledgedAt time.Time     `json:"acknowledged_at,omitzero"`
	AcknowledgedBy string        `json:"acknowledged_by,omitempty"`
	MitigatedAt    time.Time     `json:"mitigated_at,omitzero"`
	ResolvedAt     time.Time     `json:"resolved_at,omitzero"`
	MergedInto     string        `json:"merged_into,omitempty"`
	Flapping       bool          `json:"flapping,omitempty"`
	Reason         string        `json:"reason"` // why it is in this state, in one sentence
	Impact         Impact        `json:"impact"`
	Paths          []PathImpact  `json:"paths"`
	Scope          []ScopeSlice  `json:"scope"`
	Suspects       []Suspect     `json:"suspects"`
	Findings       []Attached    `json:"findings"`
	Warnings       []Warning     `json:"warnings,omitempty"`
	Tickets        int           `json:"tickets"`
	Accounts       signal.Sketch `json:"accounts,omitempty"`
	// Labels are what routes match on: severity, state, service, area, team, env and the declaring rule's labels.
	Labels map[string]string `json:"labels,omitempty"`
}
