package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/ingest/ingesttest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// ranges are the stored ranges in order, without heartbeats.
func (w *world) ranges() (out []string) {
	for _, b := range w.data() {
		out = append(out, fmt.Sprintf("%d/%d-%d", b.Range.Incarnation, b.Range.Start, b.Range.End))
	}
	return out
}

func (w *world) produce(topic string, partition int32, n int) {
	for i := range n {
		w.kafka.Produce(topic, partition, time.Now(), gauge(time.Now(), i))
	}
}

func hasNotice(h ingest.Health, kind ingest.NoticeKind) bool {
	for _, n := range h.Notices {
		if n.Kind == kind {
			return true
		}
	}
	return false
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestReservedRangeIsReplayedExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := withGauges(t, 10)
		w.kafka.SetCommit("g", 0, 2, `{"end":5,"incarnation":0}`) // of a process that died before it inserted
		r := w.start(1, peace, nil)
		advance(20 * time.Second)
		r.stop(t)
		expect(t, "ranges", w.ranges(), "0/2-5", "0/5-10")
	})
}

func TestReservedRangeThatIsStoredIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := withGauges(t, 10)
		r := w.start(1, peace, nil)
		advance(time.Second)
		r.process.Kill() // after the insert, before anybody said that it is done
		<-r.done
		expect(t, "ranges", w.ranges(), "0/0-10")
		if _, metadata := w.kafka.Commit("g", 0); metadata == "" {
			t.Error("no reservation is left")
		}
		w.produce("g", 0, 3)
		advance(20 * time.Second)
		r = w.start(2, peace, nil)
		advance(30 * time.Second)
		r.stop(t)
		expect(t, "ranges", w.ranges(), "0/0-10", "0/10-13")
		if n := w.store.Repeats(); n != 0 {
			t.Errorf("%d inserts were repeated", n)
		}
	})
}

func TestLedgerDecidesWhereTheCommitDiffers(t *testing.T) {
	for name, commit := range map[string]struct {
		offset   int64
		metadata string
	}{
		"ahead":       {9, ""},
		"behind":      {1, ""},
		"reservation": {1, `{"end":3,"incarnation":0}`},
		"nothing":     {-1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := withGauges(t, 5)
				r := w.start(1, peace, nil)
				advance(20 * time.Second)
				r.stop(t)
				w.produce("g", 0, 5)
				w.kafka.SetCommit("g", 0, commit.offset, commit.metadata)
				r = w.start(2, peace, nil)
				advance(90 * time.Second) // it waits for what may be on its way
				h := r.loop.Health()
				r.stop(t)
				expect(t, "ranges", w.ranges(), "0/0-5", "0/5-10")
				if !hasNotice(h, ingest.NoticeMoved) {
					t.Errorf("nothing was said: %+v", h.Notices)
				}
			})
		})
	}
}

// The reserved range is stored, but in other pieces: nothing of it may be stored again.
func TestReservedRangeStoredInOtherPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, source(t, "gauges", "g", "json", ""))
		w.kafka.CreateTopic("g", 1)
		r := w.start(1, peace, nil)
		for range 2 {
			w.produce("g", 0, 5)
			advance(10 * time.Second)
		}
		r.stop(t)
		w.produce("g", 0, 5)
		w.kafka.SetCommit("g", 0, 0, `{"end":10,"incarnation":0}`)
		r = w.start(2, peace, nil)
		advance(90 * time.Second)
		h := r.loop.Health()
		r.stop(t)
		expect(t, "ranges", w.ranges(), "0/0-5", "0/5-10", "0/10-15")
		if !hasNotice(h, ingest.NoticeMoved) {
			t.Errorf("nothing was said: %+v", h.Notices)
		}
	})
}

