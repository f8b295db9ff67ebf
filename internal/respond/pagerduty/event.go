package pagerduty

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/respond"
)

// Limits of Events API v2.
const (
	maxSummary = 1024
	maxBody    = 512 << 10
	maxSource  = 255
)

type event struct {
	RoutingKey string   `json:"routing_key"`
	Action     string   `json:"event_action"`
	DedupKey   string   `json:"dedup_key"`
	Payload    *payload `json:"payload,omitempty"`
	Client     string   `json:"client,omitempty"`
	ClientURL  string   `json:"client_url,omitempty"`
	Links      []link   `json:"links,omitempty"`
}

type payload struct {
	Summary   string         `json:"summary"`
	Source    string         `json:"source"`
	Severity  string         `json:"severity"`
	Timestamp string         `json:"timestamp,omitempty"`
	Component string         `json:"component,omitempty"`
	Group     string         `json:"group,omitempty"`
	Class     string         `json:"class,omitempty"`
	Details   map[string]any `json:"custom_details,omitempty"`
}

type link struct {
	Href string `json:"href"`
	Text string `json:"text"`
}

// severities maps ours to PagerDuty's; what it does not hold is an error there, the safe middle.
var severities = map[incident.Severity]string{incident.Critical: "critical", incident.Major: "error", incident.Minor: "warning"}

// describe fills a trigger. If that fails in any way, a plain one goes out: half a page is better than none.
func (s *Sender) describe(e *event, n respond.Notice) {
	defer func() {
		if r := recover(); r != nil {
			e.Payload = &payload{Summary: clip(respond.Title(n.Incident), maxSummary), Source: "tocsin", Severity: severity(n)}
			e.Links = nil
		}
	}()
	i := n.Incident
	e.Client = s.client
	p := &payload{Summary: clip(respond.Headline(n), maxSummary), Severity: severity(n), Class: string(i.Impact.Kind), Details: details(n)}
	first := func(lists ...[]string) string {
		for _, l := range lists {
			if len(l) > 0 && l[0] != "" {
				return clip(l[0], maxSource)
			}
		}
		return ""
	}
	p.Source = first(i.Services, i.Resources, []string{"tocsin"})
	p.Component = first(i.Resources, i.Services)
	p.Group = first(i.Areas)
	if at := i.DeclaredAt; !at.IsZero() {
		p.Timestamp = at.UTC().Format("2006-01-02T15:04:05.000Z07:00")
	} else if !n.At.IsZero() {
		p.Timestamp = n.At.UTC().Format("2006-01-02T15:04:05.000Z07:00")
	}
	e.Payload = p
	if s.external != "" && n.Summary == nil {
		e.ClientURL = s.external + "/incidents/" + url.PathEscape(i.ID)
		e.addLink(e.ClientURL, "Incident in Tocsin")
	}
	e.addLink(n.Runbook, "Runbook")
	if sus, ok := respond.FirstSuspect(i); ok {
		e.addLink(sus.URL, "Suspect: "+respond.SuspectName(sus))
	}
}

// bareSummary is how much of a title a bare event carries.
const bareSummary = 200

// bare is the event with nothing but what Events API v2 requires, in plain characters.
func (e *event) bare(n respond.Notice) *event {
	plain := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, respond.Title(n.Incident))
	b := &event{RoutingKey: e.RoutingKey, Action: e.Action, DedupKey: e.DedupKey}
	b.Payload = &payload{Summary: strings.TrimSpace(clip(fmt.Sprintf("%s (%s)", plain, clip(n.Incident.ID, 100)), bareSummary)), Source: "tocsin", Severity: severity(n)}
	return b
}

func severity(n respond.Notice) string {
	if s := severities[n.Incident.Severity]; s != "" {
		return s
	}
	return "error"
}

// addLink leaves out what is no web address: PagerDuty would refuse the whole page for it.
func (e *event) addLink(href, text string) {
	u, err := url.Parse(href)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return
	}
	e.Links = append(e.Links, link{href, clip(text, 255)})
}

func details(n respond.Notice) map[string]any {
	i := n.Incident
	d := map[string]any{"incident": i.ID, "severity": i.Severity.String(), "title": respond.Title(i)}
	if n.Drill {
		d["TEST"] = "This is a drill. Nothing is wrong and no action is needed."
	}
	if n.Summary != nil {
		lines := slices.Clone(n.Summary.Lines)
		if n.Summary.More > 0 {
			lines = append(lines, fmt.Sprintf("+%d more", n.Summary.More))
		}
		d["incidents"] = lines
		return d
	}
	set := func(key string, v any, there bool) {
		if there {
			d[key] = v
		}
	}
	set("started", i.StartedAt.UTC().Format(time.RFC3339), !i.StartedAt.IsZero())
	set("why", i.Reason, i.Reason != "")
	set("accounts_at_least", i.Impact.AccountsAtLeast, i.Impact.AccountsAtLeast > 0)
	set("failed_requests", i.Impact.Failures, i.Impact.Failures > 0)
	set("tickets", i.Tickets, i.Tickets > 0)
	set("services", more(i.Services, n.MoreServices), len(i.Services) > 0)
	set("resources", i.Resources, len(i.Resources) > 0)
	set("runbook", n.Runbook, n.Runbook != "")
	var paths, scope, suspects, warnings []string
	for _, p := range i.Paths {
		paths = append(paths, respond.PathText(p))
	}
	set("paths", more(paths, n.MorePaths), len(paths) > 0)
	for _, s := range i.Scope {
		if s.Attributes != "" {
			scope = append(scope, fmt.Sprintf("%s explains %s of the failures", s.Attributes, respond.Percent(s.Share)))
		}
	}
	set("scope", scope, len(scope) > 0)
	for _, s := range i.Suspects {
		text := fmt.Sprintf("%s (%s)", respond.SuspectName(s), respond.Percent(s.Score))
		if len(s.Reasons) > 0 {
			text += "; for: " + strings.Join(s.Reasons, "; ")
		}
		if len(s.Against) > 0 {
			text += "; against: " + strings.Join(s.Against, "; ")
		}
		suspects = append(suspects, text)
	}
	set("suspects", more(suspects, n.MoreSuspects), len(suspects) > 0)
	for _, w := range i.Warnings {
		warnings = append(warnings, respond.WarningText(w, n.At))
	}
	set("warnings", warnings, len(warnings) > 0)
	return d
}

func more(list []string, n int) []string {
	if n > 0 {
		return append(slices.Clone(list), fmt.Sprintf("+%d more", n))
	}
	return list
}

// clip cuts by characters, as PagerDuty counts, and mends what is not UTF-8, which JSON cannot carry.
func clip(s string, n int) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "�")
	}
	return respond.Cut(s, n)
}

// marshal keeps the body within PagerDuty's limit: details go first, longest first, the summary stays.
func (e *event) marshal() ([]byte, error) {
	for {
		body, err := json.Marshal(e)
		if err != nil && e.Payload != nil && e.Payload.Details != nil {
			e.Payload.Details = nil // a number that JSON lacks
			continue
		}
		if err != nil || len(body) <= maxBody || e.Payload == nil || len(e.Payload.Details) == 0 {
			return body, err
		}
		longest, size := "", -1
		for k, v := range e.Payload.Details {
			if raw, err := json.Marshal(v); err == nil && (len(raw) > size || len(raw) == size && k < longest) {
				longest, size = k, len(raw)
			}
		}
		delete(e.Payload.Details, longest)
	}
}
