package wire

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/scenario"
	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/signal/signaljson"
)

// Record is what is to be produced. Time is the time of its last event, so that a record is never older than what is
// in it, and at most one slice younger than its first event.
type Record struct {
	Topic     string
	Partition int
	Time      time.Time
	Key       []byte // nil: the exporter sets none
	Value     []byte
}

// Encoding is the form of the requests.
type Encoding string

const (
	OTLPProto Encoding = "otlp_proto"
	OTLPJSON  Encoding = "otlp_json"
	Native    Encoding = "json" // one event a record
)

// Topic is where a stream goes.
type Topic struct {
	Name       string
	Partitions int
}

// Options of an encoder; what is left out is the demo's.
type Options struct {
	Encoding Encoding
	Requests Topic
	Gauges   Topic
	Tickets  Topic
	Changes  Topic
	Batch    int // spans a record
}

func (o *Options) setDefaults() {
	o.Encoding = cmp.Or(o.Encoding, OTLPProto)
	requests := Topic{"otlp_spans", 4}
	if o.Encoding == Native {
		requests.Name = "tocsin.requests"
	}
	o.Requests = cmp.Or(o.Requests, requests)
	o.Gauges = cmp.Or(o.Gauges, Topic{"tocsin.gauges", 1})
	o.Tickets = cmp.Or(o.Tickets, Topic{"tocsin.tickets", 1})
	o.Changes = cmp.Or(o.Changes, Topic{"tocsin.changes", 1})
	o.Batch = cmp.Or(o.Batch, 250)
}

// Topics are the topics an encoder with these options writes to, with their numbers of partitions.
func (o Options) Topics() []Topic {
	o.setDefaults()
	return []Topic{o.Requests, o.Gauges, o.Tickets, o.Changes}
}

// Encoder turns slices into records. It is not safe for concurrent use.
type Encoder struct {
	opts     Options
	scenario *scenario.Scenario
	sent     int // records of requests so far: they go to the partitions in turn

	// What occurs again and again, and memory used from message to message.
	calls    map[signal.Path]*call
	words    words
	sets     map[signal.Attributes]signal.Attributes
	heads    map[group][]byte
	scope    []byte
	scratch  span
	sections []section
	one      []byte
}

// call is how a path is called, and those attributes of its spans that are always the same.
type call struct {
	scenario.Call
	name       string
	attributes []*attribute
}

// NewEncoder makes an encoder for events of the scenario, which knows which paths are HTTP and which gRPC.
func NewEncoder(s *scenario.Scenario, o Options) *Encoder {
	o.setDefaults()
	return &Encoder{
		opts: o, scenario: s, calls: map[signal.Path]*call{}, words: newWords(),
		sets: map[signal.Attributes]signal.Attributes{}, heads: map[group][]byte{},
	}
}

// Encode gives the records of one slice in order of time. Whoever produces all of them before those of the next slice
// keeps every topic within one slice of the others.
func (e *Encoder) Encode(s *scenario.Slice) ([]Record, error) {
	var out []Record
	requests, err := e.requests(s.Requests)
	if err != nil {
		return nil, err
	}
	out = append(out, requests...)
	add := func(t Topic, ev signal.Event) error {
		value, err := signaljson.Append(nil, ev)
		if err != nil {
			return fmt.Errorf("encode for %s: %w", t.Name, err)
		}
		out = append(out, Record{Topic: t.Name, Partition: len(out) % t.Partitions, Time: ev.At(), Value: value})
		return nil
	}
	for i := range s.Gauges {
		if err := add(e.opts.Gauges, &s.Gauges[i]); err != nil {
			return nil, err
		}
	}
	for i := range s.Tickets {
		if err := add(e.opts.Tickets, &s.Tickets[i]); err != nil {
			return nil, err
		}
	}
	for i := range s.Changes {
		if err := add(e.opts.Changes, &s.Changes[i]); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(out, func(a, b Record) int { return a.Time.Compare(b.Time) })
	return out, nil
}

func (e *Encoder) requests(list []signal.Request) (out []Record, err error) {
	size := e.opts.Batch
	if e.opts.Encoding == Native {
		size = 1
	}
	for batch := range slices.Chunk(list, size) {
		var value []byte
		switch e.opts.Encoding {
		case OTLPProto:
			value, err = e.ToOTLP(batch)
		case OTLPJSON:
			value, err = e.ToOTLPJSON(batch)
		case Native:
			value, err = signaljson.Append(nil, &batch[0])
		default:
			err = fmt.Errorf("no encoding %q", e.opts.Encoding)
		}
		if err != nil {
			return nil, fmt.Errorf("encode requests: %w", err)
		}
		out = append(out, Record{
			Topic: e.opts.Requests.Name, Partition: e.sent % e.opts.Requests.Partitions, Time: batch[len(batch)-1].Time, Value: value,
		})
		e.sent++
	}
	return out, nil
}

func (e *Encoder) call(p signal.Path) *call {
	c := e.calls[p]
	if c != nil {
		return c
	}
	c = &call{Call: e.scenario.Call(p)}
	if c.RPC {
		c.name = p.Service + "/" + p.Operation
		c.attributes = []*attribute{e.words.text("rpc.system", "grpc"), e.words.text("rpc.method", p.Operation)}
	} else {
		c.name = c.Method + " " + p.Operation
		c.attributes = []*attribute{e.words.text("http.request.method", c.Method), e.words.text("http.route", p.Operation)}
	}
	if len(e.calls) < maxWords {
		e.calls[p] = c
	}
	return c
}
