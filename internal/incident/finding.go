package incident

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// FindingState is a rule's state for one key.
type FindingState uint8

const (
	Inactive FindingState = iota
	// Pending is abnormal, but not yet for the rule's `for`.
	Pending
	Firing
	// Unknown says that the data to judge by is missing. It never counts as recovered.
	Unknown
)

var findingStates = []string{"inactive", "pending", "firing", "unknown"}

func (s FindingState) String() string { return name(findingStates, int(s)) }

func (s FindingState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s *FindingState) UnmarshalText(b []byte) error {
	i, err := index("finding state", findingStates, string(b))
	*s = FindingState(i)
	return err
}

// FindingKey names what a finding is about: a rule and the path, resource or area it judged. Fields that do not
// apply are empty. It is comparable and keys maps.
type FindingKey struct {
	Rule       string            `json:"-"`
	Service    string            `json:"service,omitempty"`
	Operation  string            `json:"operation,omitempty"`
	Access     string            `json:"access,omitempty"` // "read", "write" or "" where the key is no path
	Resource   string            `json:"resource,omitempty"`
	Metric     string            `json:"metric,omitempty"`
	Area       string            `json:"area,omitempty"`
	Attributes signal.Attributes `json:"attributes,omitempty"`
}

// Compare is the order in which findings are stored and shown.
func (k FindingKey) Compare(o FindingKey) int {
	return cmp.Or(
		strings.Compare(k.Rule, o.Rule), strings.Compare(k.Service, o.Service),
		strings.Compare(k.Operation, o.Operation), strings.Compare(k.Access, o.Access),
		strings.Compare(k.Resource, o.Resource), strings.Compare(k.Metric, o.Metric),
		strings.Compare(k.Area, o.Area), cmp.Compare(k.Attributes, o.Attributes))
}

// Finding is the state of one rule for one key, with what it saw.
type Finding struct {
	Key         FindingKey        `json:"key"`
	Rule        string            `json:"rule"`
	Kind        string            `json:"kind"` // the rule's kind: failure_rate, saturation, …
	State       FindingState      `json:"state"`
	ActiveAt    time.Time         `json:"active_at"` // since when abnormal
	FiredAt     time.Time         `json:"fired_at,omitzero"`
	EndedAt     time.Time         `json:"ended_at,omitzero"` // left firing
	Value       float64           `json:"value"`             // a share for rates, value/limit for saturation, accounts for tickets
	Requests    uint64            `json:"requests,omitempty"`
	Failures    uint64            `json:"failures,omitempty"`
	Accounts    signal.Sketch     `json:"accounts,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Explain     string            `json:"explain,omitempty"`  // one sentence: the counts and what they were held against
	Evidence    []EvidenceRow     `json:"evidence,omitempty"` // what the sentence says, over time; of rules that judge by evidence
	Partial     bool              `json:"partial,omitempty"`
}

// EvidenceRow is one stretch of time before a finding was last judged.
type EvidenceRow struct {
	Of        string  `json:"of,omitempty"` // which source, where a finding has several
	From      int     `json:"from"`         // minutes ago
	To        int     `json:"to"`
	N         uint64  `json:"n"`         // requests, or minutes for tickets
	F         uint64  `json:"f"`         // bad ones, or accounts that wrote
	Tolerated float64 `json:"tolerated"` // of F, were all normal
	Evidence  float64 `json:"evidence"`  // at its end, in decades against the rule's budget
}

// Transition is one change of a finding's state, a row of the `findings` table.
type Transition struct {
	At      time.Time    `json:"at"`
	From    FindingState `json:"from"`
	Finding Finding      `json:"finding"`
}

// Warning says that a resource will run out before anything has failed.
type Warning struct {
	At          time.Time `json:"at"`
	Resource    string    `json:"resource"`
	Metric      string    `json:"metric"`
	Value       float64   `json:"value"`
	Limit       float64   `json:"limit"`
	ExhaustedAt time.Time `json:"exhausted_at,omitzero"` // zero where the level alone warns
	Rule        string    `json:"rule"`
	Guard       string    `json:"guard,omitempty"`
	Incident    string    `json:"incident,omitempty"`
	Suspects    []Suspect `json:"suspects"`
}

func name(names []string, i int) string {
	if i >= 0 && i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("invalid(%d)", i)
}

func index(what string, names []string, s string) (int, error) {
	for i, n := range names {
		if n == s {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%s %q is none of %s", what, s, strings.Join(names, ", "))
}
