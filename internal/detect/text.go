package detect

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// percent is short enough to read aloud: 0.2%, 8.8%, 84%.
func percent(v float64) string {
	switch p := v * 100; {
	case p == 0:
		return "0%"
	case p < 0.1:
		return "under 0.1%"
	case p < 9.95:
		return fmt.Sprintf("%.1f%%", p)
	default:
		return fmt.Sprintf("%.0f%%", math.Min(p, 100*math.Max(v, 1)))
	}
}

// shortDuration is for sentences: "12 min", "1 h 30 min", "20 s".
func shortDuration(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Round(time.Second)/time.Second))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Round(time.Minute)/time.Minute))
	}
	d = d.Round(time.Minute)
	h, m := d/time.Hour, d%time.Hour/time.Minute
	if m == 0 {
		return fmt.Sprintf("%d h", h)
	}
	return fmt.Sprintf("%d h %d min", h, m)
}

func number(v float64, unit string) string {
	s := fmt.Sprintf("%.4g", v)
	if math.Abs(v) >= 1000 && math.Abs(v) < 1e7 {
		s = fmt.Sprintf("%.0f", v)
	}
	// Units in braces are UCUM's annotations, such as {connection}: they say what is counted, which the metric's name does.
	if unit != "" && unit != "1" && !strings.HasPrefix(unit, "{") {
		s += " " + unit
	}
	return s
}

// list names a few and counts the rest.
func list(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

func clock(t time.Time) string { return t.UTC().Format("15:04") }

// metricWords turns a metric's name into what runs out: connections_used is connections.
func metricWords(metric string) string {
	for _, suffix := range []string{"_used", "_in_use", "_utilization", "_usage", "_used_bytes", "_bytes", "_percent", "_ratio"} {
		if s, ok := strings.CutSuffix(metric, suffix); ok && s != "" {
			metric = s
			break
		}
	}
	return strings.ReplaceAll(metric, "_", " ")
}

// runOut agrees with the metric's number.
func runOut(metric string) string {
	if strings.HasSuffix(metricWords(metric), "s") {
		return "run out"
	}
	return "runs out"
}
