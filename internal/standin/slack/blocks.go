package slack

import (
	"encoding/json"
	"fmt"
	"net/url"
	"unicode/utf8"
)

type textObject struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type element struct {
	Type     string          `json:"type"`
	Text     json.RawMessage `json:"text"` // an object in buttons, a string in context elements
	ActionID string          `json:"action_id"`
	URL      string          `json:"url"`
	Value    string          `json:"value"`
	Style    string          `json:"style"`
	Confirm  json.RawMessage `json:"confirm"`
}

type block struct {
	Type      string       `json:"type"`
	BlockID   string       `json:"block_id"`
	Text      *textObject  `json:"text"`
	Fields    []textObject `json:"fields"`
	Elements  []element    `json:"elements"`
	Accessory *element     `json:"accessory"`
}

func (e element) textObject() textObject {
	var t textObject
	if json.Unmarshal(e.Text, &t) != nil {
		t.Type = e.Type
		_ = json.Unmarshal(e.Text, &t.Text)
	}
	return t
}

func parseBlock(raw json.RawMessage) (block, error) {
	var b block
	err := json.Unmarshal(raw, &b)
	return b, err
}

// maxCharacters is where the real service refuses a message although every block of it is legal.
const maxCharacters = 13_200

// checkBlocks gives Slack's error, with what is wrong after it.
func checkBlocks(raw []json.RawMessage) string {
	if len(raw) > 50 {
		return fmt.Sprintf("invalid_blocks %d blocks, 50 at most", len(raw))
	}
	ids, total := map[string]bool{}, 0
	for i, r := range raw {
		b, err := parseBlock(r)
		if err != nil {
			return "invalid_blocks_format"
		}
		if problem := checkBlock(b); problem != "" {
			return fmt.Sprintf("invalid_blocks block %d (%s): %s", i, b.Type, problem)
		}
		if b.BlockID != "" && (ids[b.BlockID] || len(b.BlockID) > 255) {
			return "invalid_blocks block_id must be unique and at most 255 characters"
		}
		ids[b.BlockID] = true
	}
	for _, t := range allTexts(raw) {
		total += utf8.RuneCountInString(t)
	}
	if total > maxCharacters {
		return fmt.Sprintf("msg_blocks_too_long %d characters", total)
	}
	return ""
}

func checkBlock(b block) string {
	switch b.Type {
	case "header":
		if b.Text == nil || b.Text.Type != "plain_text" {
			return "a header needs plain_text"
		}
		return checkText(*b.Text, 150)
	case "section":
		if b.Text == nil && len(b.Fields) == 0 {
			return "a section needs text or fields"
		}
		if b.Text != nil {
			if p := checkText(*b.Text, 3000); p != "" {
				return p
			}
		}
		if len(b.Fields) > 10 {
			return "more than 10 fields"
		}
		for _, f := range b.Fields {
			if p := checkText(f, 2000); p != "" {
				return p
			}
		}
		if b.Accessory != nil {
			return checkElement(*b.Accessory)
		}
	case "context":
		if len(b.Elements) == 0 || len(b.Elements) > 10 {
			return "a context has 1 to 10 elements"
		}
		for _, e := range b.Elements {
			if p := checkText(e.textObject(), 2000); p != "" {
				return p
			}
		}
	case "actions":
		if len(b.Elements) == 0 || len(b.Elements) > 25 {
			return "actions have 1 to 25 elements"
		}
		ids := map[string]bool{}
		for _, e := range b.Elements {
			if ids[e.ActionID] {
				return "action_id " + e.ActionID + " is given twice"
			}
			ids[e.ActionID] = true
			if p := checkElement(e); p != "" {
				return p
			}
		}
	case "divider":
	default:
		return "unknown block type"
	}
	return ""
}

func checkElement(e element) string {
	t := e.textObject()
	switch {
	case e.Type != "button":
		return "only buttons are known here"
	case t.Type != "plain_text":
		return "a button needs plain_text"
	case e.ActionID == "" || len(e.ActionID) > 255:
		return "action_id must have 1 to 255 characters"
	case len(e.Value) > 2000:
		return "value is longer than 2000"
	case e.Style != "" && e.Style != "primary" && e.Style != "danger":
		return "unknown style"
	case len(e.URL) > 3000:
		return "url is longer than 3000"
	}
	if e.URL != "" {
		if u, err := url.Parse(e.URL); err != nil || u.Host == "" {
			return "url is invalid"
		}
	}
	return checkText(t, 75)
}

func checkText(t textObject, limit int) string {
	switch n := utf8.RuneCountInString(t.Text); {
	case t.Type != "plain_text" && t.Type != "mrkdwn":
		return fmt.Sprintf("unknown text type %q", t.Type)
	case n == 0:
		return "text must be more than 0 characters"
	case n > limit:
		return fmt.Sprintf("text has %d characters, %d at most", n, limit)
	}
	return ""
}

// allTexts are the texts that people see.
func allTexts(raw []json.RawMessage) []string {
	return texts(raw, func(textObject) bool { return true })
}

// marked are the texts in which mentions work.
func marked(raw []json.RawMessage) []string {
	return texts(raw, func(t textObject) bool { return t.Type == "mrkdwn" })
}

func texts(raw []json.RawMessage, which func(textObject) bool) []string {
	var out []string
	add := func(t textObject) {
		if which(t) {
			out = append(out, t.Text)
		}
	}
	for _, r := range raw {
		b, err := parseBlock(r)
		if err != nil {
			continue
		}
		if b.Text != nil {
			add(*b.Text)
		}
		for _, f := range b.Fields {
			add(f)
		}
		for _, e := range b.Elements {
			add(e.textObject())
		}
	}
	return out
}
