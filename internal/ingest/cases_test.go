package ingest_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
)

// What users of such systems complained of, as far as the loop decides it.

// open-telemetry/opentelemetry-collector-contrib#18075, #39909, #41333: one bad message restarts the group, or blocks its
// partition. Here each kind of bad record is a dead letter with its reason, and the offset moves on.
func TestCaseBadRecordsBlockNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, source(t, "gauges", "g", "json", "max_record: 1KiB\n"))
		w.kafka.CreateTopic("g", 1)
		now := time.Now()
		bad := map[string][]byte{
			ingest.ReasonMalformed: []byte("\xff\x00 no JSON"),
			ingest.ReasonTooLarge:  bytes.Repeat([]byte("x"), 2<<10),
			ingest.ReasonEmpty:     nil,
			ingest.ReasonMissing:   []byte(`{"time":1,"metric":"m","value":1}`),
			ingest.ReasonInvalid:   fmt.Appendf(nil, `{"time":%d,"resource":"r","metric":"m","value":"many"}`, now.UnixMilli()),
			ingest.ReasonTooOld:    gauge(now.AddDate(-1, 0, 0), 1),
			ingest.ReasonFuture:    gauge(now.AddDate(1, 0, 0), 1),
		}
		good := 0
		for range 3 {
			for _, value := range bad {
				w.kafka.Produce("g", 0, now, gauge(now, good))
				good++
				w.kafka.Produce("g", 0, now, value)
			}
		}
		r := w.start(1, peace, nil)
		advance(10 * time.Second)
		h := r.loop.Health()
		r.stop(t)
		counted, letters := 0, map[string]int{}
		for _, b := range w.data() {
			counted += len(b.Gauges)
			for _, d := range b.DeadLetters {
				letters[d.Reason]++
			}
		}
		if counted != good || h.Partitions[0].Position != int64(2*good) || h.Generations != 1 {
			t.Errorf("counted %d of %d, at %d of %d, in %d generations", counted, good, h.Partitions[0].Position, 2*good, h.Generations)
		}
		for reason := range bad {
			if letters[reason] != 3 {
				t.Errorf("%d dead letters are %s, want 3: %v", letters[reason], reason, letters)
			}
		}
	})
}

// open-telemetry/opentelemetry-collector-contrib#6222: offsets are committed that were not processed; and #38739: a third
// is dropped under load, and nothing says so. Here a store that is down stops the reading: what waits is bounded, the loop
// says that it is blocked, and afterwards what went in came out.
func TestCaseStoreThatIsDownLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *ingest.Config) { c.FetchBytes = 2 << 10 }, source(t, "gauges", "g", "json", ""))
		w.kafka.CreateTopic("g", 1)
		r := w.start(1, peace, nil)
		w.produce("g", 0, 10)
		advance(10 * time.Second)
		stored, _ := w.kafka.Commit("g", 0)
		w.store.Fail(errors.New("the disk is full"))
		for range 60 {
			w.produce("g", 0, 50)
			advance(5 * time.Second)
		}
		h := r.loop.Health()
		if at, _ := w.kafka.Commit("g", 0); at > stored || h.BlockedSince.IsZero() || h.Partitions[0].Lag < 50 {
			t.Errorf("committed is %d of %d stored, health %+v", at, stored, h)
		}
		w.store.Fail(nil)
		advance(2 * time.Minute)
		h = r.loop.Health()
		r.stop(t)
		var records, events, offsets uint64
		for _, b := range w.data() {
			records, events, offsets = records+b.Marker.Records, events+b.Marker.Events, offsets+uint64(b.Range.End-b.Range.Start)
		}
		if records != 3010 || events != 3010 || offsets != 3010 || !h.BlockedSince.IsZero() {
			t.Errorf("%d records and %d events at %d offsets, health %+v", records, events, offsets, h)
		}
	})
}

// SigNoz/signoz-otel-collector#643, open-telemetry/opentelemetry-collector-contrib#47843, hyperdxio/hyperdx PR#2151: too many
// small inserts, hence too many parts. Here an installation makes about five a second however many partitions trickle, and
// a record waits five seconds at most.
func TestCaseTrickleMakesFewInserts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, source(t, "gauges", "g", "json", ""))
		const partitions, seconds = 40, 60
		w.kafka.CreateTopic("g", partitions)
		r := w.start(1, peace, nil)
		advance(5 * time.Second)
		for range seconds * 2 {
			for p := range int32(partitions) {
				w.produce("g", p, 1)
			}
			advance(500 * time.Millisecond)
		}
		inserts := len(w.data())
		advance(10 * time.Second)
		r.stop(t)
		if most := seconds * partitions / 5 * 13 / 10; inserts > most { // each partition waits as long as it may
			t.Errorf("%d inserts in %d s, %d are enough", inserts, seconds, most)
		}
		var events uint64
		for _, b := range w.data() {
			events += b.Marker.Events
			for _, g := range b.Gauges {
				if late := b.Marker.Clock.Sub(g.Time); late > 6*time.Second {
					t.Errorf("a record waited for %s", late)
				}
			}
		}
		if events != 2*seconds*partitions {
			t.Errorf("%d events", events)
		}
	})
}
