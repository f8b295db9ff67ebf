package slack

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const botUser = "U0TOCSIN00"

// All methods below are called with the mutex held.

func (s *Server) authTest(args) (reply, string) {
	return reply{"url": s.Base + "/", "team": "Stand-in", "user": "tocsin", "team_id": "T0STANDIN0", "user_id": botUser, "bot_id": "B0TOCSIN00"}, ""
}

func (s *Server) addChannel(name string) *Channel {
	s.state.Channels = append(s.state.Channels, Channel{ID: fmt.Sprintf("C%09d", len(s.state.Channels)+1), Name: name})
	return &s.state.Channels[len(s.state.Channels)-1]
}

// channel finds one by id; posting also takes a name, with or without #, as the real service does.
func (s *Server) channel(id string, byName bool) *Channel {
	for i := range s.state.Channels {
		if c := &s.state.Channels[i]; c.ID == id || byName && c.Name == strings.TrimPrefix(id, "#") {
			return c
		}
	}
	return nil
}

// stamp makes a time stamp that no other message has.
func (s *Server) stamp() string {
	s.lastTS = max(s.lastTS+1, s.opts.Now().UnixMicro())
	return fmt.Sprintf("%d.%06d", s.lastTS/1_000_000, s.lastTS%1_000_000)
}

func (s *Server) post(a args) (reply, string) {
	c := s.channel(a["channel"], true)
	if c == nil {
		return nil, "channel_not_found"
	}
	now := s.opts.Now()
	if last, ok := s.posted[c.ID]; ok && !s.opts.Unlimited && now.Sub(last) < time.Second {
		return nil, "ratelimited"
	}
	m, problem := s.message(a)
	if problem != "" {
		return nil, problem
	}
	m.TS, m.PostedAt = s.stamp(), now
	if thread := a["thread_ts"]; thread != "" {
		root := find(c, thread)
		if root == nil {
			return nil, "thread_not_found"
		}
		m.ThreadTS = thread
		root.Replies = append(root.Replies, m)
	} else {
		c.Messages = append(c.Messages, m)
	}
	s.posted[c.ID] = now
	return reply{"channel": c.ID, "ts": m.TS, "message": view(m, false)}, ""
}

func (s *Server) update(a args) (reply, string) {
	c := s.channel(a["channel"], false) // chat.update takes ids only
	if c == nil {
		return nil, "channel_not_found"
	}
	now := s.opts.Now()
	s.updated = slices.DeleteFunc(s.updated, func(t time.Time) bool { return now.Sub(t) >= time.Minute })
	if len(s.updated) >= 60 && !s.opts.Unlimited {
		return nil, "ratelimited"
	}
	old := find(c, a["ts"])
	if old == nil {
		return nil, "message_not_found"
	}
	m, problem := s.message(a)
	if problem != "" {
		return nil, problem
	}
	s.updated = append(s.updated, now)
	old.Text, old.Blocks, old.Edits = m.Text, m.Blocks, old.Edits+1
	if m.Metadata != nil {
		old.Metadata = m.Metadata
	}
	return reply{"channel": c.ID, "ts": old.TS, "text": old.Text, "message": view(*old, false)}, ""
}

func find(c *Channel, ts string) *Message {
	for i := range c.Messages {
		m := &c.Messages[i]
		if m.TS == ts {
			return m
		}
		for k := range m.Replies {
			if m.Replies[k].TS == ts {
				return &m.Replies[k]
			}
		}
	}
	return nil
}

func (s *Server) message(a args) (Message, string) {
	m := Message{Text: a["text"]}
	if raw := a["blocks"]; raw != "" && raw != "null" {
		if err := json.Unmarshal([]byte(raw), &m.Blocks); err != nil {
			return m, "invalid_blocks_format"
		}
	}
	if strings.TrimSpace(m.Text) == "" && len(m.Blocks) == 0 {
		return m, "no_text"
	}
	if utf8.RuneCountInString(m.Text) > 40_000 {
		return m, "msg_too_long"
	}
	if problem := checkBlocks(m.Blocks); problem != "" {
		return m, problem
	}
	if raw := a["metadata"]; raw != "" {
		m.Metadata = &Metadata{}
		if err := json.Unmarshal([]byte(raw), m.Metadata); err != nil || m.Metadata.EventType == "" {
			return m, "invalid_metadata_format"
		}
		if len(raw) > 8000 {
			return m, "metadata_too_large"
		}
	}
	for _, text := range append(marked(m.Blocks), m.Text) {
		s.state.Mentions = append(s.state.Mentions, mention.FindAllString(text, -1)...)
	}
	return m, ""
}

