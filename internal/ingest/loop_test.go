package ingest_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/ingest/ingesttest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

var peace ingesttest.Chaos

// data are the stored batches that cover offsets, heartbeats the others.
func (w *world) data() (out []*ingest.Batch) {
	for _, b := range w.store.Batches() {
		if !b.Marker.Heartbeat {
			out = append(out, b)
		}
	}
	return out
}

// heartbeats are the signs of life, without what tells the ledger where a partition begins.
func (w *world) heartbeats() (out []*ingest.Batch) {
	for _, b := range w.store.Batches() {
		if b.Marker.Heartbeat && !b.Marker.Watermark.IsZero() {
			out = append(out, b)
		}
	}
	return out
}

func (w *world) letters() (out []ingest.DeadLetter) {
	for _, b := range w.data() {
		out = append(out, b.DeadLetters...)
	}
	return out
}

func TestBadRecordsBecomeDeadLettersAndTheLoopGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, source(t, "requests", "r", "json", ""), source(t, "requests", "spans", "otlp_proto", ""))
		w.kafka.CreateTopic("r", 1)
		w.kafka.CreateTopic("spans", 1)
		now := time.Now()
		good := request(now, "o", "failure")
		w.kafka.Produce("spans", 0, now, []byte("\x0a\xff\xff\xff\xffnot a span batch"))
		w.kafka.Produce("r", 0, now.AddDate(106, 0, 0), request(now.AddDate(106, 0, 0), "o", "failure")) // a record of 2106
		w.kafka.Produce("r", 0, now, good)
		w.kafka.Produce("r", 0, now, good[:len(good)/2])                                // truncated JSON
		w.kafka.Produce("r", 0, now, bytes.Repeat([]byte("x"), 2<<20))                  // 2 MB
		w.kafka.Produce("r", 0, now, request(now.AddDate(106, 0, 0), "o", "failure"))   // an event of 2106
		w.kafka.Produce("r", 0, now, nil)                                               // empty
		w.kafka.Produce("r", 0, now, request(now.AddDate(0, 0, -8), "o", "failure"))    // a week and a day old
		w.kafka.Produce("r", 0, now, []byte(`{"time":1,"service":"jane@example.com"}`)) // incomplete, with an address
		w.kafka.Produce("r", 0, now, good)
		r := w.start(1, peace, nil)
		advance(20 * time.Second)
		h := r.loop.Health()
		r.stop(t)
		var reasons []string
		for _, d := range w.letters() {
			reasons = append(reasons, d.Reason)
			if d.Detail == "" || len(d.Payload) > 64<<10 || bytes.Contains(d.Payload, []byte("jane@")) {
				t.Errorf("dead letter %s: detail %q, payload %.80q", d.Reason, d.Detail, d.Payload)
			}
			if d.Reason == ingest.ReasonTooLarge && (d.Size != 2<<20 || len(d.Payload) == 0) {
				t.Errorf("size %d, payload of %d bytes", d.Size, len(d.Payload))
			}
		}
		slices.Sort(reasons)
		want := "empty future future malformed malformed missing_field too_large too_old"
		if got := strings.Join(reasons, " "); got != want {
			t.Errorf("reasons %s, want %s", got, want)
		}
		var failures, records, rejected uint64
		for _, b := range w.data() {
			records += b.Marker.Records
			rejected += b.Marker.Rejected
			if b.Marker.Watermark.After(now) {
				t.Errorf("watermark %s", b.Marker.Watermark)
			}
			if b.Time.Year() != now.Year() {
				t.Errorf("the record of 2106 chose the storage partition: %s", b.Time)
			}
			for _, c := range b.Cells {
				failures += c.Outcome(signal.Failure)
			}
		}
		if failures != 2 || records != 10 || rejected != 8 {
			t.Errorf("%d failures, %d records, %d rejected", failures, records, rejected)
		}
		if len(h.Partitions) != 2 || h.Partitions[0].Lag != 0 || !h.Partitions[0].CaughtUp || !h.BlockedSince.IsZero() {
			t.Errorf("health %+v", h)
		}
	})
}

func TestStoreThatFailsStopsFetchingAndLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, source(t, "gauges", "g", "json", ""))
		w.kafka.CreateTopic("g", 1)
		r := w.start(1, peace, nil)
		advance(time.Second)
		w.store.Fail(errors.New("no space left"))
		began := time.Now()
		for i := range 100 {
			w.kafka.Produce("g", 0, time.Now(), gauge(time.Now(), i))
			advance(time.Second)
		}
		h := r.loop.Health()
		if h.BlockedSince.Before(began) || h.BlockedSince.After(began.Add(10*time.Second)) || !strings.Contains(h.LastError, "no space left") {
			t.Errorf("blocked since %s (%s after it began): %s", h.BlockedSince, h.BlockedSince.Sub(began), h.LastError)
		}
		if lag := h.Partitions[0].Lag; lag > 10 || len(w.data()) != 0 {
			// What it had seen of the log's end when it stopped fetching.
			t.Errorf("lag %d: it went on fetching", lag)
		}
		w.store.Fail(nil)
		advance(30 * time.Second)
		if h := r.loop.Health(); !h.BlockedSince.IsZero() || h.Partitions[0].Lag != 0 {
			t.Errorf("health afterwards %+v", h)
		}
		if offset, metadata := w.kafka.Commit("g", 0); offset != 100 || strings.Contains(metadata, `"end":1`) {
			t.Errorf("idle, it says %d %s", offset, metadata)
		}
		r.stop(t)
		seen := map[int]int{}
		for _, b := range w.data() {
			for _, g := range b.Gauges {
				seen[int(g.Value)]++
			}
		}
		if len(seen) != 100 {
			t.Errorf("%d of 100 records", len(seen))
		}
	})
}

