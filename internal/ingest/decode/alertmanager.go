package decode

import (
	"encoding/json"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/signal/signaljson"
)

var alertmanagerEntry = Entry{
	Name:    "alertmanager",
	Summary: "Alerts as Alertmanager's webhook sends them (version 4 and newer fields), as Prometheus posts them to /api/v2/alerts, or one alone.",
	Example: `{"version":"4","status":"firing","receiver":"tocsin","alerts":[{"status":"firing","labels":{"alertname":"HighErrorRate","service":"issues"},"annotations":{"summary":"many errors"},"startsAt":"2026-09-13T08:45:00Z","endsAt":"0001-01-01T00:00:00Z","fingerprint":"3a2f0e9b1c4d5e6f"}],"notification_reason":"first notification"}`,
	New:     func(p *pipeline.Pipeline) ingest.Decoder { return foreign(p, parseAlerts) },
}

type amBody struct {
	Receiver  string            `json:"receiver"`
	Truncated scalar            `json:"truncatedAlerts"`
	Alerts    []json.RawMessage `json:"alerts"`
	Labels    json.RawMessage   `json:"labels"`
}

type amAlert struct {
	Status       scalar            `json:"status"` // an object where Alertmanager's API lists its alerts
	Labels       map[string]scalar `json:"labels"`
	Annotations  map[string]scalar `json:"annotations"`
	StartsAt     moment            `json:"startsAt"`
	EndsAt       moment            `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL"`
	Fingerprint  string            `json:"fingerprint"`
	Receiver     string            `json:"receiver"`
}

// parseAlerts reads a webhook's body or one alert. An alert that is none costs the others nothing.
func parseAlerts(raw []byte, at time.Time, emit func(signal.Event), refuse func(error)) {
	var body amBody
	if err := fill(raw, &body); err != nil {
		refuse(err)
		return
	}
	if body.Alerts == nil {
		if body.Labels == nil {
			refuse(missing("alerts"))
			return
		}
		body.Alerts = []json.RawMessage{raw}
	}
	for _, a := range body.Alerts {
		e, err := parseAlert(a, body.Receiver, at)
		if err != nil {
			refuse(err)
			continue
		}
		emit(e)
	}
	if n, err := body.Truncated.uint("truncatedAlerts"); err == nil && n > 0 {
		refuse(&signaljson.Error{Reason: signaljson.Reason(ingest.ReasonTooLarge), Field: "truncatedAlerts",
			Msg: "the sender left out " + body.Truncated.text + " alerts (max_alerts of its receiver)"})
	}
}

func parseAlert(raw []byte, receiver string, at time.Time) (*signal.Alert, error) {
	var a amAlert
	if err := fill(raw, &a); err != nil {
		return nil, err
	}
	e := &signal.Alert{
		Fingerprint: a.Fingerprint, Status: a.Status.text, Labels: pairsOf(a.Labels), Annotations: pairsOf(a.Annotations),
		StartsAt: firstTime(a.StartsAt.Time, at), EndsAt: a.EndsAt.Time, GeneratorURL: a.GeneratorURL, Receiver: receiver,
	}
	if e.Receiver == "" {
		e.Receiver = a.Receiver
	}
	if e.EndsAt.Year() <= 1 {
		e.EndsAt = time.Time{} // Alertmanager's way to say "not yet"
	}
	switch {
	case e.Labels == "":
		return nil, missing("labels")
	case e.StartsAt.IsZero():
		return nil, missing("startsAt")
	case e.Status == "firing" || e.Status == "resolved":
	case a.Status.quoted && e.Status != "":
		return nil, invalid("status", "%q is neither firing nor resolved", cut(e.Status, 40))
	case e.EndsAt.IsZero() || e.EndsAt.After(at):
		// Prometheus sends no status. While an alert fires, its end lies ahead: the time at which it lapses unless it is
		// sent again.
		e.Status, e.EndsAt = "firing", time.Time{}
	default:
		e.Status = "resolved"
	}
	e.Time = e.StartsAt
	if e.Status == "resolved" && !e.EndsAt.IsZero() {
		e.Time = e.EndsAt
	}
	return e, nil
}

func pairsOf(m map[string]scalar) signal.Attributes {
	pairs := make([]signal.Attr, 0, len(m))
	for n, v := range m {
		pairs = append(pairs, signal.Attr{Name: n, Value: v.text})
	}
	return signal.AttributesOf(pairs...)
}
