package respond

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Headline is the one line that a woken engineer reads at three in the morning: how bad, what is broken for whom, and
// what probably did it, in that order, because pagers cut the end off.
func Headline(n Notice) string {
	i := n.Incident
	var b strings.Builder
	if n.Drill {
		b.WriteString("TEST, nothing is wrong: ")
	}
	fmt.Fprintf(&b, "[%s] ", Level(i))
	if n.Summary != nil {
		b.WriteString(n.Summary.Title)
		return b.String()
	}
	b.WriteString(what(n))
	if s, ok := FirstSuspect(i); ok {
		b.WriteString(" — suspect: " + SuspectName(s))
		if len(s.Reasons) > 0 {
			b.WriteString(" (" + s.Reasons[0] + ")")
		}
	}
	return b.String()
}

// Level is the word in brackets: what is only suspected is a warning, whatever it may become.
func Level(i incident.Incident) string {
	if i.State == incident.Suspected {
		return "warning"
	}
	return i.Severity.String()
}

// FirstSuspect is the leading suspect, if there is one worth naming.
func FirstSuspect(i incident.Incident) (incident.Suspect, bool) {
	all := i.Suspects
	if len(all) == 0 && len(i.Warnings) > 0 {
		all = i.Warnings[0].Suspects
	}
	if len(all) == 0 || all[0].Kind == incident.SuspectUnknown {
		return incident.Suspect{}, false
	}
	return all[0], true
}

// SuspectName is a suspect as people call it.
func SuspectName(s incident.Suspect) string {
	if s.Kind == incident.SuspectUnknown {
		return "no cause known"
	}
	if s.Title != "" {
		return s.Title
	}
	return string(s.Kind) + " " + s.ID
}

func what(n Notice) string {
	i := n.Incident
	if i.State == incident.Suspected && len(i.Warnings) > 0 {
		return WarningText(i.Warnings[0], n.At)
	}
	if !i.State.Open() {
		return i.State.String() + ": " + Title(i)
	}
	var parts []string
	if len(i.Paths) > 0 && i.Paths[0].PeakShare > 0 && i.Impact.Kind != incident.ImpactLatency {
		parts = append(parts, PathText(i.Paths[0]))
	} else {
		parts = append(parts, Title(i))
	}
	if s := len(i.Services) + n.MoreServices; s > 1 {
		parts = append(parts, fmt.Sprintf("%d services", s))
	}
	if a := i.Impact.AccountsAtLeast; a > 0 {
		parts = append(parts, "at least "+Number(a)+" customers")
	}
	if i.Tickets > 0 {
		parts = append(parts, fmt.Sprintf("%d tickets", i.Tickets))
	}
	if !i.StartedAt.IsZero() {
		parts = append(parts, "since "+i.StartedAt.UTC().Format("15:04")+" UTC")
	}
	return strings.Join(parts, ", ")
}

// Title is the incident's title, or what stands for it.
func Title(i incident.Incident) string {
	switch {
	case i.Title != "":
		return i.Title
	case len(i.Services) > 0:
		return strings.Join(i.Services[:min(3, len(i.Services))], ", ")
	case len(i.Resources) > 0:
		return i.Resources[0]
	}
	return "incident " + i.ID
}

// PathText says how badly a path fails: "issues/create: 96% of writes fail (usually 0.3%)".
func PathText(p incident.PathImpact) string {
	verb := "writes"
	if p.Path.Access == signal.Read {
		verb = "reads"
	}
	name := p.Path.Service + "/" + p.Path.Operation
	if strings.HasPrefix(p.Path.Operation, "/") {
		name = p.Path.Service + " " + p.Path.Operation // a route brings its own slash
	}
	if p.Attributes != "" {
		name += " (" + p.Attributes.String() + ")"
	}
	return fmt.Sprintf("%s: %s of %s fail (usually %s)", name, Percent(p.PeakShare), verb, Percent(p.BaseShare))
}

// WarningText says when a resource runs out, counted from at.
func WarningText(w incident.Warning, at time.Time) string {
	name := strings.TrimSpace(w.Resource + " " + w.Metric)
	level := ""
	if w.Limit > 0 {
		level = fmt.Sprintf(" (%s of %s)", short(w.Value), short(w.Limit))
	}
	if w.ExhaustedAt.IsZero() || w.Limit > 0 && w.Value >= w.Limit {
		return name + " near its limit" + level
	}
	if left := w.ExhaustedAt.Sub(at); left > 0 {
		return fmt.Sprintf("%s exhausted in ~%s%s", name, Minutes(left), level)
	}
	return name + " exhausted" + level
}

// Minutes is a duration as people say it: 14 min, 2 h 5 min.
func Minutes(d time.Duration) string {
	m := int(math.Ceil(d.Minutes()))
	if m < 60 {
		return fmt.Sprintf("%d min", m)
	}
	if m%60 == 0 {
		return fmt.Sprintf("%d h", m/60)
	}
	return fmt.Sprintf("%d h %d min", m/60, m%60)
}

// Percent has the digits that matter: 96%, 8.8%, 0.03%.
func Percent(share float64) string {
	p := share * 100
	switch {
	case p == 0:
		return "0%"
	case p >= 10 && p < 99.95:
		return strconv.FormatFloat(p, 'f', 0, 64) + "%"
	case p >= 1:
		return strings.TrimSuffix(strconv.FormatFloat(p, 'f', 1, 64), ".0") + "%"
	default:
		return strconv.FormatFloat(p, 'g', 1, 64) + "%"
	}
}

// Number groups thousands: 12,345.
func Number(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func short(v float64) string {
	if v == math.Trunc(v) && v >= 0 && v < 1e15 {
		return Number(uint64(v))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
