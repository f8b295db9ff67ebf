// Package slack keeps one message for each incident in a channel, edited in place, with a reply for each change. Slack has
// no idempotency keys, so after an unknown outcome the channel is searched for our own metadata before anything is
// posted again. Buttons are sent here; what happens when they are pressed is not decided here.
package slack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"
	"go.yaml.in/yaml/v3"

	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/respond/route"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// EventType marks our messages in their metadata.
const EventType = "tocsin_incident"

// Pace keeps to one message a second for each channel, with some room.
const Pace = 1100 * time.Millisecond

// Config is one item of slack_configs.
type Config struct {
	Token     strictyaml.Secret `yaml:"token"`
	TokenFile string            `yaml:"token_file"`
	Channel   string            `yaml:"channel" strict:"required"` // name or id
	APIURL    string            `yaml:"api_url"`
	// Workspace tells two channels of one name apart, where there are several workspaces.
	Workspace string `yaml:"workspace"`
	// OpenChannel makes a channel for each declared incident.
	OpenChannel bool `yaml:"open_channel"`
}

// Kind is how routes files name this integration.
var Kind = route.Kind{Key: "slack_configs", Name: "slack", Decode: func(n *yaml.Node) (any, error) {
	c := &Config{}
	if err := strictyaml.DecodeNode(n, c); err != nil {
		return nil, err
	}
	switch {
	case c.Token == "" && c.TokenFile == "":
		return nil, errors.New("token or token_file is required")
	case c.Token != "" && c.TokenFile != "":
		return nil, errors.New("give token or token_file, not both")
	}
	c.Channel = strings.TrimPrefix(c.Channel, "#")
	return c, nil
}}

// PlaceID names the channel.
func PlaceID(c *Config) string {
	id := Kind.Name + "-" + c.Channel
	if c.Workspace != "" {
		id += "-" + c.Workspace
	}
	if c.APIURL != "" {
		sum := sha256.Sum256([]byte(c.APIURL))
		id += "-" + hex.EncodeToString(sum[:4])
	}
	return id
}

// Sender posts to one channel.
type Sender struct {
	api      *slackgo.Client
	cfg      *Config
	token    string
	external string

	mu      sync.Mutex
	channel string // the channel's id, once known
}

var _ respond.Sender = (*Sender)(nil)

// New makes a sender; token is the resolved secret, external the console's address for links, which may be empty.
func New(c *Config, token strictyaml.Secret, external string, client *http.Client) (*Sender, error) {
	if token == "" {
		return nil, errors.New("slack: the token is empty")
	}
	opts := []slackgo.Option{slackgo.OptionHTTPClient(client)}
	if c.APIURL != "" {
		opts = append(opts, slackgo.OptionAPIURL(strings.TrimSuffix(c.APIURL, "/")+"/"))
	}
	s := &Sender{api: slackgo.New(token.Reveal(), opts...), cfg: c, token: token.Reveal(), external: strings.TrimSuffix(external, "/")}
	if looksLikeID(c.Channel) {
		s.channel = c.Channel
	}
	return s, nil
}

func looksLikeID(c string) bool {
	return len(c) >= 9 && (c[0] == 'C' || c[0] == 'G') && strings.ToUpper(c) == c
}

// Key is empty: Slack gives the reference, the channel's id and the message's time stamp.
func (s *Sender) Key(string) string { return "" }

// ref is what a record's key holds: the root message, and the incident's own channel where there is one.
type ref struct{ channel, ts, room string }

func parseRef(key string) ref {
	parts := append(strings.Split(key, "/"), "", "", "")
	return ref{parts[0], parts[1], parts[2]}
}

func (r ref) String() string {
	return strings.TrimSuffix(r.channel+"/"+r.ts+"/"+r.room, "/")
}

// Send takes one step.
func (s *Sender) Send(ctx context.Context, d respond.Delivery) (respond.Receipt, error) {
	at := parseRef(d.Key)
	var err error
	switch {
	case d.Action == respond.ActionNote:
		err = s.note(ctx, d, at)
	case at.ts == "":
		at, err = s.open(ctx, d)
	default:
		at, err = s.edit(ctx, d, at)
	}
	if err != nil {
		return respond.Receipt{}, s.classify(err)
	}
	return respond.Receipt{Key: at.String()}, nil
}

