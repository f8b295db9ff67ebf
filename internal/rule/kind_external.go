package rule

import (
	"maps"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

const exampleExternal = `alert: DatabaseTeamAlert
kind: external
match: {job: mysql, severity: 'crit*'}
severities: {critical: page, warning: warning}
expires: 6h
`

// External fires for alerts that other systems raised: those of one name about one service or resource are one finding.
type External struct {
	Match      map[string]string   `yaml:"match"`      // labels that an alert must have, with globs for their values; all alerts if left out
	Service    string              `yaml:"service"`    // the label that names the service
	Resource   string              `yaml:"resource"`   // the label that names the resource
	Severities map[string]string   `yaml:"severities"` // the finding's severity by the alert's label `severity`; others have that of the rule
	Expires    strictyaml.Duration `yaml:"expires"`    // without being repeated or resolved it is over after so long, 5m to 7d
}

// SetDefaults holds what a rule means that leaves a key out.
func (p *External) SetDefaults() {
	p.Service, p.Resource, p.Expires = "service", "resource", strictyaml.Duration(24*time.Hour)
}

// Check finds what types alone cannot refuse.
func (p *External) Check(pos strictyaml.Pos) (errs strictyaml.Errors) {
	for _, k := range SortedKeys(p.Match) {
		errs = append(errs, checkGlobs(pos, p.Match[k])...)
	}
	for _, k := range slices.Sorted(maps.Keys(p.Severities)) {
		if !isSeverity(p.Severities[k]) {
			errs = append(errs, pos.Errorf("severities: %q of %s is none of %s", p.Severities[k], k, severities))
		}
	}
	if d := p.Expires.Std(); d < 5*time.Minute || d > 7*24*time.Hour {
		errs = append(errs, pos.Errorf("expires %s: want between 5m and 7d", p.Expires))
	}
	return errs
}

// MatchesLabels tells whether an alert with these labels is selected; get gives a label's value or "".
func (p *External) MatchesLabels(get func(name string) string) bool {
	for name, pattern := range p.Match {
		if v := get(name); v == "" || !glob(pattern, v) {
			return false
		}
	}
	return true
}

const severities = "critical, warning, info, page"

func isSeverity(s string) bool {
	return s == "critical" || s == "warning" || s == "info" || s == "page"
}

var _ Params = (*External)(nil)