// When the lock was lost, the insert of a range that nobody knows any more may still land.
func TestLostLockIsWaitedOut(t *testing.T) {
	for name, metadata := range map[string]string{"deleted": "", "set by hand": "ops", "set to what is stored": "ops"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := withGauges(t, 10)
				r := w.start(1, peace, nil)
				advance(20 * time.Second)
				late := *w.data()[0]
				r.process.Kill()
				<-r.done
				late.Marker.RecordTime = time.Now()
				w.produce("g", 0, 10)
				offset := map[string]int64{"deleted": -1, "set by hand": 3, "set to what is stored": 10}[name]
				w.kafka.SetCommit("g", 0, offset, metadata)
				r = w.start(2, peace, nil)
				advance(30 * time.Second)
				r.process.Kill() // who takes over goes on waiting, and does not begin anew
				<-r.done
				time.AfterFunc(20*time.Second, func() {
					late.Range.Start, late.Range.End = 10, 14
					if err := w.store.Client(ingesttest.NewProcess(3, peace, func() {})).Insert(context.Background(), &late); err != nil {
						t.Error(err)
					}
				})
				r = w.start(4, peace, nil)
				advance(45 * time.Second)
				r.stop(t)
				expect(t, "ranges", w.ranges(), "0/0-10", "0/10-14", "0/14-20")
			})
		})
	}
}

// The same holds for the first range of a partition, of which nothing is stored yet.
func TestLostLockOfAPartitionThatHasStoredNothing(t *testing.T) {
	for name, anew := range map[string]bool{"first life": false, "made anew": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil, source(t, "gauges", "g", "json", ""))
				w.kafka.CreateTopic("g", 1)
				life, want := uint32(0), []string{"0/0-3", "0/3-12"}
				if anew {
					w.produce("g", 0, 20)
					r := w.start(1, peace, nil)
					advance(20 * time.Second)
					r.stop(t)
					w.kafka.CreateTopic("g", 1)
					advance(time.Second)
					life, want = 1, []string{"0/0-20", "1/0-3", "1/3-12"}
				}
				at := time.Now()
				w.produce("g", 0, 2)
				w.kafka.Produce("g", 0, at, []byte("{"))
				w.produce("g", 0, 9)
				r := w.startOn(2, func(l ingest.Log) ingest.Log { return noRecords{l} })
				advance(20 * time.Second) // the partition begins, its first insert is on its way
				r.process.Kill()
				<-r.done
				w.store.AddLetter(ingesttest.Letter{Topic: "g", Incarnation: life, Offset: 2})
				w.kafka.SetCommit("g", 0, -1, "")
				r = w.start(3, peace, nil)
				advance(90 * time.Second)
				r.stop(t)
				expect(t, "ranges", w.ranges(), want...)
				if n := len(w.store.Letters()); n != 1 {
					t.Errorf("%d dead letters", n)
				}
			})
		})
	}
}

// noRecords gives nothing to read, so that nothing is stored.
type noRecords struct{ ingest.Log }

func (f noRecords) Fetch(ctx context.Context, tp ingest.TopicPartition, offset int64, maxBytes int, wait time.Duration) (ingest.Fetched, error) {
	if wait == 0 {
		return f.Log.Fetch(ctx, tp, offset, maxBytes, wait)
	}
	return ingest.Fetched{}, errors.New("not today")
}

// Dead letters whose block never came, of a range that nobody knows any more, are not stored again.
func TestDeadLettersOfAForgottenRangeAreNotStoredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *ingest.Config) { c.FetchBytes = 1 << 10 }, source(t, "gauges", "g", "json", ""))
		w.kafka.CreateTopic("g", 1)
		w.produce("g", 0, 5)
		r := w.start(1, peace, nil)
		advance(20 * time.Second)
		r.stop(t)
		for i := range 40 {
			w.kafka.Produce("g", 0, time.Now(), map[bool][]byte{true: []byte("{"), false: gauge(time.Now(), i)}[i%10 == 2])
		}
		for _, offset := range []int64{7, 17} { // of a range up to 20 or so
			w.store.AddLetter(ingesttest.Letter{Topic: "g", Offset: offset})
		}
		w.kafka.SetCommit("g", 0, -1, "")
		r = w.start(2, peace, nil)
		advance(62 * time.Second)
		r.process.Kill() // right after the first batch, or so
		<-r.done
		r = w.start(3, peace, nil)
		advance(time.Minute)
		r.stop(t)
		if got := w.ranges(); len(got) < 2 || got[1] != "0/5-18" {
			t.Errorf("ranges %v, the first must cover the dead letters that are there", got)
		}
		seen := map[int64]int{}
		for _, l := range w.store.Letters() {
			seen[l.Offset]++
		}
		if fmt.Sprint(seen) != "map[7:1 17:1 27:1 37:1]" {
			t.Errorf("dead letters by offset: %v", seen)
		}
	})
}

func TestDeletedOffsetsAreARecordedGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := withGauges(t, 5)
		r := w.start(1, peace, nil)
		advance(10 * time.Second)
		r.stop(t)
		w.produce("g", 0, 10)
		w.kafka.DeleteBefore("g", 0, 12) // while nobody read
		r = w.start(2, peace, nil)
		advance(20 * time.Second)
		h := r.loop.Health()
		r.stop(t)
		expect(t, "ranges", w.ranges(), "0/0-5", "0/5-15")
		last := w.data()[1]
		if last.Marker.Gap != 7 || last.Marker.Records != 3 || len(last.DeadLetters) != 1 || last.DeadLetters[0].Reason != ingest.ReasonGap {
			t.Errorf("marker %+v, dead letters %+v", last.Marker, last.DeadLetters)
		}
		if !hasNotice(h, ingest.NoticeGap) {
			t.Errorf("nothing was said: %+v", h.Notices)
		}
	})
}

// A reserved range of which a part is gone is stored as the range that it was reserved as.
func TestGapInsideAReservedRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := withGauges(t, 20)
		w.kafka.SetCommit("g", 0, 0, `{"end":10,"incarnation":0}`)
		w.kafka.DeleteBefore("g", 0, 4)
		r := w.start(1, peace, nil)
		advance(20 * time.Second)
		r.stop(t)
		w2 := newWorld(t, nil, source(t, "gauges", "g", "json", ""))
		w2.kafka.CreateTopic("g", 1)
		w2.produce("g", 0, 20)
		w2.kafka.SetCommit("g", 0, 0, `{"end":10,"incarnation":0}`)
		w2.kafka.DeleteBefore("g", 0, 15)
		r = w2.start(1, peace, nil)
		advance(20 * time.Second)
		r.stop(t)
		expect(t, "a part is gone", w.ranges(), "0/0-10", "0/10-20")
		expect(t, "all is gone", w2.ranges(), "0/0-10", "0/10-20")
		if a, b := w2.data()[0].Marker.Gap, w2.data()[1].Marker.Gap; a != 10 || b != 5 {
			t.Errorf("gaps of %d in the range and %d behind it", a, b)
		}
	})
}

// A deliberate rewind is an entry in the ledger: another reading that begins earlier.
func TestRewindIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := withGauges(t, 10)
		r := w.start(1, peace, nil)
		advance(10 * time.Second)
		before := r.loop.Health().Partitions[0].Watermark
		r.process.Kill() // with a reservation that nobody took back
		<-r.done
		err := w.store.Client(ingesttest.NewProcess(9, peace, nil)).Insert(t.Context(), &ingest.Batch{Stream: signal.Gauges,
			Range: ingest.Range{Topic: "g", Incarnation: 1, Start: 4, End: 4}, Marker: ingest.Marker{Heartbeat: true, Watermark: before, Clock: before}})
		if err != nil {
			t.Fatal(err)
		}
		advance(20 * time.Second)
		for seed := range uint64(2) { // and it is remembered
			r = w.start(2+seed, peace, nil)
			advance(5 * time.Minute) // the lock is another one than the ledger says, which is waited out
			if got := r.loop.Health().Partitions[0].Watermark; got.Before(before) {
				t.Errorf("the watermark went back from %s to %s: %+v", before, got, r.loop.Health())
			}
			r.stop(t)
		}
		expect(t, "ranges", w.ranges(), "0/0-10", "1/4-10")
	})
}

