package decode

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// Native writes an event as the json decoder reads it, on one line, with what is at its default left out. Tests and
// golden files compare events in this form; it is also a line of a recording.
func Native(e signal.Event) string {
	var v any
	switch e := e.(type) {
	case *signal.Request:
		v = nativeRequest(e)
	case *signal.Gauge:
		v = struct {
			head
			Resource   string            `json:"resource"`
			Metric     string            `json:"metric"`
			Value      float64           `json:"value"`
			Limit      float64           `json:"limit,omitempty"`
			Unit       string            `json:"unit,omitempty"`
			Attributes signal.Attributes `json:"attributes,omitempty"`
		}{headOf(e), e.Resource, e.Metric, e.Value, e.Limit, e.Unit, e.Attributes}
	case *signal.Ticket:
		v = struct {
			head
			ID       string   `json:"id"`
			Subject  string   `json:"subject,omitempty"`
			Text     string   `json:"text,omitempty"`
			Account  string   `json:"account,omitempty"`
			Area     string   `json:"area,omitempty"`
			Service  string   `json:"service,omitempty"`
			Language string   `json:"language,omitempty"`
			Source   string   `json:"source,omitempty"`
			Tags     []string `json:"tags,omitempty"`
			Severity string   `json:"severity,omitempty"`
			URL      string   `json:"url,omitempty"`
			Status   string   `json:"status,omitempty"`
		}{headOf(e), e.ID, e.Subject, e.Text, e.Account, e.Area, e.Service, e.Language, e.Source, e.Tags, e.Severity, e.URL, e.Status}
	case *signal.Change:
		v = struct {
			head
			ID         string            `json:"id"`
			Kind       signal.ChangeKind `json:"kind"`
			Phase      signal.Phase      `json:"phase"`
			Target     string            `json:"target,omitempty"`
			Title      string            `json:"title,omitempty"`
			Actor      string            `json:"actor,omitempty"`
			URL        string            `json:"url,omitempty"`
			Dose       float64           `json:"dose,omitempty"`
			Attributes signal.Attributes `json:"attributes,omitempty"`
		}{headOf(e), e.ID, e.Kind, e.Phase, e.Target, e.Title, e.Actor, e.URL, e.Dose, e.Attributes}
	case *signal.Alert:
		v = struct {
			head
			Fingerprint  string            `json:"fingerprint"`
			Status       string            `json:"status"`
			Labels       signal.Attributes `json:"labels"`
			Annotations  signal.Attributes `json:"annotations,omitempty"`
			StartsAt     string            `json:"startsAt"`
			EndsAt       string            `json:"endsAt,omitempty"`
			GeneratorURL string            `json:"generatorURL,omitempty"`
			Receiver     string            `json:"receiver,omitempty"`
		}{headOf(e), e.Fingerprint, e.Status, e.Labels, e.Annotations, rfc3339(e.StartsAt), rfc3339(e.EndsAt), e.GeneratorURL, e.Receiver}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		// Only NaN and infinity cannot be written, and no decoder lets them in.
		return err.Error()
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

type head struct {
	Type string `json:"type"`
	Time string `json:"time"`
}

func headOf(e signal.Event) head { return head{typeNames[e.Stream()], rfc3339(e.At())} }

func rfc3339(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func nativeRequest(e *signal.Request) any {
	r := struct {
		head
		Service    string            `json:"service"`
		Operation  string            `json:"operation"`
		Access     signal.Access     `json:"access"`
		Outcome    signal.Outcome    `json:"outcome"`
		Count      uint64            `json:"count,omitempty"`
		Status     string            `json:"status,omitempty"`
		Error      string            `json:"error,omitempty"`
		LatencyMS  *float64          `json:"latency_ms,omitempty"`
		Account    string            `json:"account,omitempty"`
		Attempt    uint32            `json:"attempt,omitempty"`
		Attributes signal.Attributes `json:"attributes,omitempty"`
		TraceID    string            `json:"trace_id,omitempty"`
		Estimated  bool              `json:"estimated,omitempty"`
	}{headOf(e), e.Path.Service, e.Path.Operation, e.Path.Access, e.Outcome, e.Count, e.Status, e.Error, nil, e.Account, e.Attempt, e.Attributes, e.TraceID, e.Estimated}
	if r.Count == 1 {
		r.Count = 0
	}
	if r.Attempt == 1 {
		r.Attempt = 0
	}
	if e.Latency >= 0 {
		ms := float64(e.Latency) / float64(time.Millisecond)
		r.LatencyMS = &ms
	}
	return r
}
