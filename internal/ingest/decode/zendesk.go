package decode

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
)

var zendeskEntry = Entry{
	Name:    "zendesk",
	Summary: `Tickets from Zendesk's event webhooks (zen:event-type:ticket.…), or from triggers that send {"ticket": {…}} with the fields of Zendesk's API.`,
	Example: `{"account_id":22129848,"id":"b7b3b8a5-5a4f-4e0e-9b4d-5e0f3a1d2c3b","type":"zen:event-type:ticket.created","subject":"zen:ticket:4711","time":"2026-09-13T08:50:41Z","zendesk_event_version":"2022-11-06","event":{},"detail":{"id":"4711","subject":"cannot sign in","description":"since nine o'clock nobody can","status":"NEW","priority":"HIGH","organization_id":"10002","created_at":"2026-09-13T08:50:40Z","updated_at":"2026-09-13T08:50:40Z","tags":["login"],"via":{"channel":"web"}}}`,
	New:     func(p *pipeline.Pipeline) ingest.Decoder { return foreign(p, one(parseZendesk)) },
}

type zendeskBody struct {
	Type   string          `json:"type"`
	Time   moment          `json:"time"`
	Detail json.RawMessage `json:"detail"`
	Ticket json.RawMessage `json:"ticket"`
}

type zendeskTicket struct {
	ID           scalar          `json:"id"`
	Subject      string          `json:"subject"`
	Title        string          `json:"title"` // the placeholder {{ticket.title}} is the subject
	Description  string          `json:"description"`
	Status       string          `json:"status"`
	Priority     string          `json:"priority"`
	Organization json.RawMessage `json:"organization"`
	OrgID        scalar          `json:"organization_id"`
	CreatedAt    moment          `json:"created_at"`
	UpdatedAt    moment          `json:"updated_at"`
	Tags         json.RawMessage `json:"tags"`
	Via          json.RawMessage `json:"via"`
	URL          string          `json:"url"`
	Locale       string          `json:"locale"`
}

const zendeskPrefix = "zen:event-type:"

func parseZendesk(raw []byte, at time.Time) (*signal.Ticket, error) {
	var b zendeskBody
	if err := fill(raw, &b); err != nil {
		return nil, err
	}
	name, isEvent := strings.CutPrefix(b.Type, zendeskPrefix)
	source := b.Ticket
	switch {
	case isEvent && !strings.HasPrefix(name, "ticket."):
		return nil, unsupported("%q is about no ticket", cut(b.Type, 80))
	case isEvent:
		source = b.Detail
	}
	if !isObject(source) {
		return nil, missing(map[bool]string{true: "detail", false: "ticket"}[isEvent])
	}
	var t zendeskTicket
	if err := fill(source, &t); err != nil {
		return nil, err
	}
	e := &signal.Ticket{
		ID: t.ID.text, Subject: cmp.Or(t.Subject, t.Title), Text: plainText(t.Description), Account: organization(t.Organization, t.OrgID),
		Language: t.Locale, Source: channel(t.Via), Tags: tagList(t.Tags), Severity: strings.ToLower(t.Priority),
		Status: strings.ToLower(t.Status), URL: t.URL,
	}
	// A new ticket counts when the customer wrote it; what happens to it later, when it happens.
	if name == "ticket.created" {
		e.Time = firstTime(t.CreatedAt.Time, b.Time.Time)
	} else {
		e.Time = firstTime(b.Time.Time, t.UpdatedAt.Time, t.CreatedAt.Time, at)
	}
	return e, complete(e)
}

// complete checks what a ticket cannot be without.
func complete(t *signal.Ticket) error {
	switch {
	case t.ID == "":
		return missing("id")
	case t.Time.IsZero():
		return missing("created_at")
	case t.Subject == "" && t.Text == "":
		return missing("subject or description")
	}
	return nil
}

// organization is the customer: by name where a trigger gives it, else by number.
func organization(raw json.RawMessage, id scalar) string {
	var own struct {
		Name string `json:"name"`
	}
	var text string
	switch {
	case isObject(raw) && json.Unmarshal(raw, &own) == nil && own.Name != "":
		return own.Name
	case len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil && text != "":
		return text
	case id.text == "null" || strings.HasPrefix(id.text, "{") || strings.HasPrefix(id.text, "["):
		return ""
	}
	return id.text
}

func channel(raw json.RawMessage) string {
	var via struct {
		Channel scalar `json:"channel"`
	}
	var text string
	if isObject(raw) && json.Unmarshal(raw, &via) == nil {
		return via.Channel.text
	}
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
		return text
	}
	return ""
}

// tagList reads a list, or the text that the placeholder {{ticket.tags}} gives.
func tagList(raw json.RawMessage) (tags []string) {
	var text string
	var list []scalar
	switch {
	case len(raw) == 0:
	case raw[0] == '"' && json.Unmarshal(raw, &text) == nil:
		return strings.Fields(text)
	case raw[0] == '[' && json.Unmarshal(raw, &list) == nil:
		for _, t := range list {
			if t.text != "" {
				tags = append(tags, t.text)
			}
		}
	}
	return tags
}
