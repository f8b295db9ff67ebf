package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"google.golang.org/protobuf/encoding/protowire"
)

// The floors: what a loop over fetched records costs that does nothing, that walks the spans and looks at their status,
// and that counts them by service, region, route, method and 10 seconds. They check nothing, and know beforehand what
// the spans look like.
const (
	modeDiscard   = "discard"
	modeWalk      = "walk"
	modeAggregate = "aggregate"
)

// errWire is panicked inside of the floors, whose input is our own.
var errWire = errors.New("broken protobuf")

// runFloor reads the topic once.
func runFloor(c config, mode string) (result, error) {
	var spans, failed int64
	a := aggregate{groups: map[string]*group{}}
	f := func([]byte) {}
	switch mode {
	case modeDiscard:
	case modeWalk:
		f = func(b []byte) {
			eachSpan(b, func([]byte) {}, func(sp []byte) {
				spans++
				eachField(sp, func(n protowire.Number, st []byte) {
					if n == 15 && status(st) == 2 {
						failed++
					}
				})
			})
		}
	case modeAggregate:
		f = a.record
	default:
		return result{}, fmt.Errorf("there is no floor %q", mode)
	}
	m := startMeter()
	for partition, end := range c.Ends {
		conn, err := net.Dial("tcp", c.Kafka)
		if err != nil {
			return result{}, fmt.Errorf("connect to the broker: %w", err)
		}
		r := rawFetch{conn: conn}
		err = r.partition(c.Topic, int32(partition), end, f)
		conn.Close()
		if err != nil {
			return result{}, err
		}
	}
	out := m.stop()
	for _, g := range a.groups {
		spans, failed = spans+g.total, failed+g.failed
	}
	if mode != modeDiscard && (spans != c.Spans || failed != c.Failed) {
		return result{}, fmt.Errorf("%s: %d spans and %d failed, %d and %d are right", mode, spans, failed, c.Spans, c.Failed)
	}
	return out, nil
}

func eachField(b []byte, f func(n protowire.Number, v []byte)) {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			panic(errWire)
		}
		b = b[n:]
		if typ == protowire.BytesType {
			v, n := protowire.ConsumeBytes(b)
			if n < 0 {
				panic(errWire)
			}
			f(num, v)
			b = b[n:]
			continue
		}
		if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
			panic(errWire)
		}
		b = b[n:]
	}
}

func eachSpan(b []byte, resource, span func([]byte)) {
	eachField(b, func(n protowire.Number, rs []byte) {
		if n != 1 {
			return
		}
		eachField(rs, func(n protowire.Number, x []byte) {
			switch int(n) {
			case 1:
				resource(x)
			case 2:
				eachField(x, func(n protowire.Number, sp []byte) {
					if n == 2 {
						span(sp)
					}
				})
			}
		})
	})
}

func status(b []byte) (code uint64) {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			panic(errWire)
		}
		b = b[n:]
		if num == 3 && typ == protowire.VarintType {
			if code, n = protowire.ConsumeVarint(b); n < 0 {
				panic(errWire)
			}
		} else if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
			panic(errWire)
		}
		b = b[n:]
	}
	return code
}

type group struct{ total, failed int64 }

type aggregate struct {
	groups          map[string]*group
	key             []byte
	service, region []byte
}

func (a *aggregate) record(b []byte) {
	eachSpan(b, func(res []byte) {
		a.service, a.region = nil, nil
		eachField(res, func(n protowire.Number, x []byte) {
			if n != 1 {
				return
			}
			switch k, v := keyValue(x); {
			case bytes.Equal(k, []byte("service.name")):
				a.service = v
			case bytes.Equal(k, []byte("cloud.region")):
				a.region = v
			}
		})
	}, a.span)
}

func (a *aggregate) span(b []byte) {
	var route, method []byte
	var start, code uint64
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			panic(errWire)
		}
		b = b[n:]
		switch {
		case num == 9 && typ == protowire.BytesType, num == 15 && typ == protowire.BytesType:
			x, m := protowire.ConsumeBytes(b)
			if n = m; n < 0 {
				panic(errWire)
			}
			if num == 15 {
				code = status(x)
				break
			}
			switch k, v := keyValue(x); {
			case bytes.Equal(k, []byte("http.route")):
				route = v
			case bytes.Equal(k, []byte("http.request.method")):
				method = v
			}
		case num == 7 && typ == protowire.Fixed64Type:
			if start, n = protowire.ConsumeFixed64(b); n < 0 {
				panic(errWire)
			}
		default:
			if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
				panic(errWire)
			}
		}
		b = b[n:]
	}
	k := binary.LittleEndian.AppendUint64(a.key[:0], start/10e9)
	for _, part := range [][]byte{a.service, a.region, route, method} {
		k = append(append(k, part...), 0)
	}
	a.key = k
	g := a.groups[string(k)]
	if g == nil {
		g = &group{}
		a.groups[string(k)] = g
	}
	g.total++
	if code == 2 {
		g.failed++
	}
}

// keyValue gives the key and the text of a KeyValue.
func keyValue(b []byte) (k, v []byte) {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 || typ != protowire.BytesType {
			panic(errWire)
		}
		x, m := protowire.ConsumeBytes(b[n:])
		if m < 0 {
			panic(errWire)
		}
		b = b[n+m:]
		switch {
		case num == 1:
			k = x
		case num == 2 && len(x) > 0 && x[0] == 0x0a:
			if v, m = protowire.ConsumeBytes(x[1:]); m < 0 {
				panic(errWire)
			}
		}
	}
	return k, v
}
