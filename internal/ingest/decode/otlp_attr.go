package decode

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"
)

// attribute reads a KeyValue. v is its value as it is on the wire, nil where it has none that counts. Only the usual
// form is taken, the name and then the value.
func (w *walker) attribute(b []byte, position int) (k *attrKey, v []byte, ok bool) {
	if len(b) < 2 || b[0] != 1<<3|wireBytes {
		return nil, nil, false
	}
	begin, end := measured(b, 1)
	if end == bad {
		return nil, nil, false
	}
	if k, ok = w.named(b[begin:end], position); !ok {
		return nil, nil, false
	}
	if end == len(b) {
		return k, nil, true
	}
	if b[end] != 2<<3|wireBytes {
		return nil, nil, false
	}
	begin, stop := measured(b, end+1)
	if stop != len(b) {
		return nil, nil, false
	}
	v = b[begin:]
	says, ok := scalarAny(v)
	if !says {
		v = nil
	}
	return k, v, ok
}

// shortAttribute is attribute for what nearly all attributes are: the name at this place of the span before, and a text
// or a number of so few bytes that all lengths are one byte. It makes no call but to compare and to check them. known is false where it is anything else.
func (w *walker) shortAttribute(b []byte, position int) (k *attrKey, v []byte, known bool) {
	if position >= maxWalkPosition {
		return nil, nil, false
	}
	k = w.guess[position]
	if k == nil || len(k.name) > 120 {
		return nil, nil, false
	}
	at := 2 + len(k.name) // where the value's field begins
	if len(b) < at+4 || b[0] != 1<<3|wireBytes || int(b[1]) != len(k.name) || string(b[2:at]) != k.name {
		return nil, nil, false
	}
	v = b[at:]
	if len(v) > 124 || v[0] != 2<<3|wireBytes || int(v[1]) != len(v)-2 {
		return nil, nil, false
	}
	switch v[2] {
	case anyString:
		if int(v[3]) == len(v)-4 && len(v) > 4 && (len(v) >= 8 && ascii(v) || utf8.Valid(v[4:])) {
			return k, v[2:], true
		}
	case anyInt:
		if _, end := uvarint(v, 3); end == len(v) {
			return k, v[2:], true
		}
	}
	return nil, nil, false
}

// ascii tells whether no byte of at least 8 is above 127.
func ascii(b []byte) bool {
	all := binary.LittleEndian.Uint64(b[len(b)-8:])
	for ; len(b) > 8; b = b[8:] {
		all |= binary.LittleEndian.Uint64(b)
	}
	return all&0x8080808080808080 == 0
}

// named finds what a name is looked at for. Names are compared with the one at the same place of the span before, which
// it nearly always is; a known name is known to be UTF-8.
func (w *walker) named(name []byte, position int) (k *attrKey, ok bool) {
	if position < maxWalkPosition {
		if k = w.guess[position]; k != nil && k.name == string(name) {
			return k, true
		}
	}
	k = w.keys[string(name)]
	if k == nil {
		if !utf8.Valid(name) {
			return nil, false
		}
		if len(name) > maxWalkKeyBytes || len(w.keys) >= maxWalkKeys+len(w.m.slots) {
			return w.other, true
		}
		k = &attrKey{name: string(name), operation: noRank}
		w.keys[k.name] = k
	}
	if position < maxWalkPosition {
		w.guess[position] = k
	}
	return k, true
}

// resource reads a Resource, nil if it is not the usual. The same bytes were the same resource before, so most are
// found without reading them.
func (w *walker) resource(b []byte) *resource {
	if r := w.resources[string(b)]; r != nil {
		return r
	}
	if !wireResource.valid(b, 0) {
		return nil
	}
	r := &resource{values: make([]value, len(w.m.values)), operation: noRank}
	w.m.beginResource()
	var key strings.Builder
	for i := 0; i < len(b); {
		tag, at := uvarint(b, i)
		if tag == 1<<3|wireBytes {
			begin, end := measured(b, at)
			k, v, ok := w.attribute(b[begin:end], maxWalkPosition)
			if !ok {
				return nil
			}
			if v != nil && len(k.slots) > 0 {
				val := wireValue(v)
				w.m.resourceAttr(k.name, val)
				if rank := k.operation + 1; k.operation != noRank && rank < r.operation {
					r.operation, r.opText = rank, nil
					if !val.isInt {
						r.opText = []byte(val.text)
					}
				}
				r.unshaped = r.unshaped || k.unshaped
				key.WriteString(k.name)
				key.WriteByte(0)
				key.Write(v)
			}
		}
		i = skip(b, at, tag)
	}
	copy(r.values, w.m.resource)
	r = w.known.resource(key.String(), r)
	if len(b) <= maxWalkRaw {
		if len(w.resources) >= maxWalkResources {
			clear(w.resources)
		}
		w.resources[string(b)] = r
	}
	return r
}
