package slack

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/respond"
)

// Slack's limits, and ours below them.
const (
	maxHeader  = 150
	maxSection = 3000
	maxTotal   = 13_000
	maxPlain   = 3500

	listedPaths    = 8
	listedSuspects = 3
)

// Action ids of the buttons; their value is the incident's id.
const (
	ActionAcknowledge = "tocsin_acknowledge"
	ActionResolve     = "tocsin_resolve"
	ActionDismiss     = "tocsin_dismiss"
)

var (
	entities = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	torn     = regexp.MustCompile(`&[a-z]{0,4}…$`)
)

// escape takes the meaning out of foreign text: no mention, no link, no markup of ours.
func escape(s string) string { return entities.Replace(strings.ToValidUTF8(s, "�")) }

// fit escapes and cuts to n characters as Slack counts them, without tearing an entity.
func fit(s string, n int) string {
	s = escape(s)
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return torn.ReplaceAllString(respond.Cut(s, n), "…")
}

func link(external, id string) string {
	if external == "" {
		return ""
	}
	return external + "/incidents/" + url.PathEscape(id)
}

// anchor is a link if the address is one, else the text alone.
func anchor(href, text string, n int) string {
	u, err := url.Parse(href)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || len(href) > 1000 {
		return fit(text, n)
	}
	safe := strings.NewReplacer("|", "%7C", ">", "%3E", "<", "%3C", "&", "&amp;").Replace(u.String())
	return "<" + safe + "|" + fit(text, n) + ">"
}

var marks = map[string]string{"critical": "🔴", "major": "🟠", "minor": "🟡", "warning": "⚠️"}

func headerText(n respond.Notice) string {
	i := n.Incident
	level := respond.Level(i)
	mark, state := marks[level], ""
	if n.Summary != nil {
		return respond.Cut(mark+" "+n.Summary.Title, maxHeader)
	}
	if !i.State.Open() {
		mark, state = "✅", " ("+i.State.String()+")"
	} else if i.State == incident.Mitigated {
		state = " (mitigated)"
	}
	drill := ""
	if n.Drill {
		drill = "TEST "
	}
	return respond.Cut(fmt.Sprintf("%s %s%s%s: %s", mark, drill, strings.ToUpper(level), state, strings.Join(strings.Fields(respond.Title(i)), " ")), maxHeader)
}

// render makes the first message: what a notification shows, and its blocks. If rendering fails in any way there are
// no blocks, and the plain text goes out.
func render(n respond.Notice, external, room string) (text string, blocks []slackgo.Block) {
	text = fit(respond.Headline(n), maxSection)
	defer func() {
		if r := recover(); r != nil {
			blocks = nil
		}
	}()
	i := n.Incident
	add := func(md string) {
		if md != "" {
			blocks = append(blocks, slackgo.NewSectionBlock(mrkdwn(md), nil, nil))
		}
	}
	blocks = append(blocks, slackgo.NewHeaderBlock(slackgo.NewTextBlockObject(slackgo.PlainTextType, headerText(n), false, false)))
	if n.Summary != nil {
		add(summaryText(n.Summary))
		return text, blocks
	}
	add(fit(impact(n), 800))
	if f := fields(n); len(f) > 0 {
		blocks = append(blocks, slackgo.NewSectionBlock(nil, f, nil))
	}
	add(pathList(n))
	add(warningList(n))
	add(suspectList(n))
	if c := contextText(n, external, room); c != "" {
		blocks = append(blocks, slackgo.NewContextBlock("", mrkdwn(c)))
	}
	if i.State.Open() {
		blocks = append(blocks, buttons(i, external, n.Runbook))
	}
	return text, withinBudget(blocks)
}

func mrkdwn(s string) *slackgo.TextBlockObject {
	return slackgo.NewTextBlockObject(slackgo.MarkdownType, s, false, false)
}

func impact(n respond.Notice) string {
	i := n.Incident
	if i.Reason != "" {
		return i.Reason
	}
	return respond.Headline(n)
}

