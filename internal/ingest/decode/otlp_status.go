package decode

// Statuses that shapes do not tell apart, as values on the wire: httpOutcome judges all of a class alike.
var (
	statusSuccess  = []byte{anyInt, 0xc8, 0x01}
	statusRejected = []byte{anyInt, 0x90, 0x03}
)

// statusClass gives another status of the same class, or v itself.
func statusClass(v []byte) []byte {
	n, _ := uvarint(v, 1)
	switch {
	case n >= 200 && n < 400:
		return statusSuccess
	case n >= 400 && n < 500 && n != 429:
		return statusRejected
	}
	return v
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// statusCode reads a Status; -1 if it has no code.
func statusCode(b []byte) (code int32, ok bool) {
	if len(b) == 2 && b[0] == 3<<3 && b[1] < 0x80 {
		return int32(b[1]), true
	}
	if !wireStatus.valid(b, 0) {
		return 0, false
	}
	code = -1
	for i := 0; i < len(b); {
		tag, at := uvarint(b, i)
		if tag == 3<<3|wireVarint {
			v, _ := uvarint(b, at)
			if code = int32(v); code < 0 {
				return 0, false // no status has such a code
			}
		}
		i = skip(b, at, tag)
	}
	return code, true
}
