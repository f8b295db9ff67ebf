package pagerduty

import (
	"encoding/json"
	"html/template"
	"net/http"
	"slices"
)

var tmpl = template.Must(template.New("alerts").Funcs(template.FuncMap{"pretty": func(v any) string {
	b, _ := json.MarshalIndent(v, "", "  ")
	return string(b)
}}).Parse(`<!doctype html><meta charset="utf-8"><title>PagerDuty (stand-in)</title>
<style>
body{font:15px/1.5 system-ui,sans-serif;margin:0;background:#f4f5f6;color:#222}
header{background:#048a24;color:#fff;padding:12px 24px;font-weight:600}
main{max-width:1000px;margin:24px auto;padding:0 16px}
article{background:#fff;border:1px solid #ddd;border-left:6px solid #999;border-radius:4px;padding:12px 16px;margin:12px 0}
.triggered{border-left-color:#c8102e}.acknowledged{border-left-color:#e8a200}.resolved{border-left-color:#048a24}
.meta{color:#666;font-size:13px}h2{font-size:16px;margin:0 0 4px;overflow-wrap:anywhere}pre{font-size:12px;white-space:pre-wrap;overflow-wrap:anywhere}
</style><header>PagerDuty (stand-in): alerts</header><main>
{{range .Alerts}}<article class="{{.Status}}"><h2>{{.Summary}}</h2>
<div class="meta">{{.Status}} · {{.Severity}} · opened {{.OpenedAt.UTC.Format "2006-01-02 15:04:05"}} UTC{{if not .ClosedAt.IsZero}} · resolved {{.ClosedAt.UTC.Format "15:04:05"}}{{end}} · {{.Triggers}} trigger(s) · key {{.DedupKey}}</div>
<details><summary>details</summary><pre>{{pretty .Payload}}</pre></details></article>
{{else}}<p>No alert was opened.</p>{{end}}
{{range .Rejected}}<p class="meta">rejected: {{.}}</p>{{end}}</main>`))

func (s *Server) page(w http.ResponseWriter, _ *http.Request) {
	st := s.State()
	slices.Reverse(st.Alerts)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = tmpl.Execute(w, st)
}
