package rule

import (
	"time"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

const exampleGauge = `alert: QueueUnusual
kind: gauge
match: {resource: 'queue/*', metric: depth}
false_alarms: 1 per 30d
toward: up
for: 1m
`

// Gauge fires for each matching gauge whose value is neither what the last hour nor what this time of day lets expect. What is usual
// it learns, from 48 values on. The more gauges a rule has, the rarer a value has to be: its budget is shared by all of them.
type Gauge struct {
	Match       GaugeMatch `yaml:"match"`
	FalseAlarms Budget     `yaml:"false_alarms"` // accepted false alarms of all gauges of the rule together
	MinChange   Share      `yaml:"min_change"`   // a smaller part of what is expected is no departure, however regular the gauge is
	Toward      string     `yaml:"toward"`       // `up`, `down` or `both`
	WithLimit   bool       `yaml:"with_limit"`   // judge gauges with a limit, too; how near they are to it is for `saturation`
}

// SetDefaults holds what a rule means that leaves a key out.
func (p *Gauge) SetDefaults() {
	p.FalseAlarms, p.MinChange, p.Toward = Budget{1, 7 * 24 * time.Hour}, 0.1, "both"
}

// Check finds what types alone cannot refuse.
func (p *Gauge) Check(pos strictyaml.Pos) (errs strictyaml.Errors) {
	errs = checkGlobs(pos, p.Match.Resource, p.Match.Metric, p.Match.Kind)
	switch p.Toward {
	case "up", "down", "both":
	default:
		errs = append(errs, pos.Errorf("toward: %q is none of up, down, both", p.Toward))
	}
	return errs
}

var _ Params = (*Gauge)(nil)
