package wire

import (
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// maxWords bounds each cache; a world has some thousands of accounts, routes and statuses.
const maxWords = 50_000

// attribute is one attribute as a message, and as the bytes of a span's field. Both are shared by all spans that have it
// and must not be changed.
type attribute struct {
	message *commonpb.KeyValue
	field   []byte
}

// words keeps attributes that occur again and again: they are most of what a span is made of.
type words struct {
	texts   map[[2]string]*attribute
	numbers map[numberWord]*attribute
}

type numberWord struct {
	key   string
	value int64
}

func newWords() words {
	return words{texts: map[[2]string]*attribute{}, numbers: map[numberWord]*attribute{}}
}

func (w words) text(key, value string) *attribute {
	k := [2]string{key, value}
	a := w.texts[k]
	if a == nil {
		a = newAttribute(key, &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}})
		if len(w.texts) < maxWords {
			w.texts[k] = a
		}
	}
	return a
}

func (w words) number(key string, value int64) *attribute {
	k := numberWord{key, value}
	a := w.numbers[k]
	if a == nil {
		a = newAttribute(key, &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: value}})
		if len(w.numbers) < maxWords {
			w.numbers[k] = a
		}
	}
	return a
}

func newAttribute(key string, value *commonpb.AnyValue) *attribute {
	a := &attribute{message: &commonpb.KeyValue{Key: key, Value: value}}
	raw, err := proto.Marshal(a.message)
	if err != nil {
		// Only text that is no UTF-8 can fail here, and files of scenarios are UTF-8.
		raw = nil
	}
	a.field = protowire.AppendBytes([]byte{tagAttribute}, raw)
	return a
}

// onResource is the part of a set that belongs on the resource, remembered: sets are few.
func (e *Encoder) onResource(a signal.Attributes) signal.Attributes {
	on, known := e.sets[a]
	if known {
		return on
	}
	var pairs []signal.Attr
	for n, v := range a.All() {
		if onResource[n] {
			pairs = append(pairs, signal.Attr{Name: n, Value: v})
		}
	}
	on = signal.AttributesOf(pairs...)
	if len(e.sets) < maxWords {
		e.sets[a] = on
	}
	return on
}
