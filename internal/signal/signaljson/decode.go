package signaljson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// Decode reads one JSON object as an event of the stream and hands it to emit; an alert may hold several. Unknown
// fields are ignored. The error is an *Error; nothing is emitted of an event that has one.
func Decode(data []byte, s signal.Stream, emit func(signal.Event)) error {
	switch s {
	case signal.Requests:
		return one(data, plainRequest, emit, (*requestJSON).event)
	case signal.Gauges:
		return one(data, plainGauge, emit, (*gaugeJSON).event)
	case signal.Tickets:
		return one(data, nil, emit, (*ticketJSON).event)
	case signal.Changes:
		return one(data, nil, emit, (*changeJSON).event)
	case signal.Alerts:
		return decodeAlerts(data, emit)
	}
	return &Error{Invalid, "type", fmt.Sprintf("no stream %q", s)}
}

// DecodeTyped reads a line of a recording, whose kind stands in "type".
func DecodeTyped(data []byte, emit func(signal.Event)) error {
	kind, err := typeOf(data)
	if err != nil {
		return err
	}
	for _, s := range signal.Streams {
		if types[s] == kind {
			return Decode(data, s, emit)
		}
	}
	if kind == "" {
		return missing("type")
	}
	return invalid("type", "%q is none of request, gauge, ticket, change, alert", kind)
}

// typeOf looks for the kind where our own writer puts it, in front, before it reads the whole line for it.
func typeOf(data []byte) (string, error) {
	if rest, ok := bytes.CutPrefix(data, []byte(`{"type":"`)); ok {
		for s, kind := range types {
			if after, ok := bytes.CutPrefix(rest, []byte(kind)); ok && len(after) > 0 && after[0] == '"' {
				return types[s], nil
			}
		}
	}
	var head struct {
		Type string `json:"type"`
	}
	err := unmarshal(data, &head)
	return head.Type, err
}

func one[T any](data []byte, plain func([]byte) (*T, bool), emit func(signal.Event), event func(*T) (signal.Event, error)) error {
	if plain != nil {
		if v, ok := plain(data); ok {
			e, err := event(v)
			if err != nil {
				return err
			}
			emit(e)
			return nil
		}
	}
	var v T
	if err := unmarshal(data, &v); err != nil {
		return err
	}
	e, err := event(&v)
	if err != nil {
		return err
	}
	emit(e)
	return nil
}

func unmarshal(data []byte, into any) error {
	err := json.Unmarshal(data, into)
	var own *Error
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return own
	case errors.As(err, &wrong) && wrong.Field != "":
		return invalid(wrong.Field, "a JSON %s is no value for it", wrong.Value)
	}
	return &Error{Malformed, "", err.Error()}
}

type requestJSON struct {
	Time       timeJSON   `json:"time"`
	Service    string     `json:"service"`
	Operation  string     `json:"operation"`
	Access     string     `json:"access"`
	Outcome    string     `json:"outcome"`
	Count      *float64   `json:"count"`
	Status     text       `json:"status"`
	Error      string     `json:"error"`
	LatencyMS  *float64   `json:"latency_ms"`
	Account    text       `json:"account"`
	Attempt    *float64   `json:"attempt"`
	Attributes attributes `json:"attributes"`
	TraceID    string     `json:"trace_id"`
	Estimated  bool       `json:"estimated"`
}

func (j *requestJSON) event() (signal.Event, error) {
	if err := required(&j.Time, "service", j.Service, "operation", j.Operation, "outcome", j.Outcome); err != nil {
		return nil, err
	}
	e := &signal.Request{
		Time: j.Time.Time, Path: signal.Path{Service: j.Service, Operation: j.Operation}, Count: 1, Status: string(j.Status),
		Error: j.Error, Latency: -1, Account: string(j.Account), Attempt: 1, Attributes: signal.Attributes(j.Attributes),
		TraceID: j.TraceID, Estimated: j.Estimated,
	}
	var err error
	if e.Outcome, err = signal.ParseOutcome(j.Outcome); err != nil {
		return nil, invalid("outcome", "%v", err)
	}
	if j.Access != "" {
		if e.Path.Access, err = signal.ParseAccess(j.Access); err != nil {
			return nil, invalid("access", "%v", err)
		}
	}
	if j.Count != nil {
		if !isCount(*j.Count) {
			return nil, invalid("count", "must be a whole number from 1 on, not %v", *j.Count)
		}
		e.Count = uint64(*j.Count)
	}
	if j.Attempt != nil {
		if !isCount(*j.Attempt) || *j.Attempt > 1<<31 {
			return nil, invalid("attempt", "must be a whole number from 1 on, not %v", *j.Attempt)
		}
		e.Attempt = uint32(*j.Attempt)
	}
	if j.LatencyMS != nil {
		if *j.LatencyMS < 0 || *j.LatencyMS > maxLatencyMS {
			return nil, invalid("latency_ms", "must be between 0 and %v, not %v", float64(maxLatencyMS), *j.LatencyMS)
		}
		e.Latency = time.Duration(*j.LatencyMS*float64(time.Millisecond) + 0.5)
	}
	return e, nil
}

// maxLatencyMS is 30 days: what takes longer is a unit mistaken for another.
const maxLatencyMS = 30 * 24 * 3600 * 1000

func isCount(f float64) bool { return f >= 1 && f <= 1<<53 && f == float64(uint64(f)) }

type gaugeJSON struct {
	Time       timeJSON   `json:"time"`
	Resource   string     `json:"resource"`
	Metric     string     `json:"metric"`
	Value      *float64   `json:"value"`
	Limit      *float64   `json:"limit"`
	Unit       string     `json:"unit"`
	Attributes attributes `json:"attributes"`
}

func (j *gaugeJSON) event() (signal.Event, error) {
	if err := required(&j.Time, "resource", j.Resource, "metric", j.Metric); err != nil {
		return nil, err
	}
	if j.Value == nil {
		return nil, missing("value")
	}
	e := &signal.Gauge{Time: j.Time.Time, Resource: j.Resource, Metric: j.Metric, Value: *j.Value, Unit: j.Unit, Attributes: signal.Attributes(j.Attributes)}
	if j.Limit != nil {
		if *j.Limit < 0 {
			return nil, invalid("limit", "must not be negative, but is %v", *j.Limit)
		}
		e.Limit = *j.Limit
	}
	return e, nil
}

type ticketJSON struct {
	Time     timeJSON `json:"time"`
	ID       text     `json:"id"`
	Subject  string   `json:"subject"`
	Text     string   `json:"text"`
	Account  text     `json:"account"`
	Area     string   `json:"area"`
	Service  string   `json:"service"`
	Language string   `json:"language"`
	Source   string   `json:"source"`
	Tags     []string `json:"tags"`
	Severity text     `json:"severity"`
	URL      string   `json:"url"`
	Status   string   `json:"status"`
}

func (j *ticketJSON) event() (signal.Event, error) {
	if err := required(&j.Time, "id", string(j.ID)); err != nil {
		return nil, err
	}
	if j.Text == "" && j.Subject == "" {
		return nil, &Error{Missing, "text", "text or subject is required"}
	}
	return &signal.Ticket{
		Time: j.Time.Time, ID: string(j.ID), Subject: j.Subject, Text: j.Text, Account: string(j.Account), Area: j.Area,
		Service: j.Service, Language: j.Language, Source: j.Source, Tags: j.Tags, Severity: string(j.Severity), URL: j.URL, Status: j.Status,
	}, nil
}
