package decode

import (
	"encoding/binary"
	"encoding/hex"

	"github.com/cespare/xxhash/v2"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	maxShapes   = 1 << 15 // of one generation
	maxShapeKey = 1 << 10
	maxServices = 1 << 12
)

// shapes remembers what the mapper made of spans, by all that it looks at but for times, ids and accounts. Whatever a
// mapper comes to look at beside attributes, name, kind and status must go into the key, or leave the span unshaped.
type shapes struct {
	young, old shapeTable // what is not asked for while young fills up is forgotten
	nameRank   int        // of the span's name as an operation, or noRank
	needName   bool       // it is more than that
	places     map[signal.Key]*ingest.Places
	services   map[string]string
}

func (s *shapes) init(m *mapper) {
	s.nameRank, s.services = noRank, map[string]string{}
	for _, at := range m.slots[spanName] {
		if at.field == fieldOperation {
			s.nameRank = min(s.nameRank, at.rank)
		} else {
			s.needName = true
		}
	}
}

func (s *shapes) known(h uint64, key []byte) *shapeEntry {
	e := s.young.find(h, key)
	if e == nil {
		if e = s.old.find(h, key); e != nil {
			s.add(h, e)
		}
	}
	return e
}

// place is what shapes of one key share.
func (s *shapes) place(r *signal.Request) *ingest.Places {
	k := signal.Key{Path: r.Path, Attributes: r.Attributes}
	p := s.places[k]
	if p == nil {
		if s.places == nil || len(s.places) >= 2*maxShapes {
			s.places = map[signal.Key]*ingest.Places{} // those that shapes have go on being of use to them
		}
		// One text for all of a service: they are compared when cells are sorted, which is quick for the same text.
		if name, ok := s.services[k.Service]; ok {
			k.Service = name
		} else if len(s.services) < maxServices {
			s.services[k.Service] = k.Service
		}
		p = ingest.NewPlaces(k)
		s.places[k] = p
	}
	return p
}

func (s *shapes) add(h uint64, e *shapeEntry) {
	if s.young.n >= maxShapes {
		s.young, s.old = s.old, s.young
		s.young.clear()
	}
	s.young.add(h, e)
}

// shapeTable finds shapes by their key. It is a map for one purpose: a look-up touches a place in a list and the entry,
// which spares most of the cache misses that a map of texts has, and with them a tenth of the time of a span.
type shapeTable struct {
	slots []shapeSlot // a power of two, at most half full
	n     int
}

type shapeSlot struct {
	hash  uint64
	entry *shapeEntry
}

// shapeEntry is a shape with its key; hopeless is the shape of spans that the mapper must see each time.
type shapeEntry struct {
	key      string
	hopeless bool
	shape    ingest.Shape
}

func (t *shapeTable) find(h uint64, key []byte) *shapeEntry {
	if t.n == 0 {
		return nil
	}
	for i := h & uint64(len(t.slots)-1); ; i = (i + 1) & uint64(len(t.slots)-1) {
		s := &t.slots[i]
		if s.entry == nil {
			return nil
		}
		if s.hash == h && s.entry.key == string(key) {
			return s.entry
		}
	}
}

// add puts in an entry that is not there.
func (t *shapeTable) add(h uint64, e *shapeEntry) {
	if 2*(t.n+1) > len(t.slots) {
		old := t.slots
		t.slots = make([]shapeSlot, max(2*len(old), 256))
		for _, s := range old {
			if s.entry != nil {
				t.put(s)
			}
		}
	}
	t.put(shapeSlot{h, e})
	t.n++
}

func (t *shapeTable) put(s shapeSlot) {
	i := s.hash & uint64(len(t.slots)-1)
	for t.slots[i].entry != nil {
		i = (i + 1) & uint64(len(t.slots)-1)
	}
	t.slots[i] = s
}

func (t *shapeTable) clear() {
	clear(t.slots)
	t.n = 0
}

// shape finds the shape of a span by its key, or asks the mapper once for all spans of the key. It is nil for spans that
// the mapper must see each time.
func (w *walker) shape(key []byte, b []byte, res *resource) *ingest.Shape {
	if len(key) > maxShapeKey {
		return nil
	}
	h := xxhash.Sum64(key)
	e := w.shapes.known(h, key)
	if e == nil {
		e = &shapeEntry{key: string(key), hopeless: true}
		if s, bad := w.read(b, res); bad == "" {
			if r, _ := w.m.finish(s); r != nil && r.Outcome != signal.Failure {
				e.hopeless, e.shape = false, ingest.NewShape(r, w.shapes.place(r))
			}
		}
		w.shapes.add(h, e)
	}
	if e.hopeless {
		return nil
	}
	return &e.shape
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
