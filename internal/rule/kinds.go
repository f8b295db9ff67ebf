package rule

import (
	"go.yaml.in/yaml/v3"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// Kind is one entry of the list of kinds.
type Kind struct {
	Name    string
	Summary string
	Example string
	decode  func(*yaml.Node, *Rule) error
}

// Kinds lists every kind of rule. Adding one means: its parameters here, its evaluator in package detect, an example
// rule with a test in rules/.
var Kinds = []Kind{
	{"failure_rate", "failures of a path or slice exceed a share, or what an objective or their past allows", exampleFailureRate, decodeAs[FailureRate]},
	{"latency", "the share of slow requests of a path exceeds a share, or what an objective or its past allows", exampleLatency, decodeAs[Latency]},
	{"support", "tickets of an area exceed what is usual, counted by accounts: so many times as many, or more than chance explains", exampleSupport, decodeAs[Support]},
	{"saturation", "a resource is near its limit, or will reach it soon", exampleSaturation, decodeAs[Saturation]},
	{"gauge", "a gauge departs from what is usual for it at this time, either way", exampleGauge, decodeAs[Gauge]},
	{"absence", "a service or path that has traffic at this hour of the week, and in those before and after it, falls silent", exampleAbsence, decodeAs[Absence]},
	{"backlog", "waiting work grows past what is usual; ends when it is drained, or after a day once it no longer grows", exampleBacklog, decodeAs[Backlog]},
	{"retries", "requests are tried again and again, or come several times as often as usual", exampleRetries, decodeAs[Retries]},
	{"external", "another system says so: an alert that it sent", exampleExternal, decodeAs[External]},
	{"sql", "a query of ClickHouse of your own returns rows, or rows with a value above or below a bound", exampleSQL, decodeAs[SQL]},
	{"high_impact", "the evidence of all sources together is worth waking somebody: by points, or by what independent sources prove together", exampleHighImpact, decodeAs[HighImpact]},
}

// KindNames lists the names in order.
func KindNames() []string {
	var names []string
	for _, k := range Kinds {
		names = append(names, k.Name)
	}
	return names
}

func kindByName(name string) (Kind, bool) {
	for _, k := range Kinds {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{}, false
}

const exampleFailureRate = `alert: WritesFailing
kind: failure_rate
match: {access: write}
above: 5%
window: 2m
min_failures: 10
for: 20s
keep_firing_for: 2m
`

// FailureRate fires for each matching path whose share of failures over the window is above the threshold, that uses up its error
// budget too fast, or whose failures are evidence that it has changed for the worse: one of above, objective and false_pages is given.
type FailureRate struct {
	Match       PathMatch           `yaml:"match"`
	Above       Share               `yaml:"above"`
	Objective   Share               `yaml:"objective"`   // instead of `above`: the share that must succeed, as in 99.9%, judged by burn rates
	BurnRates   []BurnRate          `yaml:"burn_rates"`  // with `objective`: so many times what it allows fails in both windows; each pair alone suffices
	FalsePages  Budget              `yaml:"false_pages"` // instead of `above`, by evidence: accepted false alarms, as in `1 per 30d`
	Blips       strictyaml.Duration `yaml:"blips"`       // with `false_pages`: trouble that lasts no longer is normal
	MinExcess   uint64              `yaml:"min_excess"`  // with `false_pages`: failures beyond what is tolerated, at least
	Window      strictyaml.Duration `yaml:"window"`
	MinFailures uint64              `yaml:"min_failures"` // fewer failures in the window prove nothing
	MinRequests uint64              `yaml:"min_requests"`
	TimesUsual  float64             `yaml:"times_usual"` // also at least this many times the path's usual share
	Lost        Share               `yaml:"lost"`        // also this part of the successes of the hour before has gone: who is refused was served until now
	Slices      []string            `yaml:"slices"`      // attributes whose single values are judged too
	Bad         []string            `yaml:"bad"`         // outcomes that count; [failure] if left out
}

const exampleLatency = `alert: RequestsSlow
kind: latency
slower_than: 2s
above: 20%
window: 2m
min_requests: 20
for: 20s
`

// Latency fires for each matching path whose share of requests slower than a bound is above the threshold, uses up what an objective
// allows too fast, or has by the evidence become larger.
type Latency struct {
	Match       PathMatch           `yaml:"match"`
	SlowerThan  strictyaml.Duration `yaml:"slower_than" strict:"required"`
	Above       Share               `yaml:"above"`
	Objective   Share               `yaml:"objective"`   // instead of `above`: the share that must succeed, as in 99.9%, judged by burn rates
	BurnRates   []BurnRate          `yaml:"burn_rates"`  // with `objective`: so many times what it allows fails in both windows; each pair alone suffices
	FalsePages  Budget              `yaml:"false_pages"` // instead of `above`, by evidence: accepted false alarms, as in `1 per 30d`
	Blips       strictyaml.Duration `yaml:"blips"`       // with `false_pages`: trouble that lasts no longer is normal
	MinExcess   uint64              `yaml:"min_excess"`  // with `false_pages`: slow requests beyond what is tolerated, at least
	Window      strictyaml.Duration `yaml:"window"`
	MinRequests uint64              `yaml:"min_requests"`
	TimesUsual  float64             `yaml:"times_usual"`
}

const exampleSaturation = `alert: ResourceExhausting
kind: saturation
above: 85%
exhausted_in: 1h
trend_over: 15m
min_level: 60%
for: 1m
`

// Saturation fires for each matching gauge with a limit that is above a level, or that will reach its limit soon by
// its trend.
type Saturation struct {
	Match       GaugeMatch          `yaml:"match"`
	Above       Share               `yaml:"above"`
	ExhaustedIn strictyaml.Duration `yaml:"exhausted_in"`
	TrendOver   strictyaml.Duration `yaml:"trend_over"`
	MinLevel    Share               `yaml:"min_level"` // a trend below this level is not believed
}
