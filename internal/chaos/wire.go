package chaos

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tocsin-project/tocsin/internal/scenario/wire"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// statuses of HTTP that mean an outcome.
var statuses = [...]int64{signal.Success: 200, signal.Failure: 503, signal.Rejected: 404, signal.Throttled: 429}

// writer encodes records, with memory of its own. It is used by one goroutine.
type writer struct {
	g        *generator
	services map[[2]string][]byte // spans by service and region
	span     []byte
}

func newWriter(g *generator) *writer { return &writer{g: g, services: map[[2]string][]byte{}} }

// make gives an entry's record as a sender would write it.
func (w *writer) make(stream string, e entry) (value []byte, at time.Time) {
	switch e.kind() {
	case empty:
		return nil, w.g.time(w.g.random(stream, e), e)
	case garbage:
		return []byte("\xff\xff\xff this is nothing that anybody could read"), w.g.time(w.g.random(stream, e), e)
	default:
	}
	switch stream {
	case spans:
		return w.traces(e)
	case gauges:
		return w.gauges(e)
	default:
		return w.ticket(e)
	}
}

// traces is TracesData as the Collector's Kafka exporter writes it, with one resource for each service and region.
func (w *writer) traces(e entry) (msg []byte, at time.Time) {
	for k := range w.services {
		w.services[k] = w.services[k][:0]
	}
	if e.kind() == nextYear { // its spans are never looked at
		p := paths[0]
		w.add(&span{end: e.at * 1e6}, p)
		at = w.g.time(w.g.random(spans, e), e)
	} else {
		at = w.g.record(e, func(s *span) { w.add(s, paths[s.key]) })
	}
	for _, p := range paths { // in a fixed order
		id := [2]string{p.service, p.region}
		of := w.services[id]
		if len(of) == 0 {
			continue
		}
		resource := wire.AppendText([]byte{0x0a}, "service.name", p.service)
		resource = wire.AppendText(append(resource, 0x0a), "cloud.region", p.region)
		rs := protowire.AppendBytes([]byte{0x0a}, resource)
		rs = protowire.AppendBytes(append(rs, 0x12), of)
		msg = protowire.AppendBytes(append(msg, 0x0a), rs)
		w.services[id] = of[:0]
	}
	return msg, at
}

func (w *writer) add(s *span, p path) {
	b := append(w.span[:0], 0x0a, 16)
	b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, uint64(s.end)), uint64(s.key))
	b = binary.LittleEndian.AppendUint64(append(b, 0x12, 8), uint64(s.end)|1)
	b = protowire.AppendString(append(b, 0x2a), p.method)
	b = append(b, 0x30, 2) // SERVER
	b = binary.LittleEndian.AppendUint64(append(b, 0x39), uint64(s.end-int64(s.latency)))
	b = binary.LittleEndian.AppendUint64(append(b, 0x41), uint64(s.end))
	b = wire.AppendText(append(b, 0x4a), "http.request.method", p.method)
	b = wire.AppendText(append(b, 0x4a), "http.route", p.route)
	b = wire.AppendNumber(append(b, 0x4a), "http.response.status_code", statuses[s.outcome])
	b = wire.AppendText(append(b, 0x4a), "enduser.id", fmt.Sprint("acct-", s.account))
	w.span = b
	id := [2]string{p.service, p.region}
	w.services[id] = protowire.AppendBytes(append(w.services[id], 0x12), b)
}

func (w *writer) gauges(e entry) ([]byte, time.Time) {
	at := w.g.time(w.g.random(gauges, e), e)
	type gauge struct {
		Time     int64  `json:"time"`
		Resource string `json:"resource"`
		Metric   string `json:"metric"`
		Value    uint64 `json:"value"`
	}
	all := make([]gauge, perGauges)
	for i := range all {
		t, _ := w.g.gaugeTime(at, e, i)
		all[i] = gauge{t.UnixMilli(), fmt.Sprint("pool/", i), "connections", gaugeValue(e, i)}
	}
	b, err := json.Marshal(all)
	if err != nil {
		panic(err) // numbers and texts cannot fail
	}
	return b, at
}

func (w *writer) ticket(e entry) ([]byte, time.Time) {
	at := w.g.time(w.g.random(tickets, e), e)
	return fmt.Appendf(nil, `{"time":%d,"id":%q,"text":"Record %d: nothing works","account":"acct-%d"}`, at.UnixMilli(), ticketID(e), e.id, e.id%100), at
}