func fields(n respond.Notice) []*slackgo.TextBlockObject {
	i := n.Incident
	var out []*slackgo.TextBlockObject
	add := func(name, value string) {
		if value != "" {
			out = append(out, mrkdwn("*"+name+"*\n"+fit(value, 250)))
		}
	}
	if len(i.Paths) > 0 {
		p := i.Paths[0]
		add("Path", p.Path.String())
		add("Failure rate", fmt.Sprintf("%s at worst, usually %s", respond.Percent(p.PeakShare), respond.Percent(p.BaseShare)))
	}
	if s := len(i.Services) + n.MoreServices; s > 0 {
		names := strings.Join(i.Services[:min(len(i.Services), 4)], ", ")
		if s > 4 {
			names = fmt.Sprintf("%d: %s, …", s, names)
		}
		add("Services", names)
	}
	if i.Impact.AccountsAtLeast > 0 {
		add("Customers at least", respond.Number(i.Impact.AccountsAtLeast))
	}
	if i.Tickets > 0 {
		add("Tickets", fmt.Sprint(i.Tickets))
	}
	add("Started", clock(i.StartedAt))
	add("Declared", clock(i.DeclaredAt))
	if i.State != incident.Suspected {
		commander := i.AcknowledgedBy
		if commander == "" {
			commander = "nobody yet"
		}
		add("Commander", commander)
	}
	add("Mitigated", clock(i.MitigatedAt))
	add("Resolved", clock(i.ResolvedAt))
	return out[:min(len(out), 10)]
}

func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("15:04 UTC, 2 Jan")
}

func pathList(n respond.Notice) string {
	paths := n.Incident.Paths
	if len(paths) < 2 {
		return ""
	}
	var b strings.Builder
	b.WriteString("*Failing*")
	for k, p := range paths {
		if k == listedPaths {
			break
		}
		b.WriteString("\n• " + fit(respond.PathText(p), 200))
	}
	if more := len(paths) - listedPaths + n.MorePaths; more > 0 {
		fmt.Fprintf(&b, "\n+%d more", more)
	}
	return b.String()
}

func warningList(n respond.Notice) string {
	var lines []string
	for _, w := range n.Incident.Warnings {
		text := respond.WarningText(w, n.At)
		if !n.Incident.State.Open() || n.Incident.State != incident.Suspected {
			text = fmt.Sprintf("%s, warned at %s", respond.WarningText(w, w.At), clock(w.At))
		}
		if w.Guard != "" {
			text += ", guard " + w.Guard
		}
		lines = append(lines, "• "+fit(text, 200))
	}
	if len(lines) == 0 {
		return ""
	}
	return "*Running out*\n" + strings.Join(lines, "\n")
}

func suspectList(n respond.Notice) string {
	all := n.Incident.Suspects
	if len(all) == 0 && len(n.Incident.Warnings) > 0 {
		all = n.Incident.Warnings[0].Suspects
	}
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("*Suspects* (only a person confirms a cause)")
	for k, s := range all {
		if k == listedSuspects {
			fmt.Fprintf(&b, "\n+%d more", len(all)-k+n.MoreSuspects)
			break
		}
		fmt.Fprintf(&b, "\n%d. %s, %s", k+1, anchor(s.URL, respond.SuspectName(s), 150), respond.Percent(s.Score))
		for _, r := range s.Reasons {
			b.WriteString("\n      for: " + fit(r, 130))
		}
		for _, a := range s.Against {
			b.WriteString("\n      against: " + fit(a, 130))
		}
	}
	if utf8.RuneCountInString(b.String()) > maxSection {
		return respond.Cut(b.String()[:strings.LastIndex(b.String()[:maxSection], "\n")], maxSection)
	}
	return b.String()
}

