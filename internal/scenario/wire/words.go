package wire

import (
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// maxWords bounds the cache; a world has some thousands of accounts, routes and statuses.
const maxWords = 50_000

// words keeps attributes that occur again and again: they are most of what a span is made of. The messages are shared
// between spans and must not be changed.
type words map[word]*commonpb.KeyValue

type word struct {
	key, text string
	number    int64
}

func (w words) text(key, value string) *commonpb.KeyValue {
	return w.get(word{key: key, text: value}, func() *commonpb.AnyValue {
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}
	})
}

func (w words) number(key string, value int64) *commonpb.KeyValue {
	return w.get(word{key: key, number: value}, func() *commonpb.AnyValue {
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: value}}
	})
}

func (w words) get(k word, value func() *commonpb.AnyValue) *commonpb.KeyValue {
	kv, ok := w[k]
	if !ok {
		if len(w) >= maxWords {
			clear(w)
		}
		kv = &commonpb.KeyValue{Key: k.key, Value: value()}
		w[k] = kv
	}
	return kv
}

// resource is the part of a set that belongs on the resource. Most sets are wholly of one kind and stay as they are.
func (w words) resource(a signal.Attributes) signal.Attributes {
	var on []signal.Attr
	for n, v := range a.All() {
		if onResource[n] {
			on = append(on, signal.Attr{Name: n, Value: v})
		}
	}
	if len(on) == a.Len() {
		return a
	}
	return signal.AttributesOf(on...)
}
