package decode

import (
	"strconv"
	"time"

	"github.com/prometheus/common/model"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// alertJSON is one alert, or the body of Alertmanager's webhook (version 4) with several.
type alertJSON struct {
	Type         string            `json:"type"`
	Time         *scalar           `json:"time"`
	Receiver     string            `json:"receiver"`
	Status       string            `json:"status"`
	Fingerprint  string            `json:"fingerprint"`
	Labels       map[string]scalar `json:"labels"`
	Annotations  map[string]scalar `json:"annotations"`
	StartsAt     *scalar           `json:"startsAt"`
	EndsAt       *scalar           `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL"`
	Alerts       []alertJSON       `json:"alerts"`
}

func (d *jsonDecoder) alertEvent(raw []byte, rec *ingest.Record, emit func(signal.Event)) error {
	e, err := unmarshal[alertJSON](raw)
	if err != nil {
		return err
	}
	if err := d.checkType(e.Type); err != nil {
		return err
	}
	if e.Alerts == nil {
		a, err := d.alert(&e, &e, rec)
		if err == nil {
			emit(a)
		}
		return err
	}
	// All or nothing: a body is what Alertmanager sent at once.
	all := make([]*signal.Alert, len(e.Alerts))
	for i := range e.Alerts {
		if all[i], err = d.alert(&e.Alerts[i], &e, rec); err != nil {
			return invalidPart(i, err)
		}
	}
	for _, a := range all {
		emit(a)
	}
	return nil
}

func invalidPart(i int, err error) error {
	if f, ok := err.(*eventError); ok { //nolint:errorlint // made by this package, never wrapped
		return &eventError{f.reason, "alerts[" + strconv.Itoa(i) + "]: " + f.text}
	}
	return err
}

func (d *jsonDecoder) alert(e, body *alertJSON, rec *ingest.Record) (*signal.Alert, error) {
	if len(e.Labels) == 0 {
		return nil, missing("labels")
	}
	a := &signal.Alert{Fingerprint: cut(e.Fingerprint, maxName), Status: e.Status, GeneratorURL: cut(e.GeneratorURL, maxURL), Receiver: cut(body.Receiver, maxName)}
	var err error
	if a.StartsAt, err = eventTime("startsAt", e.StartsAt); err != nil {
		return nil, err
	}
	if e.EndsAt != nil && e.EndsAt.text != "" {
		if a.EndsAt, err = eventTime("endsAt", e.EndsAt); err != nil {
			return nil, err
		}
		if a.EndsAt.Year() <= 1 { // Go's zero time, as Alertmanager writes it for what fires
			a.EndsAt = time.Time{}
		}
	}
	switch a.Status {
	case "firing", "resolved":
	case "":
		// Prometheus gives what fires an end in the near future.
		a.Status = "firing"
		if !a.EndsAt.IsZero() && !a.EndsAt.After(rec.Time) {
			a.Status = "resolved"
		}
	default:
		return nil, invalid("status %q is neither firing nor resolved", cut(a.Status, 40))
	}
	a.Time = a.StartsAt
	if a.Status == "resolved" && !a.EndsAt.IsZero() {
		a.Time = a.EndsAt
	}
	if e.Time != nil && e.Time.text != "" {
		if a.Time, err = eventTime("time", e.Time); err != nil {
			return nil, err
		}
	}
	if a.Labels, err = d.set(e.Labels, nil, maxTitle); err != nil {
		return nil, err
	}
	if a.Annotations, err = d.set(e.Annotations, nil, maxTitle); err != nil {
		return nil, err
	}
	if a.Fingerprint == "" {
		set := model.LabelSet{}
		for name, v := range e.Labels {
			set[model.LabelName(name)] = model.LabelValue(v.text)
		}
		a.Fingerprint = set.Fingerprint().String()
	}
	return a, nil
}
