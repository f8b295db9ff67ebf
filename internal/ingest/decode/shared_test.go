package decode

import (
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Decoders that share what they learn, used at the same time, give what one alone gives; and keys that are equal are the same.
func TestDecodersShareWhatTheyLearn(t *testing.T) {
	var values [][]byte
	r := spanSource{rand.New(rand.NewPCG(11, 12))}
	for range 150 {
		v, err := proto.Marshal(r.batch())
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	for _, o := range walkOptions {
		p := minimal(t, signal.Requests, "otlp_proto", o)
		e, _ := ByName("otlp_proto")
		many := e.Many(p)
		var got [4]recorded
		var wg sync.WaitGroup
		for i := range got {
			d := many().(ingest.ShapedDecoder)
			wg.Go(func() {
				for _, v := range values {
					d.DecodeShaped(ingest.Record{Value: v}, func(list []ingest.Counted) {
						for _, c := range list {
							got[i].emit(c.Shape.At(c.End, c.Latency))
						}
					}, got[i].emit, got[i].reject)
				}
			})
		}
		wg.Wait()
		var want recorded
		alone := e.New(p).(ingest.ShapedDecoder)
		for _, v := range values {
			alone.DecodeShaped(ingest.Record{Value: v}, func(list []ingest.Counted) {
				for _, c := range list {
					want.emit(c.Shape.At(c.End, c.Latency))
				}
			}, want.emit, want.reject)
		}
		for i := range got {
			if !reflect.DeepEqual(got[i], want) {
				t.Fatalf("%q: decoder %d:\n%v", o, i, difference(want, got[i]))
			}
		}
	}
}