func contextText(n respond.Notice, external, room string) string {
	i := n.Incident
	parts := []string{"`" + fit(i.ID, 120) + "` " + i.State.String()}
	if room != "" && room != noRoom {
		parts = append(parts, "<#"+room+">")
	}
	if href := link(external, i.ID); href != "" {
		parts = append(parts, anchor(href, "evidence", 40))
	}
	if n.Runbook != "" {
		parts = append(parts, anchor(n.Runbook, "runbook", 40))
	}
	if i.Muted != "" {
		parts = append(parts, "pages muted: "+fit(i.Muted, 150))
	}
	if i.MergedInto != "" {
		parts = append(parts, "goes on in `"+fit(i.MergedInto, 120)+"`")
	}
	if i.Flapping {
		parts = append(parts, "flapping")
	}
	return strings.Join(parts, " · ")
}

func buttons(i incident.Incident, external, _ string) *slackgo.ActionBlock {
	button := func(id, label string, style slackgo.Style) *slackgo.ButtonBlockElement {
		b := slackgo.NewButtonBlockElement(id, respond.Cut(i.ID, 1900), slackgo.NewTextBlockObject(slackgo.PlainTextType, label, false, false))
		b.Style = style
		return b
	}
	var set []slackgo.BlockElement
	if i.AcknowledgedAt.IsZero() {
		set = append(set, button(ActionAcknowledge, "Acknowledge", slackgo.StylePrimary))
	}
	set = append(set, button(ActionResolve, "Resolve", slackgo.StyleDefault), button(ActionDismiss, "Not an incident", slackgo.StyleDanger))
	return slackgo.NewActionBlock("", set...)
}

func summaryText(s *respond.Summary) string {
	lines := make([]string, 0, len(s.Lines)+1)
	for _, l := range s.Lines {
		lines = append(lines, "• "+fit(l, 250))
	}
	if s.More > 0 {
		lines = append(lines, fmt.Sprintf("+%d more", s.More))
	}
	text := strings.Join(lines, "\n")
	if text == "" {
		return ""
	}
	return respond.Cut(text, maxSection)
}

// withinBudget drops sections from the end, header and buttons kept, until the whole fits: each block may be legal and the message
// still too long.
func withinBudget(blocks []slackgo.Block) []slackgo.Block {
	for len(blocks) > 3 && size(blocks) > maxTotal {
		at := len(blocks) - 2
		blocks = append(blocks[:at:at], blocks[at+1:]...)
	}
	return blocks
}

func size(blocks []slackgo.Block) int {
	n := 0
	count := func(t *slackgo.TextBlockObject) {
		if t != nil {
			n += utf8.RuneCountInString(t.Text)
		}
	}
	for _, b := range blocks {
		switch b := b.(type) {
		case *slackgo.HeaderBlock:
			count(b.Text)
		case *slackgo.SectionBlock:
			count(b.Text)
			for _, f := range b.Fields {
				count(f)
			}
		case *slackgo.ContextBlock:
			for _, e := range b.ContextElements.Elements {
				if t, ok := e.(*slackgo.TextBlockObject); ok {
					count(t)
				}
			}
		case *slackgo.ActionBlock:
			n += 100
		}
	}
	return n
}

// plain is the message without blocks.
func plain(n respond.Notice, external string) string {
	lines := []string{headerText(n), respond.Headline(n)}
	if n.Summary != nil {
		lines = append(lines, n.Summary.Lines...)
	}
	if href := link(external, n.Incident.ID); href != "" {
		lines = append(lines, href)
	}
	return fit(strings.Join(lines, "\n"), maxPlain)
}

// noteText is one reply for all changes since the last.
func noteText(d respond.Delivery) string {
	const listed = 15
	var lines []string
	if d.Dropped > 0 {
		lines = append(lines, fmt.Sprintf("%d earlier changes are in the console", d.Dropped))
	}
	notes := d.Notes
	skipped := 0
	if len(notes) > listed { // the newest say most
		skipped = len(notes) - listed
		notes = notes[skipped:]
	}
	if skipped > 0 {
		lines = append(lines, fmt.Sprintf("+%d more before these", skipped))
	}
	for _, n := range notes {
		lines = append(lines, "`"+n.At.UTC().Format("15:04:05")+"` "+fit(n.Text, 180))
	}
	return strings.Join(lines, "\n")
}
