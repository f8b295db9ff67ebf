package signaljson

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

type changeJSON struct {
	Time       timeJSON   `json:"time"`
	ID         text       `json:"id"`
	Kind       string     `json:"kind"`
	Phase      string     `json:"phase"`
	Target     string     `json:"target"`
	Title      string     `json:"title"`
	Actor      string     `json:"actor"`
	URL        string     `json:"url"`
	Dose       *float64   `json:"dose"`
	Attributes attributes `json:"attributes"`
}

var phases = []signal.Phase{signal.Started, signal.Finished, signal.Aborted}

func (j *changeJSON) event() (signal.Event, error) {
	if err := required(&j.Time, "id", string(j.ID), "kind", j.Kind, "phase", j.Phase); err != nil {
		return nil, err
	}
	e := &signal.Change{
		Time: j.Time.Time, ID: string(j.ID), Kind: signal.ChangeKind(j.Kind), Phase: signal.Phase(j.Phase), Target: j.Target,
		Title: j.Title, Actor: j.Actor, URL: j.URL, Attributes: signal.Attributes(j.Attributes),
	}
	if !slices.Contains(signal.ChangeKinds, e.Kind) {
		return nil, invalid("kind", "%q is none of %v", j.Kind, signal.ChangeKinds)
	}
	if !slices.Contains(phases, e.Phase) {
		return nil, invalid("phase", "%q is none of %v", j.Phase, phases)
	}
	if j.Dose != nil {
		if *j.Dose < 0 || *j.Dose > 1 {
			return nil, invalid("dose", "must be between 0 and 1, not %v", *j.Dose)
		}
		e.Dose = *j.Dose
	}
	return e, nil
}

// webhookJSON is an Alertmanager webhook of version 4, or one alert alone.
type webhookJSON struct {
	Receiver          string      `json:"receiver"`
	CommonLabels      attributes  `json:"commonLabels"`
	CommonAnnotations attributes  `json:"commonAnnotations"`
	Alerts            []alertJSON `json:"alerts"`
	alertJSON
}

type alertJSON struct {
	Status       string     `json:"status"`
	Labels       attributes `json:"labels"`
	Annotations  attributes `json:"annotations"`
	StartsAt     timeJSON   `json:"startsAt"`
	EndsAt       timeJSON   `json:"endsAt"`
	GeneratorURL string     `json:"generatorURL"`
	Fingerprint  string     `json:"fingerprint"`
}

func decodeAlerts(data []byte, emit func(signal.Event)) error {
	var w webhookJSON
	if err := unmarshal(data, &w); err != nil {
		return err
	}
	list := w.Alerts
	if list == nil {
		list = []alertJSON{w.alertJSON}
	}
	events := make([]*signal.Alert, len(list))
	for i := range list {
		e, err := list[i].event(w.Receiver)
		if err != nil {
			return err
		}
		events[i] = e
	}
	for _, e := range events {
		emit(e)
	}
	return nil
}

func (j *alertJSON) event(receiver string) (*signal.Alert, error) {
	if j.Labels == "" {
		return nil, missing("labels")
	}
	if j.StartsAt.Time.IsZero() {
		return nil, missing("startsAt")
	}
	e := &signal.Alert{
		Time: j.StartsAt.Time, Fingerprint: j.Fingerprint, Status: j.Status, Labels: signal.Attributes(j.Labels),
		Annotations: signal.Attributes(j.Annotations), StartsAt: j.StartsAt.Time, EndsAt: j.EndsAt.Time, GeneratorURL: j.GeneratorURL, Receiver: receiver,
	}
	if e.EndsAt.Year() <= 1 {
		e.EndsAt = time.Time{} // Alertmanager's way to say "not yet"
	}
	switch e.Status {
	case "":
		return nil, missing("status")
	case "firing":
	case "resolved":
		if !e.EndsAt.IsZero() {
			e.Time = e.EndsAt
		}
	default:
		return nil, invalid("status", "%q is neither firing nor resolved", e.Status)
	}
	return e, nil
}

// required checks the time and then pairs of name and text.
func required(t *timeJSON, pairs ...string) error {
	if t.Time.IsZero() {
		return missing("time")
	}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			return missing(pairs[i])
		}
	}
	return nil
}

// timeJSON is RFC 3339 or integer Unix milliseconds.
type timeJSON struct{ time.Time }

func (t *timeJSON) UnmarshalJSON(b []byte) error {
	switch {
	case string(b) == "null":
		return nil
	case b[0] == '"':
		s := string(b[1 : len(b)-1])
		at, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return invalid("time", "%q is not a time of RFC 3339", s)
		}
		t.Time = at.UTC()
		return nil
	}
	ms, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return invalid("time", "%s is neither a time of RFC 3339 nor whole Unix milliseconds", b)
	}
	t.Time = time.UnixMilli(ms).UTC()
	return nil
}

// text takes numbers and booleans as their text, since producers write ids and statuses either way.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	s, err := asText(b)
	*t = text(s)
	return err
}

// asText names no field in its errors: whoever has the field does.
func asText(b []byte) (string, error) {
	switch b[0] {
	case '"':
		var s string
		err := json.Unmarshal(b, &s)
		return s, err
	case 'n':
		return "", nil
	case '{', '[':
		return "", invalid("", "a text, number or boolean is needed, not %.20s", b)
	}
	return string(bytes.TrimSpace(b)), nil
}

// attributes is an object of simple values.
type attributes signal.Attributes

func (a *attributes) UnmarshalJSON(b []byte) error {
	var raw map[string]text
	if err := unmarshal(b, &raw); err != nil {
		return invalid("attributes", "%v", err)
	}
	pairs := make([]signal.Attr, 0, len(raw))
	for n, v := range raw {
		pairs = append(pairs, signal.Attr{Name: n, Value: string(v)})
	}
	*a = attributes(signal.AttributesOf(pairs...))
	return nil
}
