package signaljson

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// types are the words of a recording's "type".
var types = map[signal.Stream]string{
	signal.Requests: "request", signal.Gauges: "gauge", signal.Tickets: "ticket", signal.Changes: "change", signal.Alerts: "alert",
}

// Append appends the event as one JSON object without a line end. What is unknown or the default is left out.
func Append(b []byte, e signal.Event) ([]byte, error) { return appendEvent(b, e, false) }

// AppendTyped is Append with the event's kind in "type", as the lines of a recording have it.
func AppendTyped(b []byte, e signal.Event) ([]byte, error) { return appendEvent(b, e, true) }

func appendEvent(b []byte, e signal.Event, typed bool) ([]byte, error) {
	w := writer{b: append(b, '{')}
	if typed {
		w.str("type", types[e.Stream()])
	}
	switch e := e.(type) {
	case *signal.Request:
		w.request(e)
	case *signal.Gauge:
		if math.IsNaN(e.Value) || math.IsInf(e.Value, 0) {
			return b, fmt.Errorf("encode gauge %s %s: JSON has no number for %v", e.Resource, e.Metric, e.Value)
		}
		w.gauge(e)
	case *signal.Ticket:
		w.ticket(e)
	case *signal.Change:
		w.change(e)
	case *signal.Alert:
		w.alert(e)
	default:
		return b, fmt.Errorf("encode event: no JSON form of %T", e)
	}
	return append(w.b, '}'), nil
}

type writer struct{ b []byte }

func (w *writer) request(e *signal.Request) {
	w.time("time", e.Time)
	w.str("service", e.Path.Service)
	w.str("operation", e.Path.Operation)
	w.str("access", e.Path.Access.String())
	w.str("outcome", e.Outcome.String())
	if e.Count > 1 {
		w.key("count")
		w.b = strconv.AppendUint(w.b, e.Count, 10)
	}
	w.str("status", e.Status)
	w.str("error", e.Error)
	if e.Latency >= 0 {
		w.float("latency_ms", float64(e.Latency)/float64(time.Millisecond))
	}
	w.str("account", e.Account)
	if e.Attempt > 1 {
		w.key("attempt")
		w.b = strconv.AppendUint(w.b, uint64(e.Attempt), 10)
	}
	w.attributes("attributes", e.Attributes)
	w.str("trace_id", e.TraceID)
	if e.Estimated {
		w.key("estimated")
		w.b = append(w.b, "true"...)
	}
}

func (w *writer) gauge(e *signal.Gauge) {
	w.time("time", e.Time)
	w.str("resource", e.Resource)
	w.str("metric", e.Metric)
	w.float("value", e.Value)
	if e.Limit > 0 {
		w.float("limit", e.Limit)
	}
	w.str("unit", e.Unit)
	w.attributes("attributes", e.Attributes)
}

func (w *writer) ticket(e *signal.Ticket) {
	w.time("time", e.Time)
	w.str("id", e.ID)
	w.str("subject", e.Subject)
	w.str("text", e.Text)
	w.str("account", e.Account)
	w.str("area", e.Area)
	w.str("service", e.Service)
	w.str("language", e.Language)
	w.str("source", e.Source)
	if len(e.Tags) > 0 {
		w.key("tags")
		w.b = append(w.b, '[')
		for i, t := range e.Tags {
			if i > 0 {
				w.b = append(w.b, ',')
			}
			w.b = appendString(w.b, t)
		}
		w.b = append(w.b, ']')
	}
	w.str("severity", e.Severity)
	w.str("url", e.URL)
	w.str("status", e.Status)
}

func (w *writer) change(e *signal.Change) {
	w.time("time", e.Time)
	w.str("id", e.ID)
	w.str("kind", string(e.Kind))
	w.str("phase", string(e.Phase))
	w.str("target", e.Target)
	w.str("title", e.Title)
	w.str("actor", e.Actor)
	w.str("url", e.URL)
	if e.Dose > 0 {
		w.float("dose", e.Dose)
	}
	w.attributes("attributes", e.Attributes)
}

// alert writes one alert of an Alertmanager webhook.
func (w *writer) alert(e *signal.Alert) {
	w.str("status", e.Status)
	w.attributes("labels", e.Labels)
	w.attributes("annotations", e.Annotations)
	w.time("startsAt", e.StartsAt)
	if !e.EndsAt.IsZero() {
		w.time("endsAt", e.EndsAt)
	}
	w.str("generatorURL", e.GeneratorURL)
	w.str("fingerprint", e.Fingerprint)
	w.str("receiver", e.Receiver)
}

func (w *writer) key(name string) {
	if w.b[len(w.b)-1] != '{' {
		w.b = append(w.b, ',')
	}
	w.b = append(w.b, '"')
	w.b = append(w.b, name...)
	w.b = append(w.b, '"', ':')
}

func (w *writer) str(name, value string) {
	if value != "" {
		w.key(name)
		w.b = appendString(w.b, value)
	}
}

// TimeFormat has milliseconds always, so that lines of a recording sort and align.
const TimeFormat = "2006-01-02T15:04:05.000Z"

func (w *writer) time(name string, t time.Time) {
	w.key(name)
	w.b = append(w.b, '"')
	if t = t.UTC(); t.Nanosecond()%int(time.Millisecond) == 0 {
		w.b = t.AppendFormat(w.b, TimeFormat)
	} else {
		w.b = t.AppendFormat(w.b, time.RFC3339Nano)
	}
	w.b = append(w.b, '"')
}

func (w *writer) float(name string, v float64) {
	w.key(name)
	w.b = strconv.AppendFloat(w.b, v, 'g', -1, 64)
}

func (w *writer) attributes(name string, a signal.Attributes) {
	if a == "" {
		return
	}
	w.key(name)
	w.b = append(w.b, '{')
	first := true
	for n, v := range a.All() {
		if !first {
			w.b = append(w.b, ',')
		}
		first = false
		w.b = appendString(w.b, n)
		w.b = append(w.b, ':')
		w.b = appendString(w.b, v)
	}
	w.b = append(w.b, '}')
}

// appendString quotes plain text itself and leaves what needs care to encoding/json.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			quoted, err := json.Marshal(s)
			if err != nil {
				return append(b, `""`...) // encoding/json has no error for a string
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
