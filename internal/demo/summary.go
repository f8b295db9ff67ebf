package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
)

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// Summary tells what was declared and why, from what Tocsin itself stored and what the stand-ins received, and
// unless all of it ends now, where to look.
func (d *Demo) Summary(ctx context.Context, ends bool) error {
	list, err := d.api.Incidents(ctx)
	if err != nil {
		return fmt.Errorf("reading the incidents for the summary: %w", err)
	}
	p := d.screen.line
	p("")
	p("%s", strings.Repeat("─", 78))
	if len(list) == 0 {
		p("No incident was declared.")
	}
	aside := 0
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].DeclaredAt.IsZero() {
			aside++
			continue
		}
		d.summarize(list[i])
	}
	if aside > 0 {
		p("Watched and not declared, so nobody was woken:")
		for i := len(list) - 1; i >= 0; i-- {
			if in := list[i]; in.DeclaredAt.IsZero() {
				p("  %s – %s  %s (%s)", hms(in.StartedAt), hms(in.ResolvedAt), in.Title, in.State)
			}
		}
		p("")
	}
	alerts, repeats := 0, 0
	for _, a := range d.PagerDuty.State().Alerts {
		alerts++
		repeats += a.Triggers - 1
	}
	roots, replies := 0, 0
	for _, c := range d.Slack.State().Channels {
		for _, m := range c.Messages {
			roots++
			replies += len(m.Replies)
		}
	}
	p("%s", strings.Repeat("─", 78))
	pages := fmt.Sprintf("%s opened, %s of their keys", counted(alerts, "alert"), counted(repeats, "repeat"))
	posts := fmt.Sprintf("%s in the channel, %d in threads", counted(roots, "message"), replies)
	if ends { // addresses would be of what is gone when they are read
		p("PagerDuty   %s", pages)
		p("Slack       %s", posts)
		return nil
	}
	p("PagerDuty   %-42s %s", pages, d.PagerDuty.Base)
	p("Slack       %-42s %s", posts, d.Slack.Base)
	p("Console     %-42s %s", "", d.api.base)
	p("ClickHouse  curl 'http://%s/?database=tocsin' -d \"SELECT * FROM incidents FORMAT Vertical\"", d.engine.Addr())
	return nil
}

func (d *Demo) summarize(in incident.Incident) {
	p := d.screen.line
	p("%s  [%s, %s]", in.Title, in.Severity, in.State)
	p("  %s", in.ID)
	row := func(name, format string, args ...any) { p("  %-17s %s", name, fmt.Sprintf(format, args...)) }
	if truth := d.Feed.gen.Truth().Labels.Incidents; len(truth) > 0 {
		row("trouble began", "%s UTC for customers (the scenario's truth)", hms(truth[0].Start))
	}
	if len(in.Warnings) > 0 {
		w := in.Warnings[0]
		row("warned", "%s, %s %s at %.0f%%%s", hms(w.At), w.Resource, w.Metric, 100*w.Value/max(w.Limit, 1), exhausted(w))
	}
	row("declared", "%s", hms(in.DeclaredAt))
	row("mitigated", "%s", hms(in.MitigatedAt))
	row("resolved", "%s", hms(in.ResolvedAt))
	row("services", "%d: %s", len(in.Services), shorten(strings.Join(in.Services, ", "), 300))
	row("requests", "%d of %d failed, on %d paths, the worst at %.0f%%", in.Impact.Failures, in.Impact.Requests, len(in.Paths), in.Impact.PeakShare*100)
	row("customers", "at least %d accounts, %d tickets", in.Impact.AccountsAtLeast, in.Tickets)
	for i, s := range in.Suspects {
		if i == 3 {
			break
		}
		row(fmt.Sprintf("suspect %d", i+1), "%s %s (%.0f%%)", s.Kind, called(s), s.Score*100)
		if i > 0 {
			continue
		}
		for _, r := range s.Reasons {
			row("", "+ %s", r)
		}
		for _, r := range s.Against {
			row("", "- %s", r)
		}
	}
	p("")
}

func exhausted(w incident.Warning) string {
	if w.ExhaustedAt.IsZero() {
		return ""
	}
	return ", runs out at about " + hms(w.ExhaustedAt)
}

func hms(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format("15:04:05")
}

func shorten(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