func TestTopicMadeAnewIsAnotherIncarnation(t *testing.T) {
	for name, records := range map[string]int{"shorter": 3, "longer": 30} {
		for _, running := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", while it runs ", running), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := withGauges(t, 10)
					r := w.start(1, peace, nil)
					advance(10 * time.Second)
					if !running {
						r.stop(t)
					}
					w.kafka.DeleteTopic("g")
					advance(time.Second)
					w.kafka.CreateTopic("g", 1)
					w.produce("g", 0, records)
					if !running {
						r = w.start(2, peace, nil)
					}
					advance(time.Minute)
					h := r.loop.Health()
					r.stop(t)
					expect(t, "ranges", w.ranges(), "0/0-10", fmt.Sprintf("1/0-%d", records))
					if !hasNotice(h, ingest.NoticeAnew) {
						t.Errorf("nothing was said: %+v", h.Notices)
					}
				})
			})
		}
	}
}

// Where nothing was fetched for a while, no failure tells that the topic is another one.
func TestTopicMadeAnewDuringAnInsertIsAnotherIncarnation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := withGauges(t, 10)
		r := w.start(1, peace, nil)
		advance(10 * time.Second)
		w.store.Fail(errors.New("down"))
		w.produce("g", 0, 1)
		advance(10 * time.Second) // the batch is reserved and waits
		w.kafka.CreateTopic("g", 1)
		w.produce("g", 0, 30)
		w.store.Fail(nil)
		advance(time.Minute)
		r.stop(t)
		expect(t, "ranges", w.ranges(), "0/0-10", "0/10-11", "1/0-30")
	})
}

// A log made anew that looks short at first may be longer than the old one when it is looked at again.
func TestTopicMadeAnewThatGrowsWhileItIsLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := withGauges(t, 10)
		r := w.start(1, peace, nil)
		advance(10 * time.Second)
		r.stop(t)
		w.kafka.CreateTopic("g", 1)
		w.produce("g", 0, 3)
		r = w.start(2, peace, nil)
		advance(1500 * time.Millisecond)
		w.produce("g", 0, 27)
		advance(time.Minute)
		r.stop(t)
		expect(t, "ranges", w.ranges(), "0/0-10", "1/0-30")
	})
}

// An insert of a predecessor may land between the two looks that a successor takes at the ledger.
func TestRangeThatIsStoredWhileItIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, source(t, "gauges", "g", "json", ""))
		w.kafka.CreateTopic("g", 1)
		start := time.Now()
		for i := range 10 {
			w.kafka.Produce("g", 0, start.Add(-time.Duration(i)*time.Minute), gauge(start, i)) // as replays do: each older than the last
		}
		w.kafka.SetCommit("g", 0, 0, `{"end":5,"incarnation":0}`)
		r := w.start(1, peace, nil)
		advance(10 * time.Second)
		r.stop(t)
		late := w.data()[0]
		w.store = ingesttest.NewStore()
		late.Range.Start, late.Range.End, late.Marker.RecordTime = 5, 10, start.Add(-9*time.Minute)
		first := *late
		first.Range.Start, first.Range.End, first.Marker.RecordTime = 0, 5, start.Add(-4*time.Minute)
		quiet := ingesttest.NewProcess(3, peace, func() {})
		if err := w.store.Client(quiet).Insert(t.Context(), &first); err != nil {
			t.Fatal(err)
		}
		w.kafka.SetCommit("g", 0, 5, `{"end":10,"incarnation":0}`)
		landed := false
		r = w.startOn(4, func(l ingest.Log) ingest.Log {
			return boundsHook{l, func() {
				if !landed {
					landed = true
					if err := w.store.Client(quiet).Insert(t.Context(), late); err != nil {
						t.Error(err)
					}
				}
			}}
		})
		advance(20 * time.Second)
		r.stop(t)
		expect(t, "ranges", w.ranges(), "0/0-5", "0/5-10")
		beats := 0
		for _, b := range w.store.Batches() {
			if b.Marker.Heartbeat && b.Range.End == 10 {
				if beats++; !b.Marker.RecordTime.Equal(late.Marker.RecordTime) {
					t.Errorf("a heartbeat at 10 says that the record before is of %s, it is of %s", b.Marker.RecordTime, late.Marker.RecordTime)
				}
			}
		}
		if beats == 0 {
			t.Error("no heartbeat")
		}
	})
}

