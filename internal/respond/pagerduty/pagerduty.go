// Package pagerduty speaks PagerDuty's Events API v2: one alert for each incident, triggered, acknowledged and resolved
// under one deduplication key. It knows nothing of PagerDuty's REST API and its users.
package pagerduty

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/respond/route"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// DefaultURL is PagerDuty's endpoint for events.
const DefaultURL = "https://events.pagerduty.com/v2/enqueue"

const maxAnswer = 64 << 10

// Config is one item of pagerduty_configs.
type Config struct {
	RoutingKey     strictyaml.Secret `yaml:"routing_key"`
	RoutingKeyFile string            `yaml:"routing_key_file"`
	URL            string            `yaml:"url"`
	Client         string            `yaml:"client"` // what PagerDuty shows as the sender
}

// Kind is how routes files name this integration.
var Kind = route.Kind{Key: "pagerduty_configs", Name: "pagerduty", Pages: true, Decode: func(n *yaml.Node) (any, error) {
	c := &Config{Client: "Tocsin"}
	if err := strictyaml.DecodeNode(n, c); err != nil {
		return nil, err
	}
	return c, c.check()
}}

func (c *Config) check() error {
	switch {
	case c.RoutingKey == "" && c.RoutingKeyFile == "":
		return fmt.Errorf("routing_key or routing_key_file is required")
	case c.RoutingKey != "" && c.RoutingKeyFile != "":
		return fmt.Errorf("give routing_key or routing_key_file, not both")
	case c.RoutingKey != "":
		return checkKey(c.RoutingKey)
	}
	return nil
}

func checkKey(key strictyaml.Secret) error {
	if n := len(key.Reveal()); n != 32 {
		return fmt.Errorf("a routing key has 32 characters, this one has %d", n)
	}
	return nil
}

// Sender sends to one routing key.
type Sender struct {
	url, key, client, external string
	http                       *http.Client
	now                        func() time.Time
}

var _ respond.Sender = (*Sender)(nil)

// New makes a sender; key is the resolved secret, external the console's address for links, which may be empty.
func New(c *Config, key strictyaml.Secret, external string, client *http.Client) (*Sender, error) {
	if err := checkKey(key); err != nil {
		return nil, fmt.Errorf("pagerduty: %w", err)
	}
	u := c.URL
	if u == "" {
		u = DefaultURL
	}
	if parsed, err := url.Parse(u); err != nil || parsed.Host == "" || parsed.Scheme != "https" && parsed.Scheme != "http" {
		return nil, fmt.Errorf("pagerduty: url must be an http(s) address")
	}
	return &Sender{url: u, key: key.Reveal(), client: c.Client, external: strings.TrimSuffix(external, "/"), http: client, now: time.Now}, nil
}

// PlaceID names the place that a routing key is, without showing the key.
func PlaceID(c *Config, key strictyaml.Secret) string {
	u := c.URL
	if u == "" {
		u = DefaultURL
	}
	sum := sha256.Sum256([]byte(u + "\n" + key.Reveal()))
	return Kind.Name + "-" + hex.EncodeToString(sum[:4])
}

// Key is tocsin/ and the incident's id, or a hash of it where that would be longer than PagerDuty allows.
func (s *Sender) Key(incidentID string) string {
	key := "tocsin/" + incidentID
	if len(key) <= 255 {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "tocsin/sha256/" + hex.EncodeToString(sum[:])
}

// Send makes one call. Repeats are harmless: PagerDuty folds them by the deduplication key.
func (s *Sender) Send(ctx context.Context, d respond.Delivery) (respond.Receipt, error) {
	e := event{RoutingKey: s.key, DedupKey: d.Key}
	switch d.Action {
	case respond.ActionOpen, respond.ActionRaise:
		e.Action = "trigger"
		s.describe(&e, d.Notice)
	case respond.ActionAcknowledge:
		e.Action = "acknowledge"
	case respond.ActionClose:
		e.Action = "resolve"
	default:
		return respond.Receipt{Key: d.Key}, nil // an alert is neither edited nor commented
	}
	body, err := e.marshal()
	if err != nil {
		return respond.Receipt{}, &respond.SendError{Class: respond.Permanent, Reason: respond.ReasonInternal, Err: fmt.Errorf("pagerduty: encode event: %w", err)}
	}
	err = s.post(ctx, body)
	var refused *respond.SendError
	if e.Payload == nil || !errors.As(err, &refused) || refused.Reason != respond.ReasonRefused && refused.Reason != respond.ReasonTooLarge {
		return respond.Receipt{Key: d.Key}, err
	}
	// PagerDuty does not take what we made of it, and would not take it an hour later: a page without its details wakes as
	// well. What is refused bare, too, is refused for its key, and the first answer says so.
	body, bareErr := e.bare(d.Notice).marshal()
	if bareErr == nil {
		bareErr = s.post(ctx, body)
	}
	if bareErr != nil {
		var second *respond.SendError
		if errors.As(bareErr, &second) && second.Class != respond.Permanent {
			return respond.Receipt{}, second
		}
		return respond.Receipt{}, err
	}
	return respond.Receipt{Key: d.Key, Bare: refused}, nil
}

func (s *Sender) post(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return respond.TransportError(err, s.key)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.http.Do(req)
	if err != nil {
		return respond.TransportError(err, s.key)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if se := respond.StatusError(resp.StatusCode, resp.Header, string(text), s.key); se != nil {
		return se
	}
	if err != nil {
		return respond.TransportError(err, s.key)
	}
	var answer struct {
		Status string `json:"status"`
	}
	// A proxy that answers 200 with its log-in page has not paged anybody.
	if json.Unmarshal(text, &answer) != nil || answer.Status != "success" {
		return &respond.SendError{Class: respond.Retry, Reason: respond.ReasonServer, Unknown: true,
			Err: respond.Scrub(fmt.Errorf("status %d, but not PagerDuty's answer: %.100q", resp.StatusCode, text), s.key)}
	}
	return nil
}
