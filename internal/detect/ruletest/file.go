// Package ruletest runs the tests beside rule files: inputs as lines, and what the detector must find at which time.
// They run through the very detector that pages people. `tocsin test` and the tests of rules/ use it.
//
// A test file stands beside the rule file it tests: rules/telemetry/failures_test.yaml tests rules/telemetry/failures.yaml.
// It judges by the rules of that file alone, unless rule_files names more.
package ruletest

import (
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// file is one test file.
type file struct {
	RuleFiles []string  `yaml:"rule_files"` // further rule files, relative to this one
	Catalogue yaml.Node `yaml:"catalogue"`
	Routes    yaml.Node `yaml:"routes"` // a routes file, relative to this one, or its content; the nearest routes.yaml if left out
	TimeZone  string    `yaml:"time_zone"`
	Tests     []test    `yaml:"tests" strict:"required"`
}

type test struct {
	Name      string         `yaml:"name" strict:"required"`
	Start     instant        `yaml:"start"`     // the first moment, as in 2026-03-29T00:30:00, in the time zone; or with an offset of its own
	TimeZone  string         `yaml:"time_zone"` // as in Europe/London, instead of the file's; UTC if neither is there
	Catalogue yaml.Node      `yaml:"catalogue"` // instead of the file's
	Routes    yaml.Node      `yaml:"routes"`    // instead of the file's
	Silences  []silence      `yaml:"silences"`
	Input     []line         `yaml:"input" strict:"required"`
	Expect    []expectation  `yaml:"expect" strict:"required"`
	Pos       strictyaml.Pos `yaml:"-"`
}

// line is one source of events from one time to another, counted from the test's start. Exactly one of requests, gauge,
// tickets, change, alert and result says what it is.
type line struct {
	// Requests is "service / operation / access".
	Requests  pathName            `yaml:"requests"`
	PerSecond float64             `yaml:"per_second"`
	Failing   rule.Share          `yaml:"failing"`
	Rejected  rule.Share          `yaml:"rejected"`
	Throttled rule.Share          `yaml:"throttled"`
	Accounts  int                 `yaml:"accounts"` // distinct accounts of failures or tickets; 10 if left out
	Retried   rule.Share          `yaml:"retried"`  // part of the requests that are not a first try
	Latency   strictyaml.Duration `yaml:"latency"`  // of SlowShare of the requests; the others take 50 ms
	SlowShare rule.Share          `yaml:"slow"`
	Attrs     map[string]string   `yaml:"attributes"`

	Gauge  string              `yaml:"gauge"` // resource
	Metric string              `yaml:"metric"`
	Value  float64             `yaml:"value"`
	Until  *float64            `yaml:"until"` // value at the end, in a straight line; as at the start if left out
	Limit  float64             `yaml:"limit"`
	Noise  float64             `yaml:"noise"` // swings by so much either way
	Every  strictyaml.Duration `yaml:"every"`

	Tickets string `yaml:"tickets"` // area, or "" with text
	Text    string `yaml:"text"`
	Count   int    `yaml:"count"`

	Change string            `yaml:"change"` // id
	Kind   signal.ChangeKind `yaml:"kind"`
	Target string            `yaml:"target"`
	Title  string            `yaml:"title"`

	Alert   string            `yaml:"alert"` // name of an alert that another system sends at the beginning, and its resolution at the end
	Labels  map[string]string `yaml:"labels"`
	Summary string            `yaml:"summary"`

	Result string      `yaml:"result"` // name of a sql rule whose query returns rows, or none, each time it is asked
	Rows   []resultRow `yaml:"rows"`
	Error  string      `yaml:"error"` // instead of rows: why it fails

	From strictyaml.Duration `yaml:"from"`
	To   strictyaml.Duration `yaml:"to"` // a change without an end is still running
	Pos  strictyaml.Pos      `yaml:"-"`
}

// SetDefaults holds what a line means that leaves a key out.
func (l *line) SetDefaults() { l.Accounts, l.Every = 10, strictyaml.Duration(signal.BucketSize) }

// expectation is what must hold at one time. Lists that are left out are not looked at; lists that are there must name
// all that is firing, or open.
type expectation struct {
	At        strictyaml.Duration `yaml:"at" strict:"required"`
	Findings  *[]wantFinding      `yaml:"findings"`
	Incidents *[]wantIncident     `yaml:"incidents"`
	Warnings  *[]wantWarning      `yaml:"warnings"` // all since the start
	// Notifications are all that went out since they were last looked at, but for edits and notes, which may be left out.
	Notifications *[]wantMessage `yaml:"notifications"`
	Pos           strictyaml.Pos `yaml:"-"`
}

// wantFinding names a finding by what is given; State is firing if left out.
type wantFinding struct {
	Alert      string            `yaml:"alert" strict:"required"`
	State      string            `yaml:"state"`
	Service    string            `yaml:"service"`
	Operation  string            `yaml:"operation"`
	Access     string            `yaml:"access"`
	Resource   string            `yaml:"resource"`
	Metric     string            `yaml:"metric"`
	Area       string            `yaml:"area"`
	Attributes map[string]string `yaml:"attributes"`
	Explain    string            `yaml:"explain"` // must be part of the explanation
	Summary    string            `yaml:"summary"` // must be part of the annotation
	Pos        strictyaml.Pos    `yaml:"-"`
}

func (w *wantFinding) SetDefaults() { w.State = "firing" }

type wantIncident struct {
	State    string         `yaml:"state"`
	Severity string         `yaml:"severity"`
	Title    string         `yaml:"title"` // must be part of it
	Services []string       `yaml:"services"`
	Page     *bool          `yaml:"page"`
	Suspect  string         `yaml:"suspect"` // id of the first
	Pos      strictyaml.Pos `yaml:"-"`
}

type wantWarning struct {
	Resource string         `yaml:"resource" strict:"required"`
	Metric   string         `yaml:"metric"`
	Suspect  string         `yaml:"suspect"`
	Pos      strictyaml.Pos `yaml:"-"`
}

// pathName is a path as people write it.
type pathName struct{ signal.Path }

func (p *pathName) UnmarshalText(b []byte) error {
	parts := strings.Split(string(b), " / ")
	if len(parts) != 3 {
		return fmt.Errorf("%q is no path, want \"service / operation / access\"", b)
	}
	access, err := signal.ParseAccess(strings.TrimSpace(parts[2]))
	p.Path = signal.Path{Service: strings.TrimSpace(parts[0]), Operation: strings.TrimSpace(parts[1]), Access: access}
	return err
}

// instant is a moment that may leave its offset to a time zone.
type instant struct {
	time.Time
	local bool
}

func (i *instant) UnmarshalText(b []byte) (err error) {
	if i.Time, err = time.Parse("2006-01-02T15:04:05", string(b)); err == nil {
		i.local = true
		return nil
	}
	i.Time, err = time.Parse(time.RFC3339, string(b))
	i.local = false
	return err
}

func (t *test) SetDefaults() {
	t.Start = instant{time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), true}
}

