package decode

import (
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// wireMessage says which fields of a message hold texts, which have to be UTF-8, and which hold messages. All other
// fields only have to be well-formed. A test holds the tables to the definitions of OTLP.
type wireMessage struct {
	texts uint64 // bit n is field n
	parts [16]*wireMessage
}

func (m *wireMessage) text(n uint64) bool { return n < 64 && m.texts&(1<<n) != 0 }

func (m *wireMessage) part(n uint64) *wireMessage {
	if n < uint64(len(m.parts)) {
		return m.parts[n]
	}
	return nil
}

var (
	wireAnyValue   = &wireMessage{texts: 1 << 1}
	wireKeyValue   = &wireMessage{texts: 1 << 1, parts: [16]*wireMessage{2: wireAnyValue}}
	wireArrayValue = &wireMessage{parts: [16]*wireMessage{1: wireAnyValue}}
	wireKVList     = &wireMessage{parts: [16]*wireMessage{1: wireKeyValue}}
	wireEntityRef  = &wireMessage{texts: 1<<1 | 1<<2 | 1<<3 | 1<<4}
	wireResource   = &wireMessage{parts: [16]*wireMessage{1: wireKeyValue, 3: wireEntityRef}}
	wireScope      = &wireMessage{texts: 1<<1 | 1<<2, parts: [16]*wireMessage{3: wireKeyValue}}
	wireEvent      = &wireMessage{texts: 1 << 2, parts: [16]*wireMessage{3: wireKeyValue}}
	wireLink       = &wireMessage{texts: 1 << 3, parts: [16]*wireMessage{4: wireKeyValue}}
	wireStatus     = &wireMessage{texts: 1 << 2}
)

func init() { // they refer to each other
	wireAnyValue.parts[5], wireAnyValue.parts[6] = wireArrayValue, wireKVList
}

// wireDepthMax is far below what the protobuf library allows and far above what anybody sends.
const wireDepthMax = 100

const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wire32     = 5
)

// bad is the position after something that cannot be read.
const bad = -1

// uvarint reads a varint at i and gives the position behind it, or bad.
func uvarint(b []byte, i int) (uint64, int) {
	if uint(i) < uint(len(b)) && b[i] < 0x80 {
		return uint64(b[i]), i + 1
	}
	return uvarintLong(b, i)
}

func uvarintLong(b []byte, i int) (uint64, int) {
	if i > len(b) || i < 0 {
		return 0, bad
	}
	v, n := protowire.ConsumeVarint(b[i:])
	if n < 0 {
		return 0, bad
	}
	return v, i + n
}

// measured reads a length at i and gives where what it measures begins and ends; end is bad if it does not fit.
func measured(b []byte, i int) (begin, end int) {
	n, i := uvarint(b, i)
	if i == bad || n > uint64(len(b)-i) {
		return 0, bad
	}
	return i, i + int(n)
}

// skip gives the position behind the value of a field whose tag was read. Groups, which nobody uses, are bad here.
func skip(b []byte, i int, tag uint64) int {
	if n := tag >> 3; n < 1 || n > uint64(protowire.MaxValidNumber) {
		return bad
	}
	switch tag & 7 {
	case wireVarint:
		_, i = uvarint(b, i)
		return i
	case wire64:
		i += 8
	case wire32:
		i += 4
	case wireBytes:
		_, i = measured(b, i)
		return i
	default:
		return bad
	}
	if i > len(b) {
		return bad
	}
	return i
}

// valid tells whether b is a message that the protobuf library would take, too. It may say no where the library would
// not, to what is outlandish.
func (m *wireMessage) valid(b []byte, depth int) bool {
	if depth > wireDepthMax {
		return false
	}
	for i := 0; i < len(b); {
		var tag uint64
		if tag, i = uvarint(b, i); i == bad {
			return false
		}
		if tag&7 != wireBytes {
			if i = skip(b, i, tag); i == bad {
				return false
			}
			continue
		}
		n := tag >> 3
		begin, end := measured(b, i)
		if end == bad || n < 1 || n > uint64(protowire.MaxValidNumber) {
			return false
		}
		if m.text(n) && !utf8.Valid(b[begin:end]) {
			return false
		}
		if part := m.part(n); part != nil && !part.valid(b[begin:end], depth+1) {
			return false
		}
		i = end
	}
	return true
}

// Tags of AnyValue's fields.
const (
	anyString = 1<<3 | wireBytes
	anyBool   = 2<<3 | wireVarint
	anyInt    = 3<<3 | wireVarint
	anyDouble = 4<<3 | wire64
	anyArray  = 5<<3 | wireBytes
	anyList   = 6<<3 | wireBytes
	anyBytes  = 7<<3 | wireBytes
)

// scalarAny checks an attribute's value, which is one field or none. says tells whether it has a single value that is
// not the empty text: anything else counts as absent.
func scalarAny(b []byte) (says, ok bool) {
	if len(b) == 0 {
		return false, true
	}
	switch b[0] {
	case anyString:
		begin, end := measured(b, 1)
		return end > begin, end == len(b) && utf8.Valid(b[begin:])
	case anyInt, anyBool:
		_, i := uvarint(b, 1)
		return true, i == len(b)
	case anyDouble:
		return true, len(b) == 9
	case anyArray, anyList:
		begin, end := measured(b, 1)
		return false, end == len(b) && wireAnyValue.parts[b[0]>>3].valid(b[begin:], 0)
	case anyBytes:
		_, end := measured(b, 1)
		return false, end == len(b)
	}
	return false, false
}

// wireValue reads a value that scalarAny has checked.
func wireValue(b []byte) value {
	if len(b) == 0 {
		return value{}
	}
	switch b[0] {
	case anyString:
		begin, end := measured(b, 1)
		return value{text: string(b[begin:end])}
	case anyInt:
		n, _ := uvarint(b, 1)
		return value{number: int64(n), isInt: true}
	case anyBool:
		n, _ := uvarint(b, 1)
		return value{text: strconv.FormatBool(n != 0)}
	case anyDouble:
		return value{text: strconv.FormatFloat(math.Float64frombits(binary.LittleEndian.Uint64(b[1:])), 'g', -1, 64)}
	}
	return value{}
}
