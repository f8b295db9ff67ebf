package signaljson

import (
	"strconv"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// A recording has millions of requests and gauges, all alike. What is written plainly (known keys, text without escapes,
// no nesting but attributes) is read here, in a fifth of encoding/json's time; at the first sign of anything else the
// event is left to encoding/json, so that there is one judge of what is right.

// plain reads one object of plain values.
type plain struct {
	b  []byte
	i  int
	ok bool // still plain
}

func (p *plain) space() {
	for p.i < len(p.b) && (p.b[p.i] == ' ' || p.b[p.i] == '\t' || p.b[p.i] == '\r' || p.b[p.i] == '\n') {
		p.i++
	}
}

// eat consumes one byte of syntax if it is next.
func (p *plain) eat(c byte) bool {
	p.space()
	if p.i < len(p.b) && p.b[p.i] == c {
		p.i++
		return true
	}
	return false
}

// object calls field for each key with the value next.
func (p *plain) object(field func(key []byte)) {
	if p.ok = p.ok && p.eat('{'); !p.ok || p.eat('}') {
		return
	}
	for p.ok {
		key := p.text()
		if p.ok = p.ok && p.eat(':'); !p.ok {
			return
		}
		if field(key); !p.ok || p.eat('}') {
			return
		}
		p.ok = p.ok && p.eat(',')
	}
}

func (p *plain) text() []byte {
	if !p.eat('"') {
		p.ok = false
		return nil
	}
	for start := p.i; p.i < len(p.b); p.i++ {
		switch c := p.b[p.i]; {
		case c == '"':
			p.i++
			return p.b[start : p.i-1]
		case c == '\\' || c < ' ' || c >= 0x80:
			p.ok = false
			return nil
		}
	}
	p.ok = false
	return nil
}

// number reads a number of JSON's grammar as far as the digits, point, signs and exponent go; odd forms, such as one
// with a leading zero, are not plain.
func (p *plain) number() []byte {
	p.space()
	start := p.i
	for p.i < len(p.b) {
		c := p.b[p.i]
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			break
		}
		p.i++
	}
	n := p.b[start:p.i]
	if len(n) == 0 || n[0] < '1' && n[0] != '-' && (len(n) > 1 && n[1] != '.') || n[len(n)-1] == '.' || n[0] == '-' && (len(n) < 2 || n[1] < '1' || n[1] > '9') {
		p.ok = false
	}
	return n
}

func (p *plain) float() *float64 {
	n := p.number()
	if !p.ok {
		return nil
	}
	f, err := strconv.ParseFloat(string(n), 64)
	p.ok = err == nil
	return &f
}

func (p *plain) time() (t timeJSON) {
	if p.space(); p.i < len(p.b) && p.b[p.i] == '"' {
		at, err := time.Parse(time.RFC3339Nano, string(p.text()))
		p.ok = p.ok && err == nil
		return timeJSON{at.UTC()}
	}
	ms, err := strconv.ParseInt(string(p.number()), 10, 64)
	p.ok = p.ok && err == nil
	return timeJSON{time.UnixMilli(ms).UTC()}
}

func (p *plain) attributes() attributes {
	var pairs []signal.Attr
	p.object(func(key []byte) { pairs = append(pairs, signal.Attr{Name: string(key), Value: string(p.text())}) })
	return attributes(signal.AttributesOf(pairs...))
}

// done tells whether the whole was plain.
func (p *plain) done() bool {
	p.space()
	return p.ok && p.i == len(p.b)
}

func plainRequest(data []byte) (*requestJSON, bool) {
	p, j := plain{b: data, ok: true}, requestJSON{}
	p.object(func(key []byte) {
		switch string(key) {
		case "type":
			p.text()
		case "time":
			j.Time = p.time()
		case "service":
			j.Service = string(p.text())
		case "operation":
			j.Operation = string(p.text())
		case "access":
			j.Access = string(p.text())
		case "outcome":
			j.Outcome = string(p.text())
		case "count":
			j.Count = p.float()
		case "status":
			j.Status = text(p.text())
		case "error":
			j.Error = string(p.text())
		case "latency_ms":
			j.LatencyMS = p.float()
		case "account":
			j.Account = text(p.text())
		case "attempt":
			j.Attempt = p.float()
		case "attributes":
			j.Attributes = p.attributes()
		case "trace_id":
			j.TraceID = string(p.text())
		default:
			p.ok = false
		}
	})
	return &j, p.done()
}

func plainGauge(data []byte) (*gaugeJSON, bool) {
	p, j := plain{b: data, ok: true}, gaugeJSON{}
	p.object(func(key []byte) {
		switch string(key) {
		case "type":
			p.text()
		case "time":
			j.Time = p.time()
		case "resource":
			j.Resource = string(p.text())
		case "metric":
			j.Metric = string(p.text())
		case "value":
			j.Value = p.float()
		case "limit":
			j.Limit = p.float()
		case "unit":
			j.Unit = string(p.text())
		case "attributes":
			j.Attributes = p.attributes()
		default:
			p.ok = false
		}
	})
	return &j, p.done()
}
