package rule

import "github.com/tocsin-project/tocsin/internal/strictyaml"

const exampleAbsence = `alert: ServiceSilent
kind: absence
match: {area: payments}
per: service
silent_for: 5m
expected: 30
`

// Absence fires for each matching service or path that has traffic at this hour of the week and has none now. When most fall silent
// at once it is one finding about telemetry, and what was found before is unknown: then it is the data that is missing.
type Absence struct {
	Match     PathMatch           `yaml:"match"`
	Per       string              `yaml:"per"`        // `service` or `path`: what a finding is about
	SilentFor strictyaml.Duration `yaml:"silent_for"` // without any request, at least; and twice its longest usual pause
	Expected  float64             `yaml:"expected"`   // requests that its own history lets expect in that time, at least
}

// SetDefaults holds what a rule means that leaves a key out.
func (p *Absence) SetDefaults() { p.Per, p.SilentFor, p.Expected = "service", 5*minute, 30 }

// Check finds what types alone cannot refuse.
func (p *Absence) Check(pos strictyaml.Pos) (errs strictyaml.Errors) {
	errs = append(checkWindow(pos, p.SilentFor), checkPath(pos, &p.Match)...)
	if p.Per != "service" && p.Per != "path" {
		errs = append(errs, pos.Errorf("per: %q is neither service nor path", p.Per))
	}
	if p.Per == "service" && (p.Match.Operation != "" || p.Match.Access != "") {
		errs = append(errs, pos.Errorf("match: operation and access select paths; per: path judges those"))
	}
	if len(p.Match.Attributes) > 0 {
		errs = append(errs, pos.Errorf("match: attributes mean nothing here, versions and hosts come and go"))
	}
	if !(p.Expected >= 3) {
		errs = append(errs, pos.Errorf("expected: %g requests or fewer fail to come by chance, want at least 3", p.Expected))
	}
	return errs
}

var _ Params = (*Absence)(nil)
