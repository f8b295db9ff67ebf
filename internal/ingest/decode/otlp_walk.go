package decode

import (
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/tocsin-project/tocsin/internal/ingest"
)

// Limits of what a walker remembers, so that ever new names and pods do not grow the process.
const (
	maxWalkKeys      = 1 << 12
	maxWalkKeyBytes  = 256
	maxWalkResources = 1 << 12
	maxWalkRaw       = 4 << 10
	maxWalkPosition  = 64
)

// walker reads the protobuf of OTLP spans off the wire, without an object for each span and attribute. It does not judge
// what is malformed: where it is not sure it says so, and the protobuf library has the last word. So it only has to be
// right about what it takes, and it checks everything that the library does: lengths, tags, UTF-8 in every text.
type walker struct {
	m      *mapper
	counts [maxSpanKind + 1]bool // kinds of spans that are requests

	keys      map[string]*attrKey
	guess     [maxWalkPosition]*attrKey // the name last seen at this place of a span: exporters keep their order
	other     *attrKey                  // what does not matter and is not remembered
	resources map[string]*resource      // by their bytes
	none      *resource                 // of spans that have none
	shaping   bool                      // whether shapes are wanted
	known     *learned
	nameRank  int  // of the span's name as an operation, or noRank
	needName  bool // it is more than that

	found  []foundSpan
	shaped []shapedSpan // those of found that may have a shape
	s      span
	buf    []byte // keys of shapes of the record
}

const maxSpanKind = 5

// attrKey is an attribute's name and what it is looked at for.
type attrKey struct {
	name      string
	slots     []slot
	id        uint16 // in keys of shapes; 0 if it changes no shape
	operation int    // its rank as an operation, or noRank
	status    bool   // it is a response's status and nothing else
	unshaped  bool   // what it changes depends on more than the shape's key
}

// resource is what the spans of a ResourceSpans have in common.
type resource struct {
	id        uint32 // equal where all that matters is
	values    []value
	operation int
	opText    []byte // nil if it is no text
	unshaped  bool
}

// foundSpan is a span that matters, until the whole record is known to be well-formed.
type foundSpan struct {
	shape      *ingest.Shape // nil: it is read again as it is
	end        int64
	latency    int64
	from, upTo int // its place in the record
	res        *resource
}

// shapedSpan is a span with the key of its shape.
type shapedSpan struct {
	hash             uint64
	found            int32
	keyFrom, keyUpTo int32
}

func newWalker(m *mapper, known *learned) *walker {
	w := &walker{m: m, keys: map[string]*attrKey{}, other: &attrKey{operation: noRank}, resources: map[string]*resource{}, known: known, nameRank: noRank}
	for _, at := range m.slots[spanName] {
		if at.field == fieldOperation {
			w.nameRank = min(w.nameRank, at.rank)
		} else {
			w.needName = true
		}
	}
	for kind := range w.counts {
		w.counts[kind] = m.kinds[protoKind(int32(kind))]
	}
	for _, name := range slices.Sorted(maps.Keys(m.slots)) { // the same numbers for all who share shapes
		slots := m.slots[name]
		k := &attrKey{name: name, slots: slots, operation: noRank}
		for _, s := range slots {
			switch s.field {
			case fieldAccount:
				continue // accounts matter to failures only, and these have no shape
			case fieldOperation:
				k.operation = min(k.operation, s.rank)
			case fieldProbability:
				k.unshaped = true // the count then depends on the span's id
			}
			k.id = uint16(len(w.keys) + 1)
		}
		// Rules for outcomes look at the status itself, what is built in only at its class.
		k.status = len(slots) == 1 && slots[0].field == fieldStatus && len(m.cfg.Outcomes) == 0
		w.keys[name] = k
	}
	w.none = w.resource(nil)
	return w
}

// walk reads the spans of a record into found. It says no to what it does not know to be well-formed spans.
func (w *walker) walk(b []byte) bool {
	clear(w.found)
	w.found, w.shaped, w.buf = w.found[:0], w.shaped[:0], w.buf[:0]
	if len(b) > math.MaxInt32 {
		return false
	}
	spans := false
	for i := 0; i < len(b); {
		tag, at := uvarint(b, i)
		if at == bad {
			return false
		}
		if tag != 1<<3|wireBytes {
			if i = skip(b, at, tag); i == bad {
				return false
			}
			continue
		}
		begin, end := measured(b, at)
		if end == bad || !w.resourceSpans(b[:end], begin) {
			return false
		}
		spans, i = true, end
	}
	if !spans && len(b) > 0 {
		return false
	}
	for spans := range slices.Chunk(w.shaped, touchedAtOnce) {
		w.known.touch(spans)
		for i := range spans {
			s := &spans[i]
			f := &w.found[s.found]
			f.shape = w.shape(s.hash, w.buf[s.keyFrom:s.keyUpTo], b[f.from:f.upTo], f.res)
		}
	}
	return true
}

// resourceSpans reads from i to the end of b. A resource behind its spans is the library's: they would have to wait.
func (w *walker) resourceSpans(b []byte, i int) bool {
	var res *resource
	for i < len(b) {
		tag, at := uvarint(b, i)
		if at == bad {
			return false
		}
		if tag&7 != wireBytes {
			if i = skip(b, at, tag); i == bad {
				return false
			}
			continue
		}
		begin, end := measured(b, at)
		if end == bad {
			return false
		}
		i = end
		switch tag >> 3 {
		case 1:
			if res != nil {
				return false
			}
			if res = w.resource(b[begin:end]); res == nil {
				return false
			}
		case 2:
			if res == nil {
				res = w.none
			}
			if !w.scopeSpans(b[:end], begin, res) {
				return false
			}
		case 3:
			if !utf8.Valid(b[begin:end]) {
				return false
			}
		default:
			if skip(b, at, tag) == bad {
				return false
			}
		}
	}
	return true
}

func (w *walker) scopeSpans(b []byte, i int, res *resource) bool {
	for i < len(b) {
		tag, at := uvarint(b, i)
		if at == bad {
			return false
		}
		if tag&7 != wireBytes {
			if i = skip(b, at, tag); i == bad {
				return false
			}
			continue
		}
		begin, end := measured(b, at)
		if end == bad {
			return false
		}
		i = end
		switch tag >> 3 {
		case 1:
			if !wireScope.valid(b[begin:end], 0) {
				return false
			}
		case 2:
			if !w.span(b[:end], begin, res) {
				return false
			}
		case 3:
			if !utf8.Valid(b[begin:end]) {
				return false
			}
		default:
			if skip(b, at, tag) == bad {
				return false
			}
		}
	}
	return true
}
