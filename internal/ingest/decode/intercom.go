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

var intercomEntry = Entry{
	Name:    "intercom",
	Summary: "Tickets from Intercom's webhooks about conversations and tickets; other topics are refused as unsupported.",
	Example: `{"type":"notification_event","app_id":"a86dr8yl","topic":"conversation.user.created","id":"notif_1","created_at":1789289441,"data":{"type":"notification_event_data","item":{"type":"conversation","id":"215467","created_at":1789289440,"updated_at":1789289440,"source":{"type":"conversation","delivered_as":"customer_initiated","subject":"","body":"<p>Nobody can <b>sign in</b></p>"},"state":"open","priority":"not_priority","tags":{"type":"tag.list","tags":[]}}}}`,
	New:     func(p *pipeline.Pipeline) ingest.Decoder { return foreign(p, one(parseIntercom)) },
}

type intercomBody struct {
	Type      string `json:"type"`
	Topic     string `json:"topic"`
	CreatedAt moment `json:"created_at"`
	Data      struct {
		Item json.RawMessage `json:"item"`
	} `json:"data"`
}

// intercomItem is a conversation or a ticket; the two share most names.
type intercomItem struct {
	Type      string `json:"type"`
	ID        scalar `json:"id"`
	CreatedAt moment `json:"created_at"`
	UpdatedAt moment `json:"updated_at"`
	Title     string `json:"title"`
	State     string `json:"state"`
	Priority  scalar `json:"priority"`
	Company   scalar `json:"company_id"`
	Source    struct {
		Type    string `json:"type"`
		Subject string `json:"subject"`
		Body    string `json:"body"`
	} `json:"source"`
	Tags struct {
		Tags []struct {
			Name string `json:"name"`
		} `json:"tags"`
	} `json:"tags"`
	TicketAttributes json.RawMessage `json:"ticket_attributes"`
	TicketState      json.RawMessage `json:"ticket_state"`
}

func parseIntercom(raw []byte, at time.Time) (*signal.Ticket, error) {
	var b intercomBody
	if err := fill(raw, &b); err != nil {
		return nil, err
	}
	switch kind, _, _ := strings.Cut(b.Topic, "."); {
	case b.Topic == "":
		return nil, missing("topic")
	case kind != "conversation" && kind != "ticket":
		return nil, unsupported("%q is about neither a conversation nor a ticket", cut(b.Topic, 80))
	case !isObject(b.Data.Item):
		return nil, missing("data.item")
	}
	var it intercomItem
	if err := fill(b.Data.Item, &it); err != nil {
		return nil, err
	}
	if it.Type != "" && it.Type != "conversation" && it.Type != "ticket" {
		return nil, unsupported("the topic %q carries a %q", cut(b.Topic, 80), cut(it.Type, 40))
	}
	e := &signal.Ticket{
		ID: it.ID.text, Subject: plainText(cmp.Or(it.Source.Subject, it.Title)), Text: plainText(it.Source.Body), Account: it.Company.text,
		Source: it.Source.Type, Severity: it.Priority.text, Status: it.State,
	}
	if it.Type == "ticket" || strings.HasPrefix(b.Topic, "ticket.") {
		var attrs struct {
			Title       scalar `json:"_default_title_"`
			Description scalar `json:"_default_description_"`
		}
		if isObject(it.TicketAttributes) {
			if err := fill(it.TicketAttributes, &attrs); err != nil {
				return nil, err
			}
		}
		e.Subject, e.Text = cmp.Or(attrs.Title.text, e.Subject), cmp.Or(plainText(attrs.Description.text), e.Text)
		e.Status, e.Source = cmp.Or(ticketState(it.TicketState), e.Status), cmp.Or(e.Source, "ticket")
	}
	if strings.HasSuffix(b.Topic, ".created") {
		e.Time = firstTime(it.CreatedAt.Time, b.CreatedAt.Time)
	} else {
		e.Time = firstTime(b.CreatedAt.Time, it.UpdatedAt.Time, it.CreatedAt.Time, at)
	}
	for _, t := range it.Tags.Tags {
		if t.Name != "" {
			e.Tags = append(e.Tags, t.Name)
		}
	}
	return e, complete(e)
}

// ticketState is a word, or an object that has one, as the version of the interface is.
func ticketState(raw json.RawMessage) string {
	var word string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &word) == nil {
		return word
	}
	var state struct {
		Category string `json:"category"`
	}
	if isObject(raw) {
		_ = json.Unmarshal(raw, &state) // a state that cannot be read is no state
	}
	return state.Category
}