// boundsHook does something before the log's bounds are read.
type boundsHook struct {
	ingest.Log
	first func()
}

func (h boundsHook) Bounds(ctx context.Context, tp ingest.TopicPartition) (start, end int64, err error) {
	h.first()
	return h.Log.Bounds(ctx, tp)
}

// A broker that has just become leader may tell an old end for a moment: nothing is concluded from that.
func TestShortLogIsLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, source(t, "gauges", "g", "json", ""))
		w.kafka.CreateTopic("g", 1)
		at := time.Now()
		again := func(from, to int) {
			for i := from; i < to; i++ {
				w.kafka.Produce("g", 0, at, gauge(at, i))
			}
		}
		again(0, 10)
		r := w.start(1, peace, nil)
		advance(10 * time.Second)
		r.stop(t)
		w.kafka.CreateTopic("g", 1) // the same records, but for a moment not all of them
		again(0, 8)
		r = w.start(2, peace, nil)
		advance(5 * time.Second)
		again(8, 12)
		advance(30 * time.Second)
		h := r.loop.Health()
		r.stop(t)
		expect(t, "ranges", w.ranges(), "0/0-10", "0/10-12")
		if len(h.Notices) > 0 {
			t.Errorf("notices %+v", h.Notices)
		}
	})
}

func TestFirstStart(t *testing.T) {
	for name, tt := range map[string]struct {
		start ingest.Start
		want  string
	}{
		"an hour back": {ingest.Start{Back: time.Hour}, "0/5-10"},
		"beginning":    {ingest.Start{Beginning: true}, "0/0-10"},
		"end":          {ingest.Start{End: true}, "0/10-11"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(c *ingest.Config) { c.Start = tt.start }, source(t, "gauges", "g", "json", ""))
				w.kafka.CreateTopic("g", 1)
				w.produce("g", 0, 5)
				advance(90 * time.Minute)
				w.produce("g", 0, 5)
				advance(30 * time.Minute)
				r := w.start(1, peace, nil)
				advance(10 * time.Second)
				if tt.start.End {
					// It was decided once: what comes while nobody reads is not lost to a second look at the end.
					r.process.Kill()
					<-r.done
					w.produce("g", 0, 1)
					advance(time.Minute)
					r = w.start(2, peace, nil)
				}
				advance(20 * time.Second)
				r.stop(t)
				expect(t, "ranges", w.ranges(), tt.want)
			})
		})
	}
}

func TestNewPartitionOfAKnownTopicIsReadFromItsFirstRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *ingest.Config) { c.Start = ingest.Start{End: true} }, source(t, "gauges", "g", "json", ""))
		w.kafka.CreateTopic("g", 1)
		r := w.start(1, peace, nil)
		advance(10 * time.Second)
		r.stop(t)
		w.kafka.CreateTopic("g", 2)
		w.produce("g", 1, 4)
		r = w.start(2, peace, nil)
		advance(30 * time.Second)
		r.stop(t)
		expect(t, "ranges", w.ranges(), "0/0-4")
	})
}

func TestUnreadableLedgerIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := withGauges(t, 3)
		w.store.Fail(errors.New("not up yet"))
		r := w.start(1, peace, nil)
		advance(time.Minute)
		if h := r.loop.Health(); h.BlockedSince.IsZero() || h.LastError == "" {
			t.Errorf("health %+v", h)
		}
		w.store.Fail(nil)
		advance(time.Minute)
		if h := r.loop.Health(); !h.BlockedSince.IsZero() {
			t.Errorf("health %+v", h)
		}
		r.stop(t)
		expect(t, "ranges", w.ranges(), "0/0-3")
	})
}

