package rule

import "github.com/tocsin-project/tocsin/internal/strictyaml"

const exampleHighImpact = `alert: HighImpact
kind: high_impact
services: 4
share: 50%
accounts: 25
dependents: 10
exhausted_in: 15m
declare: 1
critical: 2.5
for: 20s
`

// HighImpact declares. By points it weighs all findings that belong together: each figure says how much of one source is worth one
// point; points add up over sources. By a budget it needs no findings: for each area it puts together what the rules with
// `false_pages` have proven about its paths and about its tickets, so that weak telemetry and weak support together declare
// what neither does alone.
type HighImpact struct {
	Areas       []string            `yaml:"areas"`        // globs; all if left out
	Services    float64             `yaml:"services"`     // services with firing telemetry findings worth a point
	Share       Share               `yaml:"share"`        // share of failing or slow requests on one path worth a point
	MinFailures uint64              `yaml:"min_failures"` // failed requests below which share is worth nothing
	Accounts    float64             `yaml:"accounts"`     // distinct accounts with failures or tickets worth a point
	Dependents  float64             `yaml:"dependents"`   // services depending on a resource about to be exhausted worth a point
	ExhaustedIn strictyaml.Duration `yaml:"exhausted_in"` // what counts as "about to be"
	Declare     float64             `yaml:"declare"`
	Critical    float64             `yaml:"critical"`
	Recovered   strictyaml.Duration `yaml:"recovered"`    // how long all must be quiet before it counts as mitigated
	FalsePages  Budget              `yaml:"false_pages"`  // instead of points, by the evidence of an area: accepted false alarms, as in `1 per 30d`
	MinExcess   uint64              `yaml:"min_excess"`   // with `false_pages`: failed or slow requests beyond what is tolerated that are enough of an impact
	MinAccounts uint64              `yaml:"min_accounts"` // with `false_pages`: accounts with tickets beyond what is tolerated that are; parts of both add up
}

// SetDefaults holds what a rule means that leaves a key out.
func (p *HighImpact) SetDefaults() {
	p.Services, p.Share, p.MinFailures, p.Accounts, p.Dependents = 4, 0.5, 20, 25, 10
	p.ExhaustedIn, p.Declare, p.Critical, p.Recovered = 15*minute, 1, 2.5, 5*minute
	p.MinExcess, p.MinAccounts = 30, 5
}

// Check finds what types alone cannot refuse.
func (p *HighImpact) Check(pos strictyaml.Pos) (errs strictyaml.Errors) {
	var plain HighImpact
	plain.SetDefaults()
	errs = checkGlobs(pos, p.Areas...)
	if p.FalsePages != (Budget{}) {
		if p.MinExcess == 0 || p.MinAccounts == 0 {
			errs = append(errs, pos.Errorf("min_excess and min_accounts: want at least 1"))
		}
		return append(errs, aside(pos, map[string]bool{
			"services": p.Services != plain.Services, "share": p.Share != plain.Share, "min_failures": p.MinFailures != plain.MinFailures,
			"accounts": p.Accounts != plain.Accounts, "dependents": p.Dependents != plain.Dependents,
			"exhausted_in": p.ExhaustedIn != plain.ExhaustedIn, "declare": p.Declare != plain.Declare, "critical": p.Critical != plain.Critical,
		}, "%s: means nothing beside false_pages, which weighs evidence and gives no points")...)
	}
	errs = append(errs, aside(pos, map[string]bool{"min_excess": p.MinExcess != plain.MinExcess, "min_accounts": p.MinAccounts != plain.MinAccounts},
		"%s: means nothing without false_pages")...)
	for _, v := range []struct {
		key string
		v   float64
	}{{"services", p.Services}, {"share", float64(p.Share)}, {"accounts", p.Accounts}, {"dependents", p.Dependents}, {"declare", p.Declare}} {
		if v.v <= 0 {
			errs = append(errs, pos.Errorf("%s: want a number above 0", v.key))
		}
	}
	if p.Critical < p.Declare {
		errs = append(errs, pos.Errorf("critical: %g points are fewer than the %g that declare", p.Critical, p.Declare))
	}
	return errs
}

// evidence tells what kind of evidence a rule gives to those that put it together; "" for none.
func (r *Rule) evidence() string {
	none := Budget{}
	switch p := r.Params.(type) {
	case *FailureRate:
		if p.FalsePages != none {
			return "requests"
		}
	case *Latency:
		if p.FalsePages != none {
			return "requests"
		}
	case *Support:
		if p.FalsePages != none {
			return "tickets"
		}
	}
	return ""
}

// unfed says what a high_impact rule with a budget will never have to put together. What is in shadow counts for what is in shadow.
func (s *Set) unfed(r *Rule) (out []string) {
	if p, ok := r.Params.(*HighImpact); !ok || p.FalsePages == (Budget{}) {
		return nil
	}
	seen := map[string]bool{}
	for _, o := range s.Rules() {
		if r.Shadow || !o.Shadow {
			seen[o.evidence()] = true
		}
	}
	for _, kind := range []string{"requests", "tickets"} {
		if !seen[kind] {
			out = append(out, "no rule with false_pages (and none that is in shadow, unless this one is) gives it evidence from "+kind)
		}
	}
	return out
}

var _ Params = (*HighImpact)(nil)