func (s *Sender) open(ctx context.Context, d respond.Delivery) (ref, error) {
	if d.Uncertain {
		found, err := s.findRoot(ctx, d, "")
		if err != nil || found.ts != "" {
			return found, err // content that is older than this is edited by the next step
		}
	}
	at, err := s.post(ctx, d, ref{})
	if err != nil {
		return at, err
	}
	s.learn(at.channel)
	return at, nil
}

func (s *Sender) learn(channel string) {
	s.mu.Lock()
	s.channel = channel
	s.mu.Unlock()
}

// post sends blocks, and plain text where Slack does not take them: a page without colours is better than none.
func (s *Sender) post(ctx context.Context, d respond.Delivery, at ref) (ref, error) {
	target := s.cfg.Channel
	s.mu.Lock()
	if s.channel != "" {
		target = s.channel
	}
	s.mu.Unlock()
	channel, ts, err := s.api.PostMessageContext(ctx, target, s.root(d, at.room, true)...)
	if refusesBlocks(err) {
		channel, ts, err = s.api.PostMessageContext(ctx, target, s.root(d, at.room, false)...)
	}
	if err == nil && ts == "" {
		err = errNoAnswer
	}
	return ref{channel, ts, at.room}, err
}

// errNoAnswer is a 200 that is not Slack's: a proxy, most likely. The client library takes it for success.
var errNoAnswer = &respond.SendError{Class: respond.Retry, Reason: respond.ReasonServer, Unknown: true, Err: errors.New("status 200, but not Slack's answer")}

func (s *Sender) edit(ctx context.Context, d respond.Delivery, at ref) (ref, error) {
	room, err := s.room(ctx, d.Notice, at)
	if err != nil {
		return at, err
	}
	at.room = room
	_, ts, _, err := s.api.UpdateMessageContext(ctx, at.channel, at.ts, s.root(d, at.room, true)...)
	if refusesBlocks(err) {
		_, ts, _, err = s.api.UpdateMessageContext(ctx, at.channel, at.ts, s.root(d, at.room, false)...)
	}
	if err == nil && ts == "" {
		err = errNoAnswer
	}
	var se slackgo.SlackErrorResponse
	if errors.As(err, &se) && (se.Err == "message_not_found" || se.Err == "cant_update_message" || se.Err == "edit_window_closed") {
		return s.again(ctx, d, at)
	}
	return at, err
}

// again says what cannot be edited any more, because somebody deleted it, in a new message: rather there than nowhere. The
// answer to an earlier such attempt may have been lost, so the channel is searched for what it posted.
func (s *Sender) again(ctx context.Context, d respond.Delivery, gone ref) (ref, error) {
	found, err := s.findRoot(ctx, d, gone.ts)
	if err != nil {
		return gone, err
	}
	if found.ts == "" {
		return s.post(ctx, d, gone)
	}
	found.room = gone.room
	_, ts, _, err := s.api.UpdateMessageContext(ctx, found.channel, found.ts, s.root(d, found.room, true)...)
	if refusesBlocks(err) {
		_, ts, _, err = s.api.UpdateMessageContext(ctx, found.channel, found.ts, s.root(d, found.room, false)...)
	}
	if err == nil && ts == "" {
		err = errNoAnswer
	}
	return found, err
}

func (s *Sender) note(ctx context.Context, d respond.Delivery, at ref) error {
	if len(d.Notes) == 0 || at.ts == "" {
		return nil
	}
	last := d.Notes[len(d.Notes)-1].Sequence
	if d.Uncertain {
		told, err := s.findNote(ctx, d, at, last)
		if err != nil || told {
			return err
		}
	}
	_, ts, err := s.api.PostMessageContext(ctx, at.channel,
		slackgo.MsgOptionText(noteText(d), false), slackgo.MsgOptionTS(at.ts),
		slackgo.MsgOptionDisableLinkUnfurl(), slackgo.MsgOptionDisableMediaUnfurl(),
		slackgo.MsgOptionMetadata(metadata(d.Notice.Incident.ID, "note", last)))
	if err == nil && ts == "" {
		err = errNoAnswer
	}
	return err
}

