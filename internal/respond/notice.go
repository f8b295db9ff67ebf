package respond

import (
	"cmp"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// Limits of what is kept of an incident for sending. They keep a record far below what a Kafka record or a
// provider takes, however large the incident; the console shows everything.
const (
	maxPaths    = 25
	maxServices = 40
	maxSuspects = 5
	maxReasons  = 5
	maxScope    = 5
	maxWarnings = 5
	maxText     = 600 // runes of any single text
)

// Note is one change of an incident, told under the first message.
type Note struct {
	Sequence uint64             `json:"sequence"`
	At       time.Time          `json:"at"`
	Type     incident.EventType `json:"type"`
	By       string             `json:"by,omitempty"`
	Text     string             `json:"text"`
}

// Notice is what senders need to know of an incident: the incident cut to a bounded size, and what was cut.
type Notice struct {
	Incident     incident.Incident `json:"incident"`
	At           time.Time         `json:"at"` // event time of the newest event in it
	Runbook      string            `json:"runbook,omitempty"`
	Drill        bool              `json:"drill,omitempty"`
	MorePaths    int               `json:"more_paths,omitempty"`
	MoreServices int               `json:"more_services,omitempty"`
	MoreSuspects int               `json:"more_suspects,omitempty"`
	FindingCount int               `json:"findings,omitempty"`
	// Summary replaces the incident where one message stands for several.
	Summary *Summary `json:"summary,omitempty"`
}

// Summary stands for several incidents.
type Summary struct {
	Title string   `json:"title"`
	Lines []string `json:"lines"`
	More  int      `json:"more,omitempty"`
}

// NewNotice cuts an incident as it was after an event.
func NewNotice(e incident.Event) Notice {
	i := e.After
	n := Notice{At: e.At, Drill: i.Labels["drill"] == "true", FindingCount: len(i.Findings)}
	for _, f := range i.Findings {
		if n.Runbook = f.Finding.Annotations["runbook_url"]; n.Runbook != "" {
			break
		}
	}
	i.Title = cut(i.Title, maxText)
	i.Reason = cut(i.Reason, maxText)
	i.Findings, i.Accounts = nil, nil
	i.Paths = slices.Clone(i.Paths)
	slices.SortStableFunc(i.Paths, func(a, b incident.PathImpact) int {
		return cmp.Or(cmp.Compare(b.Failures, a.Failures), a.Path.Compare(b.Path))
	})
	i.Paths, n.MorePaths = head(i.Paths, maxPaths)
	for k := range i.Paths {
		i.Paths[k].Path.Service = cut(i.Paths[k].Path.Service, maxText)
		i.Paths[k].Path.Operation = cut(i.Paths[k].Path.Operation, maxText)
	}
	i.Services, n.MoreServices = head(i.Services, maxServices)
	i.Resources, _ = head(i.Resources, maxServices)
	i.Scope, _ = head(i.Scope, maxScope)
	i.Suspects, n.MoreSuspects = head(i.Suspects, maxSuspects)
	i.Suspects = suspects(i.Suspects)
	i.Warnings, _ = head(i.Warnings, maxWarnings)
	i.Warnings = slices.Clone(i.Warnings)
	for k := range i.Warnings {
		w := i.Warnings[k].Suspects
		w, _ = head(w, 1)
		i.Warnings[k].Suspects = suspects(w)
	}
	n.Incident = i
	return n
}

func suspects(in []incident.Suspect) []incident.Suspect {
	out := slices.Clone(in)
	for k, s := range out {
		out[k].Title, out[k].ID = cut(s.Title, maxText), cut(s.ID, maxText)
		out[k].Reasons, out[k].Against = texts(s.Reasons), texts(s.Against)
	}
	return out
}

func texts(in []string) []string {
	in, _ = head(in, maxReasons)
	out := slices.Clone(in)
	for k := range out {
		out[k] = cut(out[k], maxText)
	}
	return out
}

func head[T any](s []T, n int) ([]T, int) {
	if len(s) <= n {
		return s, 0
	}
	return s[:n:n], len(s) - n
}

// cut shortens by runes, so that no character is torn.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

// Cut shortens a text to n runes.
func Cut(s string, n int) string { return cut(s, n) }
