package rule

import "github.com/tocsin-project/tocsin/internal/strictyaml"

const exampleSupport = `alert: TicketsUnusual
kind: support
window: 15m
min_accounts: 5
times_usual: 4
`

// Support fires for each area about which unusually many accounts write: within a window, several times as many as usual; or by
// the evidence, against the area's own hour of the week. One of min_accounts and false_pages is given.
type Support struct {
	Areas       []string            `yaml:"areas"` // globs; all if left out
	Window      strictyaml.Duration `yaml:"window"`
	MinAccounts uint64              `yaml:"min_accounts"` // accounts within the window, at least
	TimesUsual  float64             `yaml:"times_usual"`
	FalsePages  Budget              `yaml:"false_pages"` // instead of `min_accounts`, by evidence: accepted false alarms, as in `1 per 30d`
	Blips       strictyaml.Duration `yaml:"blips"`       // with `false_pages`: a rush that lasts no longer is normal
	MinExcess   uint64              `yaml:"min_excess"`  // with `false_pages`: accounts beyond what is tolerated, at least
}

// SetDefaults holds what a rule means that leaves a key out.
func (p *Support) SetDefaults() {
	p.Window, p.TimesUsual, p.Blips, p.MinExcess = 15*minute, 4, 3*minute, 5
}

// Check finds what types alone cannot refuse.
func (p *Support) Check(pos strictyaml.Pos) (errs strictyaml.Errors) {
	var plain Support
	plain.SetDefaults()
	errs = append(checkWindow(pos, p.Window), checkGlobs(pos, p.Areas...)...)
	switch {
	case p.MinAccounts == 0 && p.FalsePages == Budget{}:
		return append(errs, pos.Errorf("want min_accounts (a number of at least 1) or false_pages (a budget, as in 1 per 30d)"))
	case p.FalsePages == Budget{}:
		return append(errs, aside(pos, map[string]bool{"blips": p.Blips != plain.Blips, "min_excess": p.MinExcess != plain.MinExcess},
			"%s: means nothing without false_pages")...)
	case p.MinAccounts > 0:
		errs = append(errs, pos.Errorf("min_accounts and false_pages: a rule judges by a threshold or by evidence, not by both"))
	}
	errs = append(errs, aside(pos, map[string]bool{"window": p.Window != plain.Window, "times_usual": p.TimesUsual != plain.TimesUsual},
		"%s: means nothing beside false_pages, evidence learns what is usual and needs no window")...)
	return append(errs, checkBlips(pos, p.Blips)...)
}

var _ Params = (*Support)(nil)
