package decode

import (
	"cmp"
	"encoding/json"
	"regexp"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
)

var pagerdutyEntry = Entry{
	Name:    "pagerduty",
	Summary: "Change events in the form of PagerDuty's /v2/change/enqueue, for tools that already send them there.",
	Example: `{"routing_key":"0123456789abcdef0123456789abcdef","payload":{"summary":"checkout 4.2.1 deployed to eu-west","timestamp":"2026-09-13T08:05:00Z","source":"deploy/eu-west","custom_details":{"version":"4.2.1"}},"links":[{"href":"https://example.com/deploys/17","text":"Deploy 17"}]}`,
	New:     func(p *pipeline.Pipeline) ingest.Decoder { return &pagerDuty{foreign(p, one(parsePagerDuty))} },
}

// pagerDuty keeps the routing key out of dead letters: who has it can page people.
type pagerDuty struct{ bodies ingest.Decoder }

var _ ingest.Decoder = (*pagerDuty)(nil)

var routingKey = regexp.MustCompile(`("(?:routing|service)_key"\s*:\s*")[^"]*`)

// Decode reads the record as the decoder of bodies does.
func (d *pagerDuty) Decode(rec ingest.Record, emit func(signal.Event), reject func(ingest.DeadLetter)) {
	first := true
	d.bodies.Decode(rec, emit, func(l ingest.DeadLetter) {
		if l.Payload == nil && first {
			l.Payload = rec.Value
		}
		first = false
		l.Payload = routingKey.ReplaceAll(l.Payload, []byte("${1}[token]"))
		reject(l)
	})
}

type pagerdutyBody struct {
	Action  scalar          `json:"event_action"` // of alert events
	Event   json.RawMessage `json:"event"`        // of webhooks
	Payload *struct {
		Summary   string            `json:"summary"`
		Timestamp moment            `json:"timestamp"`
		Source    string            `json:"source"`
		Component string            `json:"component"`
		Details   map[string]scalar `json:"custom_details"`
	} `json:"payload"`
	Links []struct {
		Href string `json:"href"`
	} `json:"links"`
}

// parsePagerDuty reads a change event: a point in time that says what was done, not when it began. It has no id, so the
// same content at the same time is the same change.
func parsePagerDuty(raw []byte, at time.Time) (*signal.Change, error) {
	var b pagerdutyBody
	if err := fill(raw, &b); err != nil {
		return nil, err
	}
	switch {
	case b.Action.text != "":
		return nil, unsupported("an alert event (event_action %q), no change event", cut(b.Action.text, 40))
	case isObject(b.Event):
		return nil, unsupported("a webhook of PagerDuty about an incident, no change event: send it to the console")
	case b.Payload == nil:
		return nil, missing("payload")
	case b.Payload.Summary == "":
		return nil, missing("payload.summary")
	}
	p := b.Payload
	details := pairsOf(p.Details)
	c := &signal.Change{
		Time: firstTime(p.Timestamp.Time, at), Kind: kindByWords(p.Summary, signal.Config), Phase: signal.Finished, Title: p.Summary,
		Target: cmp.Or(details.Get("service"), p.Component, p.Source), Actor: details.Get("user"), Attributes: details,
	}
	if c.Time.IsZero() {
		return nil, missing("payload.timestamp")
	}
	if len(b.Links) > 0 {
		c.URL = b.Links[0].Href
	}
	c.ID = "pagerduty/" + fingerprint(p.Summary, p.Source, p.Component, string(details), c.Time.Format(time.RFC3339Nano))
	return c, nil
}
