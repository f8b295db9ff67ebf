package decode

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/signal/signaljson"
)

var jsonEntry = Entry{
	Name:    "json",
	Summary: "Native events: one object, an array of objects, or one object a line. Unknown fields are ignored; times are RFC 3339 or Unix milliseconds.",
	Example: `{"time":"2026-09-13T08:43:00Z","service":"issues","operation":"create","access":"write","outcome":"failure","status":"503","latency_ms":30012,"account":"acme","attributes":{"region":"iad"}}`,
	New:     newJSON,
}

// jsonDecoder splits records into events and applies what the pipeline says of them; the form of one event is
// signaljson's.
type jsonDecoder struct {
	stream signal.Stream
	names  *namer
	keep   map[string]string // attribute in events → name; nil keeps all as they are
	sets   map[signal.Attributes]signal.Attributes
	parse  parseFunc // reads one object; nil reads native events
	at     time.Time // the record's timestamp
	keeper keeper
	offset int64  // of the record
	number uint64 // of the event in it

	// State of the event that is being read.
	raw  []byte
	emit func(signal.Event)
	bad  error
	each func(signal.Event)
}

var _ ingest.Decoder = (*jsonDecoder)(nil)

func newJSON(p *pipeline.Pipeline) ingest.Decoder {
	d := &jsonDecoder{stream: p.Stream, names: newNamer(&p.Requests), keeper: newKeeper(&p.Requests), sets: map[signal.Attributes]signal.Attributes{}}
	d.each = d.event
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
	d.at, d.offset, d.number = rec.Time, rec.Offset, 0
	text := bytes.TrimSpace(bytes.TrimPrefix(rec.Value, []byte("\xef\xbb\xbf")))
	if len(text) == 0 {
		reject(ingest.DeadLetter{Reason: ingest.ReasonEmpty, Detail: "nothing but white space"})
		return
	}
	if json.Valid(text) {
		d.value(text, true, emit, reject)
		return
	}
	first := true
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		text = rest
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		switch {
		case json.Valid(line):
			d.value(line, false, emit, reject)
		case first:
			reject(ingest.DeadLetter{Reason: ingest.ReasonMalformed, Detail: "not JSON: " + syntax(rec.Value)})
			return
		default:
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
func (d *jsonDecoder) value(raw []byte, whole bool, emit func(signal.Event), reject func(ingest.DeadLetter)) {
	if raw[0] != '[' {
		d.object(raw, whole, emit, reject)
		return
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		reject(ingest.DeadLetter{Reason: ingest.ReasonMalformed, Detail: err.Error()})
		return
	}
	for _, item := range list {
		d.object(item, false, emit, reject)
	}
}

func (d *jsonDecoder) object(raw []byte, whole bool, emit func(signal.Event), reject func(ingest.DeadLetter)) {
	letter := ingest.DeadLetter{Reason: ingest.ReasonInvalid}
	if !whole {
		letter.Payload = raw
	}
	if raw[0] != '{' {
		letter.Detail = "an event must be an object, not " + cut(string(raw), 40)
		reject(letter)
		return
	}
	if d.parse != nil {
		d.raw, d.emit, d.bad = raw, emit, nil
		d.parse(raw, d.at, d.each, func(err error) {
			reject(ingest.DeadLetter{Reason: reasonOf(err), Detail: err.Error(), Payload: letter.Payload})
		})
		return
	}
	d.raw, d.emit, d.bad = raw, emit, d.checkType(raw)
	err := d.bad
	if err == nil {
		err = cmp.Or(signaljson.Decode(raw, d.stream, d.each), d.bad)
	}
	if err == nil {
		return
	}
	letter.Detail, letter.Reason = err.Error(), reasonOf(err)
	reject(letter)
}

// reasonOf is the reason that an error of signaljson's kind carries; other errors are about values.
func reasonOf(err error) string {
	var own *signaljson.Error
	if errors.As(err, &own) {
		return string(own.Reason)
	}
	return ingest.ReasonInvalid
}

// checkType looks at the "type" of events in recordings; where it is given it must be this stream's.
func (d *jsonDecoder) checkType(raw []byte) error {
	if !bytes.Contains(raw, []byte(`"type"`)) {
		return nil
	}
	var head struct {
		Type scalar `json:"type"`
	}
	if err := json.Unmarshal(raw, &head); err != nil || head.Type.text == "" || head.Type.text == typeNames[d.stream] {
		return nil // what else is wrong is found later
	}
	return fmt.Errorf("type: %q does not belong into a pipeline of %s", cut(head.Type.text, 40), d.stream)
}

// typeNames are the words of recordings.
var typeNames = map[signal.Stream]string{
	signal.Requests: "request",
	signal.Gauges:   "gauge",
	signal.Tickets:  "ticket",
	signal.Changes:  "change",
	signal.Alerts:   "alert",
}