// A member whose commit had an unknown outcome must go, with everything it has.
func TestUnknownOutcomePoisonsTheMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, source(t, "gauges", "g", "json", ""))
		w.kafka.CreateTopic("g", 2)
		chaos := peace
		chaos.CommitLost = 0.3
		r := w.start(3, chaos, nil)
		for range 60 {
			w.produce("g", 0, 1)
			w.produce("g", 1, 1)
			advance(time.Second)
		}
		r.process.Calm()
		advance(time.Minute)
		h := r.loop.Health()
		r.stop(t)
		if h.Generations < 5 {
			t.Errorf("%d generations with a third of the commits lost", h.Generations)
		}
		total := 0
		for _, b := range w.data() {
			total += len(b.Gauges)
		}
		if total != 120 {
			t.Errorf("%d of 120 records", total)
		}
	})
}

// The group must hear of it, because only leaving it makes the commit harmless.
func TestGenerationSaysThatItIsPoisoned(t *testing.T) {
	for name, tt := range map[string]struct {
		commit error
		want   error
	}{
		"unknown":       {ingest.ErrUnknownOutcome, ingest.ErrPoisoned},
		"fenced":        {ingest.ErrFenced, nil},
		"anything else": {errors.New("connection reset"), ingest.ErrPoisoned},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil, source(t, "gauges", "g", "json", ""))
				w.kafka.CreateTopic("g", 2)
				p := ingesttest.NewProcess(1, peace, func() {})
				g := &oneGeneration{commit: tt.commit}
				loop, err := ingest.New(w.cfg, ingest.Deps{Log: w.kafka.Log(p), Group: g, Store: w.store.Client(p), Sources: w.sources,
					Clock: ingest.NewClock(ingest.ClockWall, nil), Logger: slog.New(slog.DiscardHandler), Metrics: ingest.NewMetrics(nil)})
				if err != nil {
					t.Fatal(err)
				}
				if err := loop.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if !errors.Is(g.got, tt.want) || tt.want == nil && g.got != nil {
					t.Errorf("the group hears %v, want %v", g.got, tt.want)
				}
			})
		})
	}
}

// oneGeneration is a group whose commits all end alike.
type oneGeneration struct{ commit, got error }

func (g *oneGeneration) Run(ctx context.Context, fn func(context.Context, ingest.Generation) error) error {
	g.got = fn(ctx, g)
	return nil
}

func (g *oneGeneration) Assigned() []ingest.TopicPartition {
	return []ingest.TopicPartition{{Topic: "g", Partition: 0}, {Topic: "g", Partition: 1}}
}

func (g *oneGeneration) Committed(context.Context, ingest.TopicPartition) (int64, string, error) {
	return -1, "", nil
}

func (g *oneGeneration) Commit(context.Context, ingest.TopicPartition, int64, string) error {
	return g.commit
}

// Without an assignment there is no partition that could be blocked; that is no health.
func TestNoAssignmentIsBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, source(t, "gauges", "g", "json", ""))
		loop, err := ingest.New(w.cfg, ingest.Deps{Group: silentGroup{}, Metrics: ingest.NewMetrics(nil)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		began := time.Now()
		go func() { done <- loop.Run(ctx) }()
		advance(20 * time.Second)
		if h := loop.Health(); !h.BlockedSince.IsZero() {
			t.Errorf("while it joins: %+v", h)
		}
		advance(20 * time.Second)
		if h := loop.Health(); !h.BlockedSince.Equal(began) || h.LastError == "" {
			t.Errorf("after 40 s: %+v", h)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// silentGroup never assigns anything.
type silentGroup struct{}

func (silentGroup) Run(ctx context.Context, _ func(context.Context, ingest.Generation) error) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestRunReturnsWhenTheGroupCannotGoOn(t *testing.T) {
	w := newWorld(t, nil, source(t, "gauges", "g", "json", ""))
	broken := errors.New("no such cluster")
	loop, err := ingest.New(w.cfg, ingest.Deps{Group: brokenGroup{broken}, Metrics: ingest.NewMetrics(nil)})
	if err != nil {
		t.Fatal(err)
	}
	if err := loop.Run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

type brokenGroup struct{ err error }

func (g brokenGroup) Run(context.Context, func(context.Context, ingest.Generation) error) error {
	return g.err
}
