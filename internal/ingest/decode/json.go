package decode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
)

var jsonEntry = Entry{
	Name:    "json",
	Summary: "Native events: one object, an array of objects, or one object a line. Unknown fields are ignored; times are RFC 3339 or Unix milliseconds.",
	Example: `{"time":"2026-09-13T08:43:00Z","service":"issues","operation":"create","access":"write","outcome":"failure","status":"503","latency_ms":30012,"account":"acme","attributes":{"region":"iad"}}`,
	New:     newJSON,
}

type jsonDecoder struct {
	stream signal.Stream
	cfg    *pipeline.Requests
	names  *namer
	keep   map[string]string // attribute in events → name; nil keeps all as they are
	sets   interner
	pairs  []signal.Attr
	parse  func(d *jsonDecoder, raw []byte, rec *ingest.Record, emit func(signal.Event)) error
}

var _ ingest.Decoder = (*jsonDecoder)(nil)

var jsonParsers = map[signal.Stream]func(d *jsonDecoder, raw []byte, rec *ingest.Record, emit func(signal.Event)) error{
	signal.Requests: (*jsonDecoder).requestEvent,
	signal.Gauges:   (*jsonDecoder).gaugeEvent,
	signal.Tickets:  (*jsonDecoder).ticketEvent,
	signal.Changes:  (*jsonDecoder).changeEvent,
	signal.Alerts:   (*jsonDecoder).alertEvent,
}

func newJSON(p *pipeline.Pipeline) ingest.Decoder {
	d := &jsonDecoder{stream: p.Stream, cfg: &p.Requests, names: newNamer(&p.Requests), parse: jsonParsers[p.Stream]}
	if len(p.Requests.Attributes) > 0 {
		d.keep = map[string]string{}
		for name, from := range p.Requests.Attributes {
			d.keep[name] = name
			for _, f := range from {
				d.keep[f] = name
			}
		}
	}
	return d
}

// Decode reads the record as one JSON value; where it is none, as a value a line. If its first line is none either, the
// whole is one dead letter; else each bad line is one of its own and the others count.
func (d *jsonDecoder) Decode(rec ingest.Record, emit func(signal.Event), reject func(ingest.DeadLetter)) {
	text := bytes.TrimSpace(bytes.TrimPrefix(rec.Value, []byte("\xef\xbb\xbf")))
	if len(text) == 0 {
		reject(ingest.DeadLetter{Reason: ingest.ReasonEmpty, Detail: "nothing but white space"})
		return
	}
	if json.Valid(text) {
		d.value(text, true, &rec, emit, reject)
		return
	}
	first := true
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		text = rest
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if json.Valid(line) {
			d.value(line, false, &rec, emit, reject)
		} else if first {
			reject(ingest.DeadLetter{Reason: ingest.ReasonMalformed, Detail: "not JSON: " + syntax(rec.Value)})
			return
		} else {
			reject(ingest.DeadLetter{Reason: ingest.ReasonMalformed, Detail: "a line is not JSON: " + syntax(line), Payload: line})
		}
		first = false
	}
}

func syntax(text []byte) string {
	var any json.RawMessage
	err := json.Unmarshal(text, &any)
	var bad *json.SyntaxError
	if errors.As(err, &bad) {
		return fmt.Sprintf("%v at byte %d", bad, bad.Offset)
	}
	return fmt.Sprint(err)
}

// value takes an object as an event and an array as several. whole tells that it is all of the record, which then need
// not be repeated as a part.
func (d *jsonDecoder) value(raw []byte, whole bool, rec *ingest.Record, emit func(signal.Event), reject func(ingest.DeadLetter)) {
	if raw[0] == '[' {
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			reject(ingest.DeadLetter{Reason: ingest.ReasonMalformed, Detail: err.Error()})
			return
		}
		for _, item := range list {
			d.object(bytes.TrimSpace(item), false, rec, emit, reject)
		}
		return
	}
	d.object(raw, whole, rec, emit, reject)
}

func (d *jsonDecoder) object(raw []byte, whole bool, rec *ingest.Record, emit func(signal.Event), reject func(ingest.DeadLetter)) {
	var err error
	if raw[0] == '{' {
		err = d.parse(d, raw, rec, emit)
	} else {
		err = invalid("an event must be an object, not %s", cut(string(raw), 40))
	}
	if err == nil {
		return
	}
	letter := ingest.DeadLetter{Reason: ingest.ReasonInvalid, Detail: err.Error()}
	var field *eventError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &field):
		letter.Reason = field.reason
	case errors.As(err, &kind):
		letter.Detail = fmt.Sprintf("%s must be %s, not %s", kind.Field, jsonKind(kind), kind.Value)
	}
	if !whole {
		letter.Payload = raw
	}
	reject(letter)
}

func jsonKind(e *json.UnmarshalTypeError) string {
	switch k := e.Type.Kind().String(); k {
	case "string":
		return "a text"
	case "uint64", "uint32", "int64":
		return "a whole number of its range"
	case "float64":
		return "a number"
	case "slice":
		return "a list"
	case "map", "struct":
		return "an object"
	default:
		return k
	}
}

// eventError is a mistake in an event, with the reason of its dead letter.
type eventError struct{ reason, text string }

func (e *eventError) Error() string { return e.text }

func invalid(format string, args ...any) error {
	return &eventError{ingest.ReasonInvalid, fmt.Sprintf(format, args...)}
}

func missing(field string) error {
	return &eventError{ingest.ReasonMissing, field + " is missing"}
}
