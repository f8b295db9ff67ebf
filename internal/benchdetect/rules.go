package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// judgement is one rule, said in both languages. It holds what both can say: Tocsin's rules by what is usual for a path or by evidence,
// and its absence by habit, remember and learn; no expression of PromQL does.
type judgement struct {
	name   string
	access string // "": both
	slow   bool   // of latency, else of failures
	slices bool   // by region, else by path
	window time.Duration
	above  float64
	// Instead of window and above: more than factor times what the objective allows, over both windows.
	objective, factor float64
	short             time.Duration
	atLeast           int // failures
	of                int // requests
	hold, keep        time.Duration
}

const hour = time.Hour

var judgements = []judgement{
	{name: "WritesFailing", access: "write", window: time.Minute, above: .1, atLeast: 10, of: 20},
	{name: "ReadsFailing", access: "read", window: time.Minute, above: .1, atLeast: 10, of: 20},
	{name: "PathFailing2m", window: 2 * time.Minute, above: .1, atLeast: 10, of: 20, hold: 30 * time.Second},
	{name: "PathFailing5m", window: 5 * time.Minute, above: .1, atLeast: 20, of: 50, hold: time.Minute},
	{name: "PathFailing10m", window: 10 * time.Minute, above: .06, atLeast: 20, of: 50, keep: 2 * time.Minute},
	{name: "PathFailing30m", window: 30 * time.Minute, above: .01, atLeast: 20, of: 100, keep: 5 * time.Minute},
	{name: "PathFailing1h", window: hour, above: .01, atLeast: 20, of: 100},
	{name: "PathBurns", objective: .99, factor: 14.4, window: hour, short: 5 * time.Minute, atLeast: 10},
	{name: "PathBurnsFast", objective: .995, factor: 30, window: 30 * time.Minute, short: 2 * time.Minute, atLeast: 10},
	{name: "SliceWritesFailing", access: "write", slices: true, window: time.Minute, above: .2, atLeast: 10, of: 20},
	{name: "SliceFailing2m", slices: true, window: 2 * time.Minute, above: .2, atLeast: 10, of: 20, hold: 30 * time.Second},
	{name: "SliceFailing5m", slices: true, window: 5 * time.Minute, above: .15, atLeast: 10, of: 20},
	{name: "SliceFailing10m", slices: true, window: 10 * time.Minute, above: .15, atLeast: 10, of: 50, keep: 2 * time.Minute},
	{name: "SliceFailing30m", slices: true, window: 30 * time.Minute, above: .1, atLeast: 20, of: 50},
	{name: "SliceFailing1h", slices: true, window: hour, above: .1, atLeast: 20, of: 50},
	{name: "SliceBurns", slices: true, objective: .99, factor: 14.4, window: hour, short: 5 * time.Minute, atLeast: 10},
	{name: "SliceSlow5m", slow: true, slices: true, window: 5 * time.Minute, above: .2, of: 20},
	{name: "PathSlow2m", slow: true, window: 2 * time.Minute, above: .2, of: 20, hold: 30 * time.Second},
	{name: "PathSlow10m", slow: true, window: 10 * time.Minute, above: .2, of: 50},
	{name: "PathSlowBurns", slow: true, objective: .99, factor: 14.4, window: hour, short: 5 * time.Minute, of: 20},
}

func duration(d time.Duration) string { return strictyaml.Duration(d).String() }

func number(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }

// tocsinRules writes the rules as Tocsin's.
func tocsinRules() string {
	var b strings.Builder
	b.WriteString("groups:\n- name: bench\n  rules:\n")
	for _, j := range judgements {
		kind := "failure_rate"
		if j.slow {
			kind = "latency"
		}
		fmt.Fprintf(&b, "  - alert: %s\n    kind: %s\n", j.name, kind)
		var match []string
		if j.access != "" {
			match = append(match, "access: "+j.access)
		}
		if j.slices {
			match = append(match, "attributes: {region: '*'}")
		}
		key := func(name, value string) { fmt.Fprintf(&b, "    %s: %s\n", name, value) }
		key("match", "{"+strings.Join(match, ", ")+"}")
		if j.slow {
			key("slower_than", duration(slowerThan))
		}
		if j.objective > 0 {
			key("objective", number(100*j.objective)+"%")
			key("burn_rates", fmt.Sprintf("[%s over %s and %s]", number(j.factor), duration(j.window), duration(j.short)))
		} else {
			key("above", number(100*j.above)+"%")
			key("window", duration(j.window))
			key("times_usual", "0")
		}
		if j.atLeast > 0 {
			key("min_failures", strconv.Itoa(j.atLeast))
		}
		if j.of > 0 {
			key("min_requests", strconv.Itoa(j.of))
		}
		if j.hold > 0 {
			key("for", duration(j.hold))
		}
		if j.keep > 0 {
			key("keep_firing_for", duration(j.keep))
		}
	}
	return b.String()
}

