package rule

import (
	"time"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

const exampleBacklog = `alert: QueueGrows
kind: backlog
match: {resource: 'queue/*', metric: depth}
growing_for: 10m
times_usual: 3
at_least: 1000
`

// Backlog fires for each matching gauge of waiting work, a queue's depth or a lag, that grows past what is usual. It ends when the
// work is done, not when the growth ends: the finding says how long that takes.
type Backlog struct {
	Match      GaugeMatch          `yaml:"match"`
	GrowingFor strictyaml.Duration `yaml:"growing_for"` // over which it must have grown, 10 s to 1 h
	TimesUsual float64             `yaml:"times_usual"` // so many times the median of the hours before
	AtLeast    float64             `yaml:"at_least"`    // a smaller backlog is none, in the gauge's unit
}

// SetDefaults holds what a rule means that leaves a key out.
func (p *Backlog) SetDefaults() { p.GrowingFor, p.TimesUsual = 10*minute, 3 }

// Check finds what types alone cannot refuse.
func (p *Backlog) Check(pos strictyaml.Pos) (errs strictyaml.Errors) {
	errs = append(checkWindow(pos, p.GrowingFor), checkGlobs(pos, p.Match.Resource, p.Match.Metric, p.Match.Kind)...)
	if p.Match.Resource == "" && p.Match.Metric == "" && p.Match.Kind == "" {
		errs = append(errs, pos.Errorf("match: say which gauges count waiting work; of others growth is no harm"))
	}
	if !(p.TimesUsual >= 1.5) {
		errs = append(errs, pos.Errorf("times_usual: %g is within what is usual, want at least 1.5", p.TimesUsual))
	}
	if !(p.AtLeast >= 0) {
		errs = append(errs, pos.Errorf("at_least: want a number, 0 or more"))
	}
	return errs
}

const exampleRetries = `alert: RetriesAmplify
kind: retries
match: {service: checkout}
attempts: 2
traffic: 4
window: 5m
`

// MaxRetryWindow is the longest window of a retries rule.
const MaxRetryWindow = 10 * time.Minute

// Retries fires for each matching path whose callers try again and again, or which gets a multiple of its usual traffic: load that
// trouble makes, and that keeps trouble alive.
type Retries struct {
	Match       PathMatch           `yaml:"match"`
	Attempts    float64             `yaml:"attempts"`    // tries per first try at which it is abnormal; 0 does not ask
	TimesUsual  float64             `yaml:"times_usual"` // and so many times its usual share of retries
	Traffic     float64             `yaml:"traffic"`     // times its usual traffic at this hour of the week at which it is abnormal; 0 does not ask
	Window      strictyaml.Duration `yaml:"window"`      // a multiple of 10 s, 10m at most
	MinRequests uint64              `yaml:"min_requests"`
}

// SetDefaults holds what a rule means that leaves a key out.
func (p *Retries) SetDefaults() {
	p.Attempts, p.TimesUsual, p.Window, p.MinRequests = 2, 3, 5*minute, 100
}

// Check finds what types alone cannot refuse.
func (p *Retries) Check(pos strictyaml.Pos) (errs strictyaml.Errors) {
	errs = append(checkWindow(pos, p.Window), checkPath(pos, &p.Match)...)
	if p.Window.Std() > MaxRetryWindow {
		errs = append(errs, pos.Errorf("window %s: want %s at most", p.Window, strictyaml.Duration(MaxRetryWindow)))
	}
	if p.Attempts == 0 && p.Traffic == 0 {
		errs = append(errs, pos.Errorf("want attempts (tries per first try), traffic (times the usual) or both"))
	}
	if p.Attempts != 0 && !(p.Attempts > 1) {
		errs = append(errs, pos.Errorf("attempts: every request is tried once, want more than 1"))
	}
	if p.Traffic != 0 && !(p.Traffic > 1) {
		errs = append(errs, pos.Errorf("traffic: want more than 1, as much as is usual"))
	}
	if len(p.Match.Attributes) > 0 {
		errs = append(errs, pos.Errorf("match: attributes mean nothing here, whole paths are judged"))
	}
	return errs
}

var (
	_ Params = (*Backlog)(nil)
	_ Params = (*Retries)(nil)
)
