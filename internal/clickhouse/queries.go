package clickhouse

import (
	"embed"
	"strings"
	"text/template"

	"github.com/tocsin-project/tocsin/internal/signal"
)

//go:embed sql
var sqlFiles embed.FS

// queries are the files of sql/. Values go into them as query parameters; the templates' own values are numbers and
// quoted names that ClickHouse has to see as constants, because it chooses by them which parts of a table to read.
var queries = template.Must(template.New("").Funcs(template.FuncMap{"quote": quote, "streams": func() []stream { return streams }}).
	ParseFS(sqlFiles, "sql/*.sql"))

// queryText returns a file without templates in it.
func queryText(name string) string { return render(name, nil) }

// render cannot fail on anything but a mistake in the file, which every call would show.
func render(name string, data any) string {
	var b strings.Builder
	if err := queries.ExecuteTemplate(&b, name, data); err != nil {
		panic(err)
	}
	return b.String()
}

func quote(s string) string { return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'" }

// stream says where a stream's rows are.
type stream struct {
	Name      signal.Stream
	Table     string // base table
	TickTable string
	Claim     string // query that copies new rows from the one to the other
}

var streams = []stream{
	{signal.Requests, "cells", "tick_cells", "claim_cells.sql"},
	{signal.Gauges, "gauges", "tick_gauges", "claim_gauges.sql"},
	{signal.Tickets, "tickets", "tick_tickets", "claim_tickets.sql"},
	{signal.Changes, "changes", "tick_changes", "claim_changes.sql"},
	{signal.Alerts, "alerts", "tick_alerts", "claim_alerts.sql"},
}

func tableOf(s signal.Stream) string {
	for _, st := range streams {
		if st.Name == s {
			return st.Table
		}
	}
	return ""
}
