package rule

import (
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// MaxWindow is the longest window a rule may ask for: the detector keeps this much of each path at full resolution.
const MaxWindow = time.Hour

const minute = strictyaml.Duration(time.Minute)

// SetDefaults holds what a rule means that leaves a key out.
func (p *FailureRate) SetDefaults() {
	p.Window, p.MinFailures, p.Bad = 2*minute, 10, []string{signal.Failure.String()}
	p.Blips, p.MinExcess, p.BurnRates = 3*minute, 30, workbook()
}

func (p *Latency) SetDefaults() {
	p.Window, p.MinRequests = 2*minute, 20
	p.Blips, p.MinExcess, p.BurnRates = 3*minute, 30, workbook()
}

func (p *Saturation) SetDefaults() { p.TrendOver, p.MinLevel = 15*minute, 0.5 }

func (p *FailureRate) Check(pos strictyaml.Pos) (errs strictyaml.Errors) {
	var plain FailureRate
	plain.SetDefaults()
	errs = append(checkWindow(pos, p.Window), checkPath(pos, &p.Match)...)
	errs = append(errs, checkObjective(pos, p.Objective, p.BurnRates)...)
	errs = append(errs, checkWay(pos, p.Above, p.Objective, p.FalsePages, p.Blips, map[string]bool{
		"window": p.Window != plain.Window, "min_failures": p.MinFailures != plain.MinFailures,
		"min_requests": p.MinRequests != plain.MinRequests, "times_usual": p.TimesUsual != plain.TimesUsual,
	})...)
	if p.Lost > 0 && p.Above == 0 {
		errs = append(errs, pos.Errorf("lost: goes with above only"))
	}
	for _, b := range p.Bad {
		if o, err := signal.ParseOutcome(b); err != nil {
			errs = append(errs, pos.Errorf("bad: %v", err))
		} else if o == signal.Success {
			errs = append(errs, pos.Errorf("bad: success is not bad"))
		}
	}
	if p.Above >= 1 {
		errs = append(errs, pos.Errorf("above: a share is never above 100%%, this rule can never fire"))
	}
	return errs
}

// BadOutcomes is the parsed form of Bad.
func (p *FailureRate) BadOutcomes() (bad [signal.NumOutcomes]bool) {
	for _, b := range p.Bad {
		if o, err := signal.ParseOutcome(b); err == nil {
			bad[o] = true
		}
	}
	return bad
}

func (p *Latency) Check(pos strictyaml.Pos) (errs strictyaml.Errors) {
	var plain Latency
	plain.SetDefaults()
	errs = append(checkWindow(pos, p.Window), checkPath(pos, &p.Match)...)
	errs = append(errs, checkObjective(pos, p.Objective, p.BurnRates)...)
	errs = append(errs, checkWay(pos, p.Above, p.Objective, p.FalsePages, p.Blips, map[string]bool{
		"window": p.Window != plain.Window, "min_requests": p.MinRequests != plain.MinRequests, "times_usual": p.TimesUsual != plain.TimesUsual,
	})...)
	if p.Above >= 1 {
		errs = append(errs, pos.Errorf("above: a share is never above 100%%, this rule can never fire"))
	}
	if top := signal.LatencyBound(signal.LatencyBuckets - 2); p.SlowerThan.Std() > top {
		errs = append(errs, pos.Errorf("slower_than: latencies are told apart up to %s, this rule can never fire", top.Round(time.Second)))
	}
	return errs
}

func (p *Saturation) Check(pos strictyaml.Pos) (errs strictyaml.Errors) {
	errs = append(checkWindow(pos, p.TrendOver), checkGlobs(pos, p.Match.Resource, p.Match.Metric, p.Match.Kind)...)
	if p.Above == 0 && p.ExhaustedIn == 0 {
		errs = append(errs, pos.Errorf("a saturation rule wants above (a level), exhausted_in (a forecast) or both"))
	}
	return errs
}

func checkWindow(pos strictyaml.Pos, w strictyaml.Duration) (errs strictyaml.Errors) {
	if d := w.Std(); d < signal.BucketSize || d > MaxWindow || d%signal.BucketSize != 0 {
		errs = append(errs, pos.Errorf("window %s: want a multiple of %s, at most %s", w, signal.BucketSize, MaxWindow))
	}
	return errs
}

func checkPath(pos strictyaml.Pos, m *PathMatch) (errs strictyaml.Errors) {
	if m.Access != "" {
		if _, err := signal.ParseAccess(m.Access); err != nil {
			errs = append(errs, pos.Errorf("match: %v", err))
		}
	}
	errs = append(errs, checkGlobs(pos, m.Service, m.Operation, m.Area)...)
	for _, k := range SortedKeys(m.Attributes) {
		errs = append(errs, checkGlobs(pos, m.Attributes[k])...)
	}
	return errs
}

var (
	_ Params = (*FailureRate)(nil)
	_ Params = (*Latency)(nil)
	_ Params = (*Saturation)(nil)
)