// A variant is a way to write the same rules for Prometheus.
type variant struct {
	name, about string
	lastPart    bool // as Tocsin does, a threshold also asks whether the last part of its window is still bad
	recorded    bool // sums by path over a minute are recorded, and longer windows of paths read those
	offset      bool // counters are subtracted
}

var variants = []variant{
	{name: "same", about: "the same conditions, each count taken once", lastPart: true},
	{name: "lean", about: "without asking the last part of a window, as most rules are written"},
	{name: "recorded", about: "lean, and what is judged by path reads sums that recording rules made", recorded: true},
	{name: "offset", about: "lean, and counters are subtracted instead of increase(): wrong whenever one starts anew", offset: true},
}

const recording, alerting = "1-recorded", "2-alerts"

// promRules writes the rules as Prometheus' rule file.
func promRules(v variant) (string, error) {
	type entry struct {
		Record        string            `yaml:"record,omitempty"`
		Alert         string            `yaml:"alert,omitempty"`
		Expr          string            `yaml:"expr"`
		For           string            `yaml:"for,omitempty"`
		KeepFiringFor string            `yaml:"keep_firing_for,omitempty"`
		Labels        map[string]string `yaml:"labels,omitempty"`
	}
	type group struct {
		Name     string  `yaml:"name"`
		Interval string  `yaml:"interval"`
		Rules    []entry `yaml:"rules"`
	}
	alerts := group{Name: alerting, Interval: "10s"}
	for _, j := range judgements {
		e := entry{Alert: j.name, Expr: j.promql(v)}
		if j.hold > 0 {
			e.For = duration(j.hold)
		}
		if j.keep > 0 {
			e.KeepFiringFor = duration(j.keep)
		}
		alerts.Rules = append(alerts.Rules, e)
	}
	groups := []group{alerts}
	if v.recorded {
		g := group{Name: recording, Interval: "10s"}
		for _, m := range []string{"requests", "failures", "slow"} {
			g.Rules = append(g.Rules, entry{Record: "path:" + m + ":increase1m", Expr: "sum by (service, operation, access) (increase(" + m + "_total[1m]))"})
		}
		groups = []group{g, alerts}
	}
	out, err := yaml.Marshal(map[string]any{"groups": groups})
	if err != nil {
		return "", fmt.Errorf("write Prometheus' rules: %w", err)
	}
	return string(out), nil
}

// promql is the expression of a rule. Comparisons filter and keep their left side, so that each count is taken once.
func (j *judgement) promql(v variant) string {
	bad := "failures"
	if j.slow {
		bad = "slow"
	}
	over := func(metric string, w time.Duration) string {
		labels := ""
		if j.access != "" {
			labels = `{access="` + j.access + `"}`
		}
		raw := fmt.Sprintf("increase(%s_total%s[%s])", metric, labels, duration(w))
		if v.offset {
			raw = fmt.Sprintf("(%[1]s_total%[2]s - %[1]s_total%[2]s offset %[3]s)", metric, labels, duration(w))
		}
		minute := fmt.Sprintf("path:%s:increase1m%s", metric, labels)
		switch {
		case j.slices:
			return raw
		case !v.recorded:
			return "sum by (service, operation, access) (" + raw + ")"
		case w <= time.Minute:
			return minute
		default:
			return fmt.Sprintf("(avg_over_time(%s[%s]) * %s)", minute, duration(w), number(w.Minutes()))
		}
	}
	share := func(w time.Duration, atLeast, of int) string {
		least := func(what string, n int) string {
			if n == 0 {
				return what
			}
			return fmt.Sprintf("(%s >= %d)", what, n)
		}
		return least(over(bad, w), atLeast) + " / " + least(over("requests", w), of)
	}
	above, short, shortAbove := j.above, time.Duration(0), j.above/2
	if j.objective > 0 {
		above = j.factor * (1 - j.objective)
		short, shortAbove = j.short, above
	} else if v.lastPart {
		short = max(30*time.Second, j.window/5).Truncate(10 * time.Second)
	}
	expr := fmt.Sprintf("%s > %s", share(j.window, j.atLeast, j.of), number(above))
	if short > 0 {
		expr += fmt.Sprintf(" and %s > %s", share(short, 0, 0), number(shortAbove))
	}
	return expr
}
