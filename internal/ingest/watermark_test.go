package ingest_test

import (
	"fmt"
	"strings"
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

// traffic is a partition of many services, two of which have what tests are about.
func traffic(t *testing.T, steps int, event func(service string, step int) (delay time.Duration, n int)) (w *world, h ingest.Health) {
	w = newWorld(t, nil, source(t, "requests", "r", "json", ""))
	w.kafka.CreateTopic("r", 1)
	r := w.start(1, peace, nil)
	for s := range steps {
		now := time.Now()
		var lines []byte
		for _, service := range []string{"a", "b", "c", "odd"} {
			delay, n := event(service, s)
			for range n {
				lines = fmt.Appendf(lines, `{"time":%d,"service":%q,"operation":"o","outcome":"success"}`+"\n", now.Add(-delay).UnixMilli(), service)
			}
		}
		w.kafka.Produce("r", 0, now, lines)
		advance(250 * time.Millisecond)
	}
	h = r.loop.Health()
	advance(2 * time.Second)
	r.stop(t)
	return w, h
}

func (w *world) counted() (total, late uint64) {
	for _, b := range w.data() {
		for i := range b.Cells {
			c := b.Cells[i].Signal()
			total += c.Total()
		}
		late += b.Marker.Late
	}
	return total, late
}

// A service that is ten minutes late is counted, holds nobody up even where nearly all of a partition is its, and is told.
func TestLateServiceHoldsNobody(t *testing.T) {
	for name, n := range map[string]int{"among others": 3, "nearly alone": 400} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, h := traffic(t, 720, func(service string, _ int) (time.Duration, int) {
					if service == "odd" {
						return 10 * time.Minute, n
					}
					return time.Second, 1
				})
				if total, late := w.counted(); total != uint64(720*(n+3)) || late == 0 {
					t.Errorf("counted %d, %d of them late", total, late)
				}
				behind := time.Since(h.Partitions[0].Watermark)
				if behind > 20*time.Second {
					t.Errorf("the watermark is %s behind", behind)
				}
				told := 0
				for _, n := range h.Notices {
					if n.Kind == ingest.NoticeLate && strings.Contains(n.Text, `"odd" is usually 9m5`) || strings.Contains(n.Text, `"odd" is usually 10m`) {
						told++
					} else {
						t.Errorf("notice %+v", n)
					}
				}
				if told != 1 || fmt.Sprint(h.Partitions[0].LateServices) != "[odd]" {
					t.Errorf("told %d times, late are %v", told, h.Partitions[0].LateServices)
				}
			})
		})
	}
}

// A part of the pods has a clock that is 30 s fast, or slow: the watermark is what the others' clocks say, so what comes
// with the usual delay is not late.
func TestSkewedPodsCloseNoBuckets(t *testing.T) {
	for name, skew := range map[string]time.Duration{"fast": -30 * time.Second, "slow": 30 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				usual := func(step int) time.Duration { return time.Duration(4000+step%10*400) * time.Millisecond }
				w, h := traffic(t, 480, func(service string, step int) (time.Duration, int) {
					if service == "odd" {
						return usual(step) + skew, 30
					}
					return usual(step), 40
				})
				total, _ := w.counted()
				if want := uint64(480 * 150); total != want {
					t.Errorf("counted %d, want %d", total, want)
				}
				for _, b := range w.data() {
					if behind := b.Marker.RecordTime.Sub(b.Marker.Watermark); behind < 3900*time.Millisecond {
						t.Errorf("the watermark is only %s behind the records", behind)
					}
				}
				if behind := time.Since(h.Partitions[0].Watermark); behind > 20*time.Second {
					t.Errorf("the watermark is %s behind", behind)
				}
			})
		})
	}
}