var (
	mention     = regexp.MustCompile(`<(!(channel|here|everyone|subteam\^[^>]*)|@[UW][^>]*)[^>]*>`)
	channelName = regexp.MustCompile(`^[a-z0-9_-]+$`)
)

func (s *Server) create(a args) (reply, string) {
	name := a["name"]
	switch {
	case name == "":
		return nil, "invalid_name_required"
	case utf8.RuneCountInString(name) > 80:
		return nil, "invalid_name_maxlength"
	case !channelName.MatchString(name):
		return nil, "invalid_name_specials"
	case s.channel(name, true) != nil:
		return nil, "name_taken"
	}
	c := s.addChannel(name)
	return reply{"channel": conversation(c)}, ""
}

func conversation(c *Channel) map[string]any {
	return map[string]any{"id": c.ID, "name": c.Name, "is_channel": true, "is_member": true, "creator": botUser,
		"topic": map[string]any{"value": c.Topic}}
}

func (s *Server) list(a args) (reply, string) {
	limit, start := paging(a)
	var out []map[string]any
	next := ""
	for i := start; i < len(s.state.Channels); i++ {
		if len(out) == limit {
			next = strconv.Itoa(i)
			break
		}
		out = append(out, conversation(&s.state.Channels[i]))
	}
	return reply{"channels": out, "response_metadata": map[string]any{"next_cursor": next}}, ""
}

func (s *Server) topic(a args) (reply, string) {
	c := s.channel(a["channel"], false)
	switch {
	case c == nil:
		return nil, "channel_not_found"
	case utf8.RuneCountInString(a["topic"]) > 250:
		return nil, "too_long"
	}
	c.Topic = a["topic"]
	return reply{"channel": conversation(c)}, ""
}

func paging(a args) (limit, start int) {
	limit, _ = strconv.Atoi(a["limit"])
	if limit <= 0 || limit > 999 {
		limit = 100
	}
	start, _ = strconv.Atoi(a["cursor"])
	return limit, max(0, start)
}

func (s *Server) history(a args) (reply, string) {
	c := s.channel(a["channel"], false)
	if c == nil {
		return nil, "channel_not_found"
	}
	newest := slices.Clone(c.Messages)
	slices.Reverse(newest)
	return pageOf(newest, a), ""
}

func (s *Server) replies(a args) (reply, string) {
	c := s.channel(a["channel"], false)
	if c == nil {
		return nil, "channel_not_found"
	}
	root := find(c, a["ts"])
	if root == nil {
		return nil, "thread_not_found"
	}
	return pageOf(append([]Message{*root}, root.Replies...), a), ""
}

func pageOf(all []Message, a args) reply {
	oldest, _ := strconv.ParseFloat(a["oldest"], 64)
	limit, start := paging(a)
	var out []map[string]any
	next := ""
	for i := start; i < len(all); i++ {
		if at, _ := strconv.ParseFloat(all[i].TS, 64); at < oldest {
			continue
		}
		if len(out) == limit {
			next = strconv.Itoa(i)
			break
		}
		out = append(out, view(all[i], a["include_all_metadata"] == "true" || a["include_all_metadata"] == "1"))
	}
	return reply{"messages": out, "has_more": next != "", "response_metadata": map[string]any{"next_cursor": next}}
}

// view is a message as the API gives it; metadata only to those who ask.
func view(m Message, metadata bool) map[string]any {
	v := map[string]any{"type": "message", "ts": m.TS, "text": m.Text, "user": botUser, "bot_id": "B0TOCSIN00", "blocks": m.Blocks}
	if m.ThreadTS != "" {
		v["thread_ts"] = m.ThreadTS
	}
	if metadata && m.Metadata != nil {
		v["metadata"] = m.Metadata
	}
	return v
}
