package slack

import (
	"context"
	"fmt"
	"strconv"
	"time"

	slackgo "github.com/slack-go/slack"

	"github.com/tocsin-project/tocsin/internal/respond"
)

// Bounds of a search, which only follows an unknown outcome.
const (
	searchPages = 10
	searchSkew  = 10 * time.Minute // between our clock and Slack's
	listPages   = 20
)

// findRoot looks for the incident's first message, which an earlier attempt may have posted; not is one that it is not.
func (s *Sender) findRoot(ctx context.Context, d respond.Delivery, not string) (ref, error) {
	channel, err := s.channelID(ctx)
	if err != nil {
		return ref{}, err
	}
	cursor := ""
	for range searchPages {
		page, err := s.api.GetConversationHistoryContext(ctx, &slackgo.GetConversationHistoryParameters{
			ChannelID: channel, Cursor: cursor, Limit: 200, Oldest: stamp(d.Since.Add(-searchSkew)), Inclusive: true, IncludeAllMetadata: true})
		if err != nil {
			return ref{}, fmt.Errorf("search the channel: %w", err)
		}
		for _, m := range page.Messages {
			if m.Timestamp != not && ours(m, d.Notice.Incident.ID, "root") {
				return ref{channel: channel, ts: m.Timestamp}, nil
			}
		}
		if cursor = page.ResponseMetaData.NextCursor; cursor == "" {
			break
		}
	}
	return ref{}, nil
}

// findNote tells whether a reply for this sequence, or a later one, is in the thread.
func (s *Sender) findNote(ctx context.Context, d respond.Delivery, at ref, last uint64) (bool, error) {
	cursor := ""
	for range searchPages {
		messages, _, next, err := s.api.GetConversationRepliesContext(ctx, &slackgo.GetConversationRepliesParameters{
			ChannelID: at.channel, Timestamp: at.ts, Cursor: cursor, Limit: 200, Oldest: stamp(d.Since.Add(-searchSkew)), Inclusive: true, IncludeAllMetadata: true})
		if err != nil {
			return false, fmt.Errorf("search the thread: %w", err)
		}
		for _, m := range messages {
			if seq, err := strconv.ParseUint(fmt.Sprint(m.Metadata.EventPayload["sequence"]), 10, 64); err == nil &&
				ours(m, d.Notice.Incident.ID, "note") && seq >= last {
				return true, nil
			}
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	return false, nil
}

func ours(m slackgo.Message, incidentID, part string) bool {
	return m.Metadata.EventType == EventType && m.Metadata.EventPayload["incident"] == incidentID && m.Metadata.EventPayload["part"] == part
}

func stamp(t time.Time) string { return fmt.Sprintf("%d.%06d", t.Unix(), t.Nanosecond()/1000) }

// channelID is the id of the configured channel. Channels are listed only when a search is due before any message
// of this process has told the id.
func (s *Sender) channelID(ctx context.Context) (string, error) {
	s.mu.Lock()
	known := s.channel
	s.mu.Unlock()
	if known != "" {
		return known, nil
	}
	id, err := s.lookUp(ctx, s.cfg.Channel)
	if err == nil && id != "" {
		s.learn(id)
	}
	if err == nil && id == "" {
		err = slackgo.SlackErrorResponse{Err: "channel_not_found"}
	}
	return id, err
}

func (s *Sender) lookUp(ctx context.Context, name string) (string, error) {
	cursor := ""
	for range listPages {
		channels, next, err := s.api.GetConversationsContext(ctx, &slackgo.GetConversationsParameters{
			Cursor: cursor, Limit: 999, ExcludeArchived: true, Types: []string{"public_channel", "private_channel"}})
		if err != nil {
			return "", fmt.Errorf("look up a channel: %w", err)
		}
		for _, c := range channels {
			if c.Name == name {
				return c.ID, nil
			}
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	return "", nil
}