// begin is the first moment in the test's time zone.
func (t *test) begin() (time.Time, error) {
	zone, err := time.LoadLocation(t.TimeZone)
	if err != nil {
		return time.Time{}, t.Pos.Errorf("time_zone: %v", err)
	}
	if !t.Start.local {
		return t.Start.In(zone), nil
	}
	y, m, d := t.Start.Date()
	return time.Date(y, m, d, t.Start.Hour(), t.Start.Minute(), t.Start.Second(), 0, zone), nil
}

// silence is in force from one time to another, counted from the test's start.
type silence struct {
	Matchers []string            `yaml:"matchers" strict:"required"`
	From     strictyaml.Duration `yaml:"from"`
	To       strictyaml.Duration `yaml:"to" strict:"required"`
	Pos      strictyaml.Pos      `yaml:"-"`
}

// wantMessage names a message by what is given.
type wantMessage struct {
	Receiver string         `yaml:"receiver" strict:"required"`
	Kind     string         `yaml:"kind"`   // pagerduty, slack, webhook
	Action   string         `yaml:"action"` // open, raise, update, note, acknowledge, close; open if left out
	Says     string         `yaml:"says"`   // must be part of the text
	Text     string         `yaml:"text"`   // is the text
	Pos      strictyaml.Pos `yaml:"-"`
}

func (w *wantMessage) SetDefaults() { w.Action = "open" }
