// Package backtest replays recordings and stored history through the very detector that runs live, with the memory
// timeline in place of ClickHouse and a pager that only takes notes, and scores what it said against labels.
package backtest

import (
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Result is what `tocsin backtest --output json` prints. Times are event time; what has not happened is null.
type Result struct {
	Recordings []Recording `json:"recordings"`
	// Total sums up all recordings with labels; null where there is none.
	Total *Score `json:"total,omitempty"`
	// Rules sums up what each rule did in all of them.
	Rules []RuleScore `json:"rules,omitempty"`
	// Against is what the other rules came to, and Changes what that changes; only with two sets of rules.
	Against []Recording `json:"against,omitempty"`
	Changes []Change    `json:"changes,omitempty"`
}

// Recording is the outcome of one folder.
type Recording struct {
	Name      string     `json:"name"`
	From      time.Time  `json:"from"`
	To        time.Time  `json:"to"`
	Incidents []Incident `json:"incidents"`
	Warnings  []Warning  `json:"warnings"`
	Findings  []Finding  `json:"findings"`
	Score     *Score     `json:"score,omitempty"`
	// Rules is what each rule did that fired.
	Rules []RuleScore `json:"rules"`
	// Approximate says why stored history is not judged exactly as it was live; "" where it is, and for recordings.
	Approximate string `json:"approximate,omitempty"`
	// NotJudged names the rules that a recording cannot be judged by: those of kind sql, since it holds no answers of a database.
	NotJudged []string `json:"not_judged,omitempty"`
	// Traffic is for plots.
	Traffic []Traffic `json:"-"`
	// Labels are for plots, too.
	Labels *Labels `json:"-"`
	// Log is all that a replay of stored history concluded.
	Log []incident.Conclusion `json:"-"`
	// Verified compares it with what the live detector stored, where that was asked for.
	Verified *Verified `json:"verified,omitempty"`
}

// Traffic is what all paths together did in a stretch of time.
type Traffic struct {
	At              time.Time
	Total, Failures uint64
}

// Incident is one incident at the end of the recording, with its history.
type Incident struct {
	ID             string                `json:"id"`
	State          incident.State        `json:"state"`
	Title          string                `json:"title"`
	Severity       incident.Severity     `json:"severity"`
	Areas          []string              `json:"areas"`
	Services       []string              `json:"services"`
	StartedAt      *time.Time            `json:"started_at"`
	FirstFindingAt *time.Time            `json:"first_finding_at"`
	DeclaredAt     *time.Time            `json:"declared_at"`
	MitigatedAt    *time.Time            `json:"mitigated_at"`
	ResolvedAt     *time.Time            `json:"resolved_at"`
	Pages          []Page                `json:"pages"`
	Paths          []Path                `json:"paths"`
	Scope          []incident.ScopeSlice `json:"scope"`
	Suspects       []Suspect             `json:"suspects"`
	Impact         Impact                `json:"impact"`
	Tickets        int                   `json:"tickets"`
	Timeline       []Moment              `json:"timeline"`
}

// Page is one page that would have gone out.
type Page struct {
	At       time.Time         `json:"at"`
	Severity incident.Severity `json:"severity"`
	Receiver string            `json:"receiver"`
	Reason   string            `json:"reason"`
}

// Path is what one path suffered.
type Path struct {
	Service    string            `json:"service"`
	Operation  string            `json:"operation"`
	Access     signal.Access     `json:"access"`
	Attributes signal.Attributes `json:"attributes"`
	Requests   uint64            `json:"requests"`
	Failures   uint64            `json:"failures"`
	PeakShare  float64           `json:"peak_share"`
	PeakAt     *time.Time        `json:"peak_at"`
}

// Suspect is a candidate cause.
type Suspect struct {
	Kind    incident.SuspectKind `json:"kind"`
	ID      string               `json:"id"`
	Score   float64              `json:"score"`
	Reasons []string             `json:"reasons"`
	Against []string             `json:"against"`
}

// Impact sums an incident up.
type Impact struct {
	Kind            incident.ImpactKind `json:"kind"`
	Requests        uint64              `json:"requests"`
	Failures        uint64              `json:"failures"`
	PeakShare       float64             `json:"peak_share"`
	PeakAt          *time.Time          `json:"peak_at"`
	AccountsAtLeast uint64              `json:"accounts_at_least"`
}

// Moment is an incident as of one of its events.
type Moment struct {
	At              time.Time             `json:"at"`
	State           incident.State        `json:"state"`
	Severity        incident.Severity     `json:"severity"`
	Services        []string              `json:"services"`
	Scope           []incident.ScopeSlice `json:"scope"`
	AccountsAtLeast uint64                `json:"accounts_at_least"`
	Suspect         *string               `json:"suspect"`
}

// Warning says that a resource was about to run out.
type Warning struct {
	At          time.Time  `json:"at"`
	Resource    string     `json:"resource"`
	Metric      string     `json:"metric"`
	Value       float64    `json:"value"`
	Limit       *float64   `json:"limit"`
	ExhaustedAt *time.Time `json:"exhausted_at"`
	Rule        string     `json:"rule"`
	Guard       *string    `json:"guard"`
	Suspects    []Suspect  `json:"suspects"`
}

// Finding is one change of a finding's state.
type Finding struct {
	At    time.Time             `json:"at"`
	Rule  string                `json:"rule"`
	Kind  string                `json:"kind"`
	Key   Key                   `json:"key"`
	State incident.FindingState `json:"state"`
}

// Key names what a finding is about; what does not apply is null.
type Key struct {
	Service    *string           `json:"service"`
	Operation  *string           `json:"operation"`
	Access     *string           `json:"access"`
	Resource   *string           `json:"resource"`
	Metric     *string           `json:"metric,omitempty"`
	Area       *string           `json:"area"`
	Attributes signal.Attributes `json:"attributes"`
}
