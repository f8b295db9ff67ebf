package slack

import (
	"html/template"
	"net/http"
	"regexp"
	"strings"
)

var (
	link   = regexp.MustCompile(`&lt;(https?://[^|\s]+?)\|(.+?)&gt;`)
	bare   = regexp.MustCompile(`&lt;(https?://[^|\s]+?)&gt;`)
	chanRe = regexp.MustCompile(`&lt;#(C[0-9A-Z]+)(\|[^&]*)?&gt;`)
	loud   = regexp.MustCompile(`&lt;!(channel|here|everyone)(\|[^&]*)?&gt;`)
	bold   = regexp.MustCompile(`(^|[\s(])\*([^*\n]+)\*`)
	italic = regexp.MustCompile(`(^|[\s(])_([^_\n]+)_`)
	code   = regexp.MustCompile("`([^`\n]+)`")
)

// mrkdwn shows Slack's markup as HTML. Texts arrive with & < > escaped; escaping them once more for HTML and
// taking that back afterwards keeps everything else out.
func mrkdwn(text string) template.HTML {
	h := template.HTMLEscapeString(text)
	h = link.ReplaceAllString(h, `<a href="$1">$2</a>`)
	h = bare.ReplaceAllString(h, `<a href="$1">$1</a>`)
	h = chanRe.ReplaceAllString(h, `<a>#$1</a>`)
	h = loud.ReplaceAllString(h, `<mark>@$1</mark>`)
	h = bold.ReplaceAllString(h, `$1<b>$2</b>`)
	h = italic.ReplaceAllString(h, `$1<i>$2</i>`)
	h = code.ReplaceAllString(h, `<code>$1</code>`)
	h = strings.NewReplacer("&amp;amp;", "&amp;", "&amp;lt;", "&lt;", "&amp;gt;", "&gt;", "\n", "<br>").Replace(h)
	return template.HTML(h) //nolint:gosec // escaped above
}

func show(t textObject) template.HTML {
	if t.Type == "plain_text" {
		return template.HTML(strings.ReplaceAll(template.HTMLEscapeString(t.Text), "\n", "<br>")) //nolint:gosec // escaped
	}
	return mrkdwn(t.Text)
}

func parsed(m Message) []block {
	var out []block
	for _, r := range m.Blocks {
		if b, err := parseBlock(r); err == nil {
			out = append(out, b)
		}
	}
	return out
}

var tmpl = template.Must(template.New("channel").Funcs(template.FuncMap{
	"show": show, "mrkdwn": mrkdwn, "parsed": parsed, "el": func(e element) textObject { return e.textObject() },
}).Parse(`<!doctype html><meta charset="utf-8"><title>#{{.Channel.Name}} (Slack stand-in)</title>
<style>
body{font:15px/1.46 Lato,system-ui,sans-serif;margin:0;display:flex;min-height:100vh;color:#1d1c1d;background:#fff}
nav{background:#3f0e40;color:#cfc3cf;width:240px;flex:none;box-sizing:border-box;padding:16px}nav a{display:block;color:#cfc3cf;text-decoration:none;padding:3px 8px;border-radius:4px;overflow-wrap:anywhere}
nav a.on{background:#1164a3;color:#fff}main{flex:1;padding:0 20px 40px;max-width:960px}
h1{font-size:18px;border-bottom:1px solid #ddd;padding:12px 0;margin:0 0 8px}
.msg{display:flex;gap:10px;padding:8px 0}.pic{width:36px;height:36px;border-radius:6px;background:#b8352a;color:#fff;display:flex;align-items:center;justify-content:center;font-weight:700;flex:none}
.who b{margin-right:6px}.who span{color:#616061;font-size:12px}.body{min-width:0;overflow-wrap:anywhere;flex:1}
h2{font-size:17px;margin:4px 0}.fields{display:grid;grid-template-columns:1fr 1fr;gap:6px 16px;margin:6px 0}
.ctx{color:#616061;font-size:13px}.actions{display:flex;gap:8px;margin:8px 0;flex-wrap:wrap}.actions span{border:1px solid #bbb;border-radius:4px;padding:4px 12px;font-weight:700;font-size:13px}
.actions .primary{background:#007a5a;color:#fff;border-color:#007a5a}.actions .danger{background:#e01e5a;color:#fff;border-color:#e01e5a}
.thread{border-left:3px solid #ddd;margin:6px 0 0 8px;padding-left:10px}.thread .msg{padding:4px 0}.thread .pic{width:24px;height:24px;font-size:12px}
hr{border:0;border-top:1px solid #ddd}code{background:#f6f6f6;border:1px solid #ddd;border-radius:3px;color:#c0264b;padding:0 3px;font-size:13px}mark{background:#ffe9a8}p{margin:4px 0;white-space:pre-wrap}
</style>
{{define "msg"}}<div class="msg"><div class="pic">T</div><div class="body"><div class="who"><b>Tocsin</b><span>{{.PostedAt.UTC.Format "15:04:05"}} UTC{{if .Edits}} (edited){{end}}</span></div>
{{range parsed .}}{{if eq .Type "header"}}<h2>{{show .Text}}</h2>
{{else if eq .Type "divider"}}<hr>
{{else if eq .Type "section"}}{{with .Text}}<p>{{show .}}</p>{{end}}{{with .Fields}}<div class="fields">{{range .}}<div>{{show .}}</div>{{end}}</div>{{end}}
{{else if eq .Type "context"}}<div class="ctx">{{range .Elements}}{{show (el .)}} {{end}}</div>
{{else if eq .Type "actions"}}<div class="actions">{{range .Elements}}<span class="{{.Style}}">{{show (el .)}}</span>{{end}}</div>{{end}}
{{else}}<p>{{mrkdwn .Text}}</p>{{end}}
{{with .Replies}}<div class="thread">{{len .}} {{if eq (len .) 1}}reply{{else}}replies{{end}}{{range .}}{{template "msg" .}}{{end}}</div>{{end}}</div></div>{{end}}
<nav><b>Stand-in</b>{{$on := .Channel.Name}}{{range .Channels}}<a href="/channels/{{.Name}}"{{if eq .Name $on}} class="on"{{end}}># {{.Name}}</a>{{end}}</nav>
<main><h1># {{.Channel.Name}}</h1>{{with .Channel.Topic}}<p class="ctx">{{.}}</p>{{end}}{{range .Channel.Messages}}{{template "msg" .}}{{else}}<p>Nothing was posted.</p>{{end}}</main>`))

// page shows one channel, the first where none is named.
func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	st := s.State()
	view := struct {
		Channels []Channel
		Channel  Channel
	}{Channels: st.Channels}
	for i, c := range st.Channels {
		if name := r.PathValue("name"); c.Name == name || name == "" && i == 0 {
			view.Channel = c
		}
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = tmpl.Execute(w, view)
}
