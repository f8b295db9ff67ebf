package rehearse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"
)

// wire is where senders send to: it answers as the providers do when all is well, and keeps what it got.
type wire struct {
	got []request
	n   int
}

type request struct {
	method string // the last part of the path: Slack's method
	body   []byte
}

var _ http.RoundTripper = (*wire)(nil)

const bodyMax = 1 << 20

// RoundTrip takes a request and gives an answer that suits all kinds: each looks at its own fields.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(io.LimitReader(r.Body, bodyMax)); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	w.n++
	w.got = append(w.got, request{path.Base(r.URL.Path), body})
	answer := map[string]any{"status": "success", "ok": true, "channel": "C00000001", "ts": fmt.Sprintf("1000000000.%06d", w.n)}
	if strings.HasPrefix(path.Base(r.URL.Path), "conversations.") {
		answer["channel"] = map[string]any{"id": "C00000002", "name": "room"}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)),
	}, nil
}

// taken gives what was sent since it was last asked, as text.
func (w *wire) taken(kind string) (out []string) {
	for _, r := range w.got {
		switch {
		case kind != "slack":
			out = append(out, jsonText(r.body))
		case strings.HasPrefix(r.method, "chat."):
			out = append(out, slackText(r.body))
		}
	}
	w.got = nil
	return out
}

// jsonText is a body as YAML, which people read, without what is secret or of no interest to them.
func jsonText(body []byte) string {
	var v map[string]any
	if err := json.Unmarshal(body, &v); err != nil {
		return string(body)
	}
	delete(v, "routing_key")
	text, err := yaml.Marshal(v)
	if err != nil {
		return string(body)
	}
	return string(text)
}

type slackBlock struct {
	Type     string      `json:"type"`
	Text     slackPart   `json:"text"`
	Fields   []slackPart `json:"fields"`
	Elements []struct {
		Text json.RawMessage `json:"text"` // of a button an object, of a context a string
	} `json:"elements"`
}

type slackPart struct {
	Text string `json:"text"`
}

// slackText is a message as its blocks show it: a header, sections, fields with their names, what stands small below, buttons.
func slackText(body []byte) string {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return string(body)
	}
	var blocks []slackBlock
	if text := form.Get("blocks"); text != "" {
		if err := json.Unmarshal([]byte(text), &blocks); err != nil {
			return text
		}
	}
	if len(blocks) == 0 {
		return form.Get("text")
	}
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, b := range blocks {
		switch b.Type {
		case "header":
			add("# %s", b.Text.Text)
		case "section":
			if b.Text.Text != "" {
				add("%s", b.Text.Text)
			}
			for _, f := range b.Fields {
				name, value, _ := strings.Cut(f.Text, "\n")
				add("%s %s", name, value)
			}
		case "context", "actions":
			var parts []string
			for _, e := range b.Elements {
				var small string
				var button slackPart
				if json.Unmarshal(e.Text, &small) == nil {
					parts = append(parts, small)
				} else if json.Unmarshal(e.Text, &button) == nil {
					parts = append(parts, "["+button.Text+"]")
				}
			}
			add("%s", strings.Join(parts, " "))
		default:
			add("(%s)", b.Type)
		}
	}
	return strings.Join(lines, "\n")
}
