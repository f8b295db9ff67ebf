package decode

import (
	"encoding/binary"
	"encoding/hex"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	maxShapes   = 1 << 15 // of one generation
	maxShapeKey = 1 << 10
)

// shapes remembers what the mapper made of spans, by all that it looks at but for times, ids and accounts. Whatever a
// mapper comes to look at beside attributes, name, kind and status must go into the key, or leave the span unshaped.
type shapes struct {
	young, old map[string]*ingest.Shape // what is not asked for while young fills up is forgotten
	nameRank   int                      // of the span's name as an operation, or noRank
	needName   bool                     // it is more than that
}

func (s *shapes) init(m *mapper) {
	s.young, s.nameRank = map[string]*ingest.Shape{}, noRank
	for _, at := range m.slots[spanName] {
		if at.field == fieldOperation {
			s.nameRank = min(s.nameRank, at.rank)
		} else {
			s.needName = true
		}
	}
}

func (s *shapes) known(key []byte) *ingest.Shape {
	if sh := s.young[string(key)]; sh != nil {
		return sh
	}
	sh := s.old[string(key)]
	if sh != nil {
		s.add(key, sh)
	}
	return sh
}

func (s *shapes) add(key []byte, sh *ingest.Shape) {
	if len(s.young) >= maxShapes {
		s.young, s.old = s.old, s.young
		if clear(s.young); s.young == nil {
			s.young = map[string]*ingest.Shape{}
		}
	}
	s.young[string(key)] = sh
}

// hopeless is the shape of spans that the mapper must see each time.
var hopeless = &ingest.Shape{Request: signal.Request{Outcome: signal.Failure}}

// learn asks the mapper once for all spans of a key.
func (w *walker) learn(key []byte, b []byte, res *resource) *ingest.Shape {
	if len(key) > maxShapeKey {
		return hopeless
	}
	sh := hopeless
	if s, bad := w.read(b, res); bad == "" {
		if r, _ := w.m.finish(s); r != nil && r.Outcome != signal.Failure {
			sh = &ingest.Shape{Request: *r}
			sh.Request.Account, sh.Request.TraceID, sh.Request.Error = "", "", ""
		}
	}
	w.shapes.add(key, sh)
	return sh
}

// read gives the mapper a span that walk has found, with its attributes; bad says why it is none.
func (w *walker) read(b []byte, res *resource) (s *span, bad string) {
	s = &w.s
	*s = span{}
	copy(w.m.values, res.values)
	var trace []byte
	var kind int32
	position := 0
	for i := 0; i < len(b); {
		tag, at := uvarint(b, i)
		i = skip(b, at, tag)
		var field []byte
		if tag&7 == wireBytes {
			begin, end := measured(b, at)
			field = b[begin:end]
		}
		switch tag {
		case spanAttributes:
			k, v, _ := w.attribute(field, position)
			if position++; v != nil && len(k.slots) > 0 {
				w.m.spanAttr(k.name, wireValue(v))
			}
		case spanTraceID:
			trace = field
		case spanSpanID:
			s.id = field
		case spanTraceState:
			s.traceState = string(field)
		case spanNameField:
			s.name = string(field)
		case spanKind:
			v, _ := uvarint(b, at)
			kind = int32(v)
		case spanStart:
			s.start = binary.LittleEndian.Uint64(b[at:])
		case spanEnd:
			s.end = binary.LittleEndian.Uint64(b[at:])
		case spanStatus:
			if code, _ := statusCode(field); code >= 0 {
				s.failed = code == 2
			}
		}
	}
	if bad := badIDs(len(trace), len(s.id)); bad != "" {
		return nil, bad
	}
	if s.kind = protoKind(kind); w.m.kinds[s.kind] {
		s.traceID = hex.EncodeToString(trace)
	}
	return s, ""
}
