package ingest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
)

func TestCaughtUpPartitionsGiveSignsOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, source(t, "gauges", "g", "json", ""))
		w.kafka.CreateTopic("g", 1)
		r := w.start(1, peace, nil)
		advance(61 * time.Second)
		r.stop(t)
		beats := w.heartbeats()
		if len(beats) < 10 || len(beats) > 13 {
			t.Errorf("%d heartbeats in a minute", len(beats))
		}
		tokens := map[string]bool{}
		for _, b := range beats {
			m := b.Marker
			if b.Range.Start != b.Range.End || m.Records != 0 || m.Rows != 0 || !m.Watermark.Equal(m.Clock.Add(-10*time.Second)) {
				t.Errorf("heartbeat %s: %+v", b.Range.Token(), m)
			}
			tokens[b.Token()] = true
		}
		if len(tokens) != len(beats) {
			t.Errorf("%d tokens for %d heartbeats", len(tokens), len(beats))
		}
	})
}

// A trickle of events that are all old must not hold the watermark: the partition is read to its end.
func TestOldEventsDoNotHoldTheWatermark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, source(t, "gauges", "g", "json", ""))
		w.kafka.CreateTopic("g", 1)
		r := w.start(1, peace, nil)
		for i := range 120 {
			w.kafka.Produce("g", 0, time.Now(), gauge(time.Now().Add(-time.Hour), i))
			advance(time.Second)
		}
		h := r.loop.Health()
		r.stop(t)
		if behind := time.Since(h.Partitions[0].Watermark); behind > 25*time.Second {
			t.Errorf("the watermark is %s behind", behind)
		}
	})
}

func TestFastClockClosesNobodysBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, source(t, "gauges", "g", "json", ""))
		w.kafka.CreateTopic("g", 1)
		now := time.Now()
		// One in two hundred is four minutes ahead, and so is one that comes alone.
		for i := range 1000 {
			at := now
			if i%200 == 0 {
				at = now.Add(4 * time.Minute)
			}
			w.kafka.Produce("g", 0, now.Add(time.Second), gauge(at, i))
		}
		r := w.start(1, peace, nil)
		advance(3 * time.Second)
		w.kafka.Produce("g", 0, now.Add(2*time.Second), gauge(now.Add(4*time.Minute), 1))
		advance(3 * time.Second)
		r.stop(t)
		data := w.data()
		if len(data) != 2 || !data[0].Marker.Watermark.Equal(now) || !data[0].Marker.MaxEventTime.Equal(now.Add(4*time.Minute)) {
			t.Errorf("%d batches, first %+v", len(data), data[0].Marker)
		}
		if got := data[1].Marker.Watermark; !got.Equal(now.Add(2 * time.Second)) {
			t.Errorf("alone it lifts the watermark to %s", got.Sub(now))
		}
	})
}

func TestRecordsClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *ingest.Config) { c.Clock = ingest.ClockRecords }, source(t, "gauges", "g", "json", ""), source(t, "tickets", "k", "json", ""))
		w.kafka.CreateTopic("g", 1)
		w.kafka.CreateTopic("k", 1) // nothing ever comes
		r := w.start(1, peace, nil)
		advance(time.Minute)
		if n := len(w.heartbeats()); n != 0 {
			t.Fatalf("%d heartbeats before the clock knows a time", n)
		}
		// A minute of the past in each second.
		at := time.Now().AddDate(0, 0, -30)
		for i := range 60 {
			w.kafka.Produce("g", 0, at, gauge(at, i))
			at = at.Add(time.Minute)
			advance(time.Second)
		}
		// A record of the future does not end the replay.
		w.kafka.Produce("g", 0, time.Now().AddDate(100, 0, 0), gauge(at, 61))
		advance(5 * time.Second)
		r.stop(t)
		last := at.Add(-time.Minute)
		var quiet []time.Time
		for _, b := range w.heartbeats() {
			if b.Range.Topic == "k" {
				quiet = append(quiet, b.Marker.Watermark)
			}
			if b.Marker.Clock.After(last) {
				t.Errorf("%s: clock %s is ahead of all records", b.Range.Topic, b.Marker.Clock)
			}
		}
		if len(quiet) < 40 || !quiet[len(quiet)-1].Equal(last.Add(-10*time.Second)) {
			t.Errorf("the quiet topic has %d heartbeats, the last up to %v, want %v", len(quiet), quiet[len(quiet)-1], last.Add(-10*time.Second))
		}
		for i := 1; i < len(quiet); i++ {
			if quiet[i].Sub(quiet[i-1]) < 10*time.Second {
				t.Errorf("heartbeats %s apart", quiet[i].Sub(quiet[i-1]))
			}
		}
	})
}
