package slack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	slackgo "github.com/slack-go/slack"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/respond"
)

// noRoom says that a channel for the incident cannot be made, so that it is not tried with each edit.
const noRoom = "-"

// room makes the incident's own channel when it is declared. Its name follows from the incident, so that a second
// attempt finds what the first one made.
func (s *Sender) room(ctx context.Context, n respond.Notice, at ref) (string, error) {
	i := n.Incident
	if at.room != "" || !s.cfg.OpenChannel || n.Summary != nil || i.State != incident.Declared && i.State != incident.Acknowledged {
		return at.room, nil
	}
	name := roomName(i)
	c, err := s.api.CreateConversationContext(ctx, slackgo.CreateConversationParams{ChannelName: name})
	var se slackgo.SlackErrorResponse
	switch {
	case err == nil:
		s.furnish(ctx, c.ID, n, at)
		return c.ID, nil
	case errors.As(err, &se) && se.Err == "name_taken":
		id, err := s.lookUp(ctx, name)
		if err == nil && id == "" {
			id = noRoom
		}
		return id, err
	}
	var classified *respond.SendError
	if errors.As(s.classify(err), &classified) && classified.Class == respond.Permanent {
		return noRoom, nil // a missing right must not keep the message from being edited
	}
	return "", err
}

// furnish sets the topic and points to the first message. Neither is worth a retry.
func (s *Sender) furnish(ctx context.Context, id string, n respond.Notice, at ref) {
	_, _ = s.api.SetTopicOfConversationContext(ctx, id, respond.Cut(respond.Headline(n), 250))
	text := fit(respond.Headline(n), maxSection)
	if url := link(s.external, n.Incident.ID); url != "" {
		text += "\n<" + url + "|Incident in Tocsin>"
	}
	text += "\nStatus and changes: <#" + at.channel + ">"
	_, _, _ = s.api.PostMessageContext(ctx, id, slackgo.MsgOptionText(text, false), slackgo.MsgOptionDisableLinkUnfurl())
}

// roomName is at most 80 characters of what Slack allows: inc-0913-mysql-collab-primary-1a2b3c.
func roomName(i incident.Incident) string {
	slug := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, strings.ToLower(respond.Title(i)))
	for strings.Contains(slug, "--") {
		slug = strings.ReplaceAll(slug, "--", "-")
	}
	slug = strings.Trim(slug[:min(len(slug), 50)], "-")
	sum := sha256.Sum256([]byte(i.ID))
	parts := []string{"inc", i.StartedAt.UTC().Format("0102")}
	if slug != "" {
		parts = append(parts, slug)
	}
	return strings.Join(append(parts, hex.EncodeToString(sum[:3])), "-")
}
