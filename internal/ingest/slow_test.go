package ingest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// slowDecoder is one on a machine that has other things to do: a fetch of records takes it three seconds.
type slowDecoder struct{ ingest.Decoder }

func (d slowDecoder) Decode(rec ingest.Record, emit func(signal.Event), reject func(ingest.DeadLetter)) {
	<-time.After(200 * time.Millisecond)
	d.Decoder.Decode(rec, emit, reject)
}

// A partition of which nothing is stored yet, and which decodes for longer than a log is trusted, gets on all the same, and a
// topic that was made anew meanwhile is noticed.
func TestSlowBeginningsGetOn(t *testing.T) {
	for _, anew := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := source(t, "gauges", "g", "json", "")
			fast := s.NewDecoder
			s.NewDecoder = func() ingest.Decoder { return slowDecoder{fast()} }
			w := newWorld(t, func(c *ingest.Config) { c.FetchBytes = 1700 }, s)
			produce := func(first int) {
				w.kafka.CreateTopic("g", 1)
				for i := range 100 {
					w.kafka.Produce("g", 0, time.Now(), gauge(time.Now(), first+i))
				}
			}
			produce(0)
			r := w.start(1, peace, nil)
			if anew {
				advance(time.Second) // while the first records are decoded
				w.kafka.DeleteTopic("g")
				produce(1000)
			}
			advance(5 * time.Minute)
			r.stop(t)
			seen := map[float64]int{}
			for _, b := range w.data() {
				for _, g := range b.Gauges {
					seen[g.Value]++
				}
			}
			if len(seen) != 100 {
				t.Errorf("anew %v: %d values are stored", anew, len(seen))
			}
			for v, n := range seen {
				if n != 1 || anew != (v >= 1000) {
					t.Errorf("anew %v: %v is stored %d times", anew, v, n)
				}
			}
		})
	}
}
