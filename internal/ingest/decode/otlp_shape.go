package decode

import (
	"encoding/binary"
	"encoding/hex"
	"sync"
	"sync/atomic"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	maxShapes   = 1 << 17 // of one generation
	maxShapeKey = 1 << 10
	// maxShapeKeys is how many bytes of keys are kept of one record; spans behind that have no shape.
	maxShapeKeys = 16 << 20
	maxServices  = 1 << 12
)

// learned is what the decoders of a pipeline's partitions learn of its spans, for all of them: a partition that is new
// need not learn again, and the memory of many partitions is that of one. Whatever the mapper makes of a span has to be
// a function of the span and the pipeline. Finding takes no lock.
type learned struct {
	shapes atomic.Pointer[shapes]

	mu       sync.Mutex // held to add
	keys     map[signal.Key]*ingest.Key
	number   uint32 // of the newest key
	services map[string]string
	same     map[string]*resource // resources by what matters of them
	numbers  uint32               // given to resources
}

func newLearned() *learned {
	l := &learned{keys: map[signal.Key]*ingest.Key{}, services: map[string]string{}, same: map[string]*resource{}}
	l.shapes.Store(&shapes{young: newShapeTable(256), old: newShapeTable(1)})
	return l
}

// shapes remembers what the mapper made of spans, by all that it looks at but for times, ids and accounts. Whatever a
// mapper comes to look at beside attributes, name, kind and status must go into the key, or leave the span unshaped.
type shapes struct {
	young, old *shapeTable // what is not asked for while young fills up is forgotten
}

// known finds a shape, or none.
func (l *learned) known(h uint64, key []byte) *shapeEntry {
	s := l.shapes.Load()
	e := s.young.find(h, key)
	if e == nil {
		if e = s.old.find(h, key); e != nil {
			e = l.add(h, e)
		}
	}
	return e
}

// touchedAtOnce is how many shapes are brought near at once.
const touchedAtOnce = 64

// touch brings what finding the shapes of some spans will look at into the processor's caches, step by step for all of
// them: with many shapes each step is a miss, and those of different spans need not wait for each other.
func (l *learned) touch(spans []shapedSpan) (n int) {
	t := l.shapes.Load().young
	var entries [touchedAtOnce]*shapeEntry
	for i := range spans {
		entries[i] = t.slots[spans[i].hash&uint64(len(t.slots)-1)].entry.Load()
	}
	var keys [touchedAtOnce]string
	for i := range spans {
		if e := entries[i]; e != nil {
			keys[i] = e.key
		}
	}
	for i := range spans {
		if k := keys[i]; len(k) > touchedKey {
			n += int(k[0]) + int(k[touchedKey])
		}
	}
	return n
}

// touchedKey is in the second cache line of a key.
const touchedKey = 64

// add puts in an entry, or gives the one that another partition has put in meanwhile.
func (l *learned) add(h uint64, e *shapeEntry) *shapeEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.shapes.Load()
	if known := s.young.find(h, []byte(e.key)); known != nil {
		return known
	}
	switch t := s.young; {
	case t.n >= maxShapes:
		s = &shapes{young: newShapeTable(256), old: t}
		l.shapes.Store(s)
	case 2*(t.n+1) > len(t.slots):
		s = &shapes{young: t.grown(), old: s.old}
		l.shapes.Store(s)
	}
	s.young.put(h, e)
	return e
}

// key is what shapes of one path and attributes share.
func (l *learned) key(r *signal.Request) *ingest.Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	words := signal.Key{Path: r.Path, Attributes: r.Attributes}
	k := l.keys[words]
	if k == nil {
		if len(l.keys) >= maxShapes {
			clear(l.keys) // those that shapes have go on being of use to them
			l.number = 0
		}
		// One text for all of a service.
		if name, ok := l.services[words.Service]; ok {
			words.Service = name
		} else if len(l.services) < maxServices {
			l.services[words.Service] = words.Service
		}
		l.number++
		k = ingest.NewKey(words, l.number)
		l.keys[words] = k
	}
	return k
}

// resource gives resources that differ in nothing that matters the same number: shapes are known by it.
func (l *learned) resource(key string, r *resource) *resource {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.same[key]; known != nil {
		return known
	}
	if len(l.same) >= maxWalkResources {
		clear(l.same) // numbers are not given again
	}
	l.numbers++
	r.id = l.numbers
	l.same[key] = r
	return r
}

// shapeTable finds shapes by their key. It is a map for one purpose: a look-up touches a place in a list and the entry,
// which spares most of the cache misses that a map of texts has, and with them a tenth of the time of a span. It may be
// read while it is added to: a slot is whole once its entry can be seen, and is not changed afterwards.
type shapeTable struct {
	slots []shapeSlot // a power of two, at most half full
	n     int         // guarded by learned.mu
}

type shapeSlot struct {
	hash  uint64
	entry atomic.Pointer[shapeEntry]
}

// shapeEntry is a shape with its key; hopeless is the shape of spans that the mapper must see each time.
type shapeEntry struct {
	key      string
	shape    ingest.Shape
	hopeless bool
}

func newShapeTable(slots int) *shapeTable { return &shapeTable{slots: make([]shapeSlot, slots)} }

func (t *shapeTable) find(h uint64, key []byte) *shapeEntry {
	mask := uint64(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		e := s.entry.Load()
		if e == nil {
			return nil
		}
		if s.hash == h && e.key == string(key) {
			return e
		}
	}
}

func (t *shapeTable) grown() *shapeTable {
	bigger := newShapeTable(2 * len(t.slots))
	for i := range t.slots {
		if e := t.slots[i].entry.Load(); e != nil {
			bigger.put(t.slots[i].hash, e)
		}
	}
	return bigger
}

// put adds an entry that is not there.
func (t *shapeTable) put(h uint64, e *shapeEntry) {
	mask := uint64(len(t.slots) - 1)
	i := h & mask
	for t.slots[i].entry.Load() != nil {
		i = (i + 1) & mask
	}
	t.slots[i].hash = h
	t.slots[i].entry.Store(e)
	t.n++
}

// shape finds the shape of a span by its key, or asks the mapper once for all spans of the key. It is nil for spans that
// the mapper must see each time.
func (w *walker) shape(h uint64, key, b []byte, res *resource) *ingest.Shape {
	e := w.known.known(h, key)
	if e == nil {
		e = &shapeEntry{key: string(key), hopeless: true}
		if s, bad := w.read(b, res); bad == "" {
			if r, _ := w.m.finish(s); r != nil && r.Outcome != signal.Failure && !w.m.keeper.sampled {
				e.hopeless, e.shape = false, ingest.NewShape(r, w.known.key(r))
			}
		}
		e = w.known.add(h, e)
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