type refusal struct{ passes bool }

func (refusal) Error() string { return "no column `bucket` in table cells" }
func (r refusal) Retry() bool { return r.passes }

// What repetition cannot heal is told as such after a few tries, with the reason, and only then; nothing is lost, and it goes on by
// itself when somebody has mended it.
func TestARefusalThatDoesNotPassIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, source(t, "gauges", "g", "json", ""))
		w.kafka.CreateTopic("g", 1)
		r := w.start(1, peace, nil)
		advance(time.Second)
		for _, passes := range []bool{true, false} {
			w.store.Fail(refusal{passes})
			w.kafka.Produce("g", 0, time.Now(), gauge(time.Now(), 1))
			advance(5 * time.Minute)
			said := r.loop.Health().LastError
			if !strings.Contains(said, "no column `bucket`") || strings.Contains(said, "trying again will not help") == passes {
				t.Errorf("may pass: %t; health says %q", passes, said)
			}
			w.store.Fail(nil)
			advance(time.Minute)
			if h := r.loop.Health(); !h.BlockedSince.IsZero() || h.Partitions[0].Lag != 0 {
				t.Errorf("may pass: %t; health afterwards %+v", passes, h)
			}
		}
		r.stop(t)
		n := 0
		for _, b := range w.data() {
			n += len(b.Gauges)
		}
		if n != 2 {
			t.Errorf("%d of 2 records", n)
		}
	})
}

// stored ranges meet without holes, and a batch says what is in it.
func TestMarkersAreALedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, source(t, "requests", "r", "json", ""))
		w.kafka.CreateTopic("r", 1)
		r := w.start(1, peace, nil)
		start := time.Now()
		for i := range 200 {
			at := time.Now()
			if i%50 == 49 {
				at = at.Add(-time.Minute) // late
			}
			w.kafka.Produce("r", 0, time.Now(), request(at, fmt.Sprint("o", i%3), "success"))
			advance(300 * time.Millisecond)
		}
		advance(10 * time.Second)
		r.stop(t)
		var next int64
		var events, late uint64
		var watermark time.Time
		tokens := map[string]bool{}
		for _, b := range w.store.Batches() {
			m := b.Marker
			if tokens[b.Token()] {
				t.Errorf("token %s twice", b.Token())
			}
			tokens[b.Token()] = true
			if m.Watermark.Before(watermark) {
				t.Errorf("watermark went back from %s to %s", watermark, m.Watermark)
			}
			watermark = m.Watermark
			if m.Heartbeat {
				continue
			}
			if b.Range.Start != next || m.Records != uint64(b.Range.End-b.Range.Start) || m.Rows != uint64(len(b.Cells)) || m.Revision == "" || m.RecordTime.IsZero() {
				t.Errorf("range %s, marker %+v", b.Range.Token(), m)
			}
			if !slices.IsSortedFunc(b.Cells, func(x, y ingest.Cell) int {
				return cmp.Or(cmp.Compare(x.Bucket(), y.Bucket()), cmp.Compare(x.Key().ID, y.Key().ID))
			}) {
				t.Error("cells are not sorted")
			}
			next = b.Range.End
			events += m.Events
			late += m.Late
		}
		if next != 200 || events != 200 || late != 4 {
			t.Errorf("end %d, %d events, %d late", next, events, late)
		}
		// About five inserts a second at most, and no record waits for more than five seconds.
		if n := len(w.data()); n > 5*int(time.Since(start).Seconds()) || n < 10 {
			t.Errorf("%d batches in %s", n, time.Since(start))
		}
	})
}

func TestManyPartitionsShareTheInserts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, source(t, "gauges", "g", "json", ""))
		w.kafka.CreateTopic("g", 20)
		r := w.start(1, peace, nil)
		for i := range 20 * 600 {
			w.kafka.Produce("g", int32(i%20), time.Now(), gauge(time.Now(), i))
			advance(5 * time.Millisecond)
		}
		r.stop(t)
		if n := len(w.data()); n > 60*7 || n < 60*2 {
			t.Errorf("%d inserts in a minute", n)
		}
	})
}

// A process that slept between reserving and inserting must learn that it lost the partition.
func TestOldReservationIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, source(t, "gauges", "g", "json", ""))
		w.kafka.CreateTopic("g", 1)
		r := w.start(1, peace, nil)
		advance(time.Second)
		w.store.Fail(errors.New("down"))
		w.kafka.Produce("g", 0, time.Now(), gauge(time.Now(), 1))
		advance(3 * time.Second)
		// An operator's tool moves the lock while the insert is tried again; after a minute it is reserved anew.
		w.kafka.SetCommit("g", 0, 77, "")
		advance(50 * time.Second)
		if offset, _ := w.kafka.Commit("g", 0); offset != 77 {
			t.Errorf("reserved again before a minute: %d", offset)
		}
		advance(40 * time.Second)
		if offset, metadata := w.kafka.Commit("g", 0); offset != 0 || !strings.Contains(metadata, `"end":1`) {
			t.Errorf("after a minute the lock says %d %s", offset, metadata)
		}
		w.store.Fail(nil)
		advance(30 * time.Second)
		r.stop(t)
		if len(w.data()) != 1 {
			t.Errorf("%d batches", len(w.data()))
		}
	})
}