func (s *Sender) root(d respond.Delivery, room string, blocks bool) []slackgo.MsgOption {
	text, set := render(d.Notice, s.external, room)
	if !blocks || len(set) == 0 {
		text, set = plain(d.Notice, s.external), nil
	}
	return []slackgo.MsgOption{
		slackgo.MsgOptionText(text, false), slackgo.MsgOptionBlocks(set...), // none clears those of before
		slackgo.MsgOptionDisableLinkUnfurl(), slackgo.MsgOptionDisableMediaUnfurl(),
		slackgo.MsgOptionMetadata(metadata(d.Notice.Incident.ID, "root", d.Notice.Incident.Sequence)),
	}
}

func metadata(incidentID, part string, sequence uint64) slackgo.SlackMetadata {
	return slackgo.SlackMetadata{EventType: EventType, EventPayload: map[string]any{
		"incident": incidentID, "part": part, "sequence": fmt.Sprint(sequence)}}
}

func refusesBlocks(err error) bool {
	var se slackgo.SlackErrorResponse
	return errors.As(err, &se) && (strings.HasPrefix(se.Err, "invalid_blocks") || se.Err == "msg_blocks_too_long" || se.Err == "msg_too_long")
}

// classes are Slack's errors that are not the default, which is permanent and refused.
var classes = map[string]respond.SendError{
	"ratelimited":               {Class: respond.RateLimited, Reason: respond.ReasonRateLimited},
	"rate_limited":              {Class: respond.RateLimited, Reason: respond.ReasonRateLimited},
	"message_limit_exceeded":    {Class: respond.RateLimited, Reason: respond.ReasonRateLimited},
	"internal_error":            {Class: respond.Retry, Reason: respond.ReasonServer, Unknown: true},
	"fatal_error":               {Class: respond.Retry, Reason: respond.ReasonServer, Unknown: true},
	"service_unavailable":       {Class: respond.Retry, Reason: respond.ReasonServer, Unknown: true},
	"team_added_to_org":         {Class: respond.Retry, Reason: respond.ReasonServer},
	"request_timeout":           {Class: respond.Retry, Reason: respond.ReasonTimeout, Unknown: true},
	"not_authed":                {Class: respond.Permanent, Reason: respond.ReasonAuth},
	"invalid_auth":              {Class: respond.Permanent, Reason: respond.ReasonAuth},
	"account_inactive":          {Class: respond.Permanent, Reason: respond.ReasonAuth},
	"token_revoked":             {Class: respond.Permanent, Reason: respond.ReasonAuth},
	"token_expired":             {Class: respond.Permanent, Reason: respond.ReasonAuth},
	"missing_scope":             {Class: respond.Permanent, Reason: respond.ReasonAuth},
	"no_permission":             {Class: respond.Permanent, Reason: respond.ReasonAuth},
	"ekm_access_denied":         {Class: respond.Permanent, Reason: respond.ReasonAuth},
	"channel_not_found":         {Class: respond.Permanent, Reason: respond.ReasonNotFound},
	"not_in_channel":            {Class: respond.Permanent, Reason: respond.ReasonNotFound},
	"is_archived":               {Class: respond.Permanent, Reason: respond.ReasonNotFound},
	"thread_not_found":          {Class: respond.Permanent, Reason: respond.ReasonNotFound},
	"msg_too_long":              {Class: respond.Permanent, Reason: respond.ReasonTooLarge},
	"restricted_action":         {Class: respond.Permanent, Reason: respond.ReasonAuth},
	"restricted_action_channel": {Class: respond.Permanent, Reason: respond.ReasonAuth},
}

func (s *Sender) classify(err error) error {
	var own *respond.SendError
	var limited *slackgo.RateLimitedError
	var status slackgo.StatusCodeError
	var slackErr slackgo.SlackErrorResponse
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &limited):
		return &respond.SendError{Class: respond.RateLimited, Reason: respond.ReasonRateLimited, After: min(limited.RetryAfter, time.Hour), Err: errors.New("slack: rate limited")}
	case errors.As(err, &status):
		return respond.StatusError(status.Code, http.Header{}, status.Status, s.token)
	case errors.As(err, &slackErr):
		c, ok := classes[slackErr.Err]
		if !ok {
			c = respond.SendError{Class: respond.Permanent, Reason: respond.ReasonRefused}
		}
		c.Err = respond.Scrub(fmt.Errorf("slack: %s %s", slackErr.Err, strings.Join(slackErr.ResponseMetadata.Messages, "; ")), s.token)
		return &c
	}
	return respond.TransportError(err, s.token)
}
