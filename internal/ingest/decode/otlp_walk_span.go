package decode

import (
	"bytes"
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

// Tags of a span's fields.
const (
	spanTraceID    = 1<<3 | wireBytes
	spanSpanID     = 2<<3 | wireBytes
	spanTraceState = 3<<3 | wireBytes
	spanParent     = 4<<3 | wireBytes
	spanNameField  = 5<<3 | wireBytes
	spanKind       = 6<<3 | wireVarint
	spanStart      = 7<<3 | wire64
	spanEnd        = 8<<3 | wire64
	spanAttributes = 9<<3 | wireBytes
	spanEvents     = 11<<3 | wireBytes
	spanLinks      = 13<<3 | wireBytes
	spanStatus     = 15<<3 | wireBytes
)

// span reads one span from i to the end of b.
func (w *walker) span(b []byte, i int, res *resource) bool {
	from := i
	var traceLen, idLen, position int
	var start, end uint64
	var kind int32
	var name, opText []byte
	failed := false
	shaped := w.shaping && !res.unshaped
	operation := res.operation
	if operation != noRank {
		opText = res.opText
	}
	before := len(w.buf)
	key := append(w.buf, byte(res.id), byte(res.id>>8), byte(res.id>>16), byte(res.id>>24), 0)
	for i < len(b) {
		var tag uint64
		var at int
		if c := b[i]; c < 0x80 { // as nearly all tags, and then lengths
			tag, at = uint64(c), i+1
		} else if tag, at = uvarint(b, i); at == bad {
			return false
		}
		switch tag & 7 {
		case wireBytes:
			var begin, stop int
			if at < len(b) && b[at] < 0x80 {
				begin = at + 1
				if stop = begin + int(b[at]); stop > len(b) {
					return false
				}
			} else if begin, stop = measured(b, at); stop == bad {
				return false
			}
			i = stop
			field := b[begin:stop]
			switch tag {
			case spanAttributes:
				k, v, ok := w.shortAttribute(field, position)
				if !ok {
					if k, v, ok = w.attribute(field, position); !ok {
						return false
					}
				}
				position++
				if k.id == 0 || v == nil {
					continue
				}
				if k.operation < operation {
					operation, opText = k.operation, nil
					if v[0] == anyString {
						opBegin, opEnd := measured(v, 1)
						opText = v[opBegin:opEnd]
					}
				}
				shaped = shaped && !k.unshaped
				key = append(key, byte(k.id), byte(k.id>>8))
				if k.status && v[0] == anyInt {
					key = append(key, statusClass(v)...)
				} else {
					key = append(key, v...)
				}
			case spanTraceID:
				traceLen = len(field)
			case spanSpanID:
				idLen = len(field)
			case spanTraceState:
				if !utf8.Valid(field) {
					return false
				}
				shaped = shaped && len(field) == 0 // it may say how the span was sampled
			case spanNameField:
				if !utf8.Valid(field) {
					return false
				}
				name = field
			case spanParent:
			case spanEvents:
				if !wireEvent.valid(field, 0) {
					return false
				}
			case spanLinks:
				if !wireLink.valid(field, 0) {
					return false
				}
			case spanStatus:
				code, ok := statusCode(field)
				if !ok {
					return false
				}
				if code >= 0 {
					failed = code == 2
				}
			default:
				if skip(b, at, tag) == bad {
					return false
				}
			}
		case wire64:
			if len(b)-at < 8 {
				return false
			}
			i = at + 8
			switch tag {
			case spanStart:
				start = binary.LittleEndian.Uint64(b[at:])
			case spanEnd:
				end = binary.LittleEndian.Uint64(b[at:])
			default:
				if skip(b, at, tag) == bad {
					return false
				}
			}
		case wireVarint:
			var v uint64
			if v, i = uvarint(b, at); i == bad {
				return false
			}
			if tag == spanKind {
				kind = int32(v)
			} else if skip(b, at, tag) == bad {
				return false
			}
		default:
			if i = skip(b, at, tag); i == bad {
				return false
			}
		}
	}
	f := foundSpan{from: from, upTo: len(b), res: res, latency: -1}
	switch {
	case badIDs(traceLen, idLen) != "" || end == 0: // a dead letter
	case kind < 0 || kind > maxSpanKind || !w.counts[kind]:
		return true
	case end > math.MaxInt64 || !shaped || len(key)-before > maxShapeKey || before > maxShapeKeys:
	default:
		key[before+4] = byte(kind)<<1 | bit(failed)
		if w.needName || operation >= w.nameRank || opText == nil || bytes.Equal(opText, name) {
			// 0xffff is no attribute's number.
			key = append(append(key, 0xff, 0xff), name...)
			if len(key)-before > maxShapeKey {
				break
			}
		}
		f.end = int64(end)
		if start != 0 && start <= end {
			f.latency = int64(end - start)
		}
		w.shaped = append(w.shaped, shapedSpan{xxhash.Sum64(key[before:]), int32(len(w.found)), int32(before), int32(len(key))})
		w.buf = key
	}
	w.found = append(w.found, f)
	return true
}
