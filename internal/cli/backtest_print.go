package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tocsin-project/tocsin/internal/backtest"
	"github.com/tocsin-project/tocsin/internal/incident"
)

// printBacktest tells of one recording.
func printBacktest(w io.Writer, rec *backtest.Recording) {
	fmt.Fprintf(w, "%s  %s – %s\n", rec.Name, stamp(rec.From), stamp(rec.To))
	if rec.Approximate != "" {
		fmt.Fprintf(w, "  approximate: %s\n", rec.Approximate)
	}
	if len(rec.NotJudged) > 0 {
		fmt.Fprintf(w, "  not judged: %s (kind sql: a recording holds no answers of a database)\n", strings.Join(rec.NotJudged, ", "))
	}
	printVerified(w, rec.Verified)
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, x := range rec.Warnings {
		exhausted := ""
		if x.ExhaustedAt != nil {
			exhausted = "exhausted at about " + stamp(*x.ExhaustedAt)
		}
		fmt.Fprintf(t, "  %s\twarning\t%s %s\t%s\n", stamp(x.At), x.Resource, x.Metric, exhausted)
	}
	_ = t.Flush()
	for _, in := range rec.Incidents {
		fmt.Fprintf(w, "  %s  %s  [%s, %s]  %s\n", when(in.StartedAt), in.ID, in.Severity, in.State, in.Title)
		fmt.Fprintf(w, "      declared %s, resolved %s, %d services, %d failed requests, at least %d accounts, %d tickets\n",
			when(in.DeclaredAt), when(in.ResolvedAt), len(in.Services), in.Impact.Failures, in.Impact.AccountsAtLeast, in.Tickets)
		for _, p := range in.Pages {
			fmt.Fprintf(w, "      page %s to %s [%s]: %s\n", stamp(p.At), p.Receiver, p.Severity, p.Reason)
		}
		for i, s := range in.Suspects {
			if i == 3 {
				break
			}
			fmt.Fprintf(w, "      suspect %d: %s (%.0f%%)\n", i+1, suspectName(string(s.Kind), s.ID, ""), s.Score*100)
		}
	}
	if len(rec.Incidents) == 0 {
		fmt.Fprintln(w, "  no incident")
	}
	firing := 0
	for _, f := range rec.Findings {
		if f.State == incident.Firing {
			firing++
		}
	}
	fmt.Fprintf(w, "  %d findings fired\n", firing)
	printRules(w, rec.Rules, rec.Score != nil)
	if s := rec.Score; s != nil {
		fmt.Fprintf(w, "  score: %s\n", scoreLine(s))
	}
}

func printVerified(w io.Writer, v *backtest.Verified) {
	switch {
	case v == nil:
	case v.Different == 0:
		fmt.Fprintf(w, "  as live: %d ticks came to the same %d changes of findings, %d events and %d warnings, byte for byte\n", v.Ticks, v.Findings, v.Events, v.Warnings)
	default:
		fmt.Fprintf(w, "  not as live: %d of %d ticks came to something else, the first is tick %d\n    stored  %s\n    replay  %s\n",
			v.Different, v.Ticks, v.First.Tick, orNothing(v.First.Stored), orNothing(v.First.Replay))
	}
}

func orNothing(b []byte) string {
	if len(b) == 0 {
		return "nothing"
	}
	return string(b)
}

// scoreLine is a score in one line.
func scoreLine(s *backtest.Score) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d labels declared, %d declared incidents of which %d in quiet hours (%.1f h), %d false pages",
		s.Detected, s.Labels, s.Declared, s.FalseIncidents, s.QuietHours, s.FalsePages)
	if s.FalsePagesWeek != nil {
		fmt.Fprintf(&b, " (%.1f a week)", *s.FalsePagesWeek)
	}
	if s.DelaySeconds != nil {
		fmt.Fprintf(&b, ", median delay %s", time.Duration(*s.DelaySeconds)*time.Second)
	}
	if s.Fragments > 0 || s.Merged > 0 {
		fmt.Fprintf(&b, ", %d fragments, %d wrong merges", s.Fragments, s.Merged)
	}
	for _, x := range []struct {
		what           string
		n, first, top3 int
	}{{"cause", s.Causes, s.CauseFirst, s.CauseFirst3}, {"scope", s.Scopes, s.ScopeFirst, s.ScopeFirst3}} {
		if x.n > 0 {
			fmt.Fprintf(&b, ", %s first in %d and among three in %d of %d", x.what, x.first, x.top3, x.n)
		}
	}
	if s.Services > 0 {
		fmt.Fprintf(&b, ", service in %d of %d", s.ServiceHits, s.Services)
	}
	return b.String()
}

func printRules(w io.Writer, rules []backtest.RuleScore, labelled bool) {
	if len(rules) == 0 {
		return
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	head := "  RULE\tKIND\tFIRED\tEPISODES\tPAGES"
	if labelled {
		head += "\tTRUE\tFALSE\tPRECISION\tRECALL\tDELAY\tFALSE PAGES A WEEK"
	}
	fmt.Fprintln(t, head)
	for i := range rules {
		r := &rules[i]
		name := r.Rule
		if r.Shadow {
			name += " (shadow)"
		}
		fmt.Fprintf(t, "  %s\t%s\t%d\t%d\t%d", name, r.Kind, r.Fired, r.Episodes, r.Pages)
		if labelled {
			delay := "-"
			if r.Delay != nil {
				delay = (time.Duration(*r.Delay) * time.Second).String()
			}
			fmt.Fprintf(t, "\t%d\t%d\t%s\t%s\t%s\t%s", r.True, r.False, maybe("%.2f", r.Precision), maybe("%.2f", r.Recall), delay, maybe("%.1f", r.FalsePagesWeek))
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush()
}

func maybe(format string, v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf(format, *v)
}

// printResult tells everything, and what two sets of rules differ in.
func printResult(w io.Writer, r *backtest.Result, compared bool) {
	for i := range r.Recordings {
		if i > 0 {
			fmt.Fprintln(w)
		}
		printBacktest(w, &r.Recordings[i])
	}
	if len(r.Recordings) > 1 {
		fmt.Fprintf(w, "\nall %d recordings\n", len(r.Recordings))
		printRules(w, r.Rules, r.Total != nil)
		if r.Total != nil {
			fmt.Fprintf(w, "  score: %s\n", scoreLine(r.Total))
		}
	}
	if !compared {
		return
	}
	fmt.Fprintf(w, "\nagainst the other rules: %d pages, theirs %d\n", backtest.Pages(r.Recordings), backtest.Pages(r.Against))
	if len(r.Changes) == 0 {
		fmt.Fprintln(w, "  nobody would be paged otherwise than by them")
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, c := range r.Changes {
		right := ""
		if c.True != nil && *c.True {
			right = "answers a label"
		} else if c.True != nil {
			right = "answers no label"
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\ttheirs %s\t%s\t%s\n", c.Recording, c.Kind, when(c.At), when(c.AgainstAt), c.Title, right)
	}
	_ = t.Flush()
	if before, after := sumOf(r.Against), r.Total; before != nil && after != nil {
		fmt.Fprintf(w, "  theirs: %s\n  these:  %s\n", scoreLine(before), scoreLine(after))
	}
}

func sumOf(recs []backtest.Recording) *backtest.Score {
	r := backtest.Result{Recordings: recs}
	r.Sum()
	return r.Total
}

func when(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return stamp(*t)
}
