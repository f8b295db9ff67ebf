package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/ingest/ingesttest"
)

// endless is a log whose partitions never end: each fetch gives a full answer of new keys.
type endless struct {
	ingest.Log
	at      time.Time
	wait    time.Duration
	fetches atomic.Int64
}

func (l *endless) Bounds(context.Context, ingest.TopicPartition) (start, end int64, err error) {
	return 0, 1 << 40, nil
}

func (l *endless) Fetch(ctx context.Context, tp ingest.TopicPartition, offset int64, maxBytes int, _ time.Duration) (ingest.Fetched, error) {
	select {
	case <-ctx.Done():
		return ingest.Fetched{}, ctx.Err()
	case <-time.After(l.wait):
	}
	l.fetches.Add(1)
	f := ingest.Fetched{HighWatermark: 1 << 40}
	for size := 0; size < maxBytes; offset++ {
		r := ingest.Record{Offset: offset, Time: l.at, Value: fmt.Appendf(nil, `{"time":%d,"service":"s","operation":"%s","outcome":"failure","account":"a%d","error":"it broke","trace_id":"%032d"}`,
			l.at.UnixMilli(), letters(offset*16+int64(tp.Partition)), offset, offset)}
		f.Records, size = append(f.Records, r), size+len(r.Value)
	}
	f.Next = offset
	return f, nil
}

// away is a store that answers questions and takes no records: where a partition begins was entered before it went.
type away struct{ ingest.Store }

func (a away) Insert(ctx context.Context, b *ingest.Batch) error {
	if b.Range.Start == b.Range.End {
		return a.Store.Insert(ctx, b)
	}
	return errors.New("no space left")
}

// letters are a word for a number: digits would be taken for an id.
func letters(n int64) string {
	word := []byte("op")
	for ; n > 0; n /= 26 {
		word = append(word, byte('a'+n%26))
	}
	return string(word)
}

func endlessLoop(t *testing.T, partitions int, wait time.Duration, isAway bool, set func(*ingest.Config)) (*ingest.Loop, *ingesttest.Store, *endless) {
	t.Helper()
	w := &world{kafka: ingesttest.NewKafka(), store: ingesttest.NewStore(), cfg: defaults(nil)}
	w.kafka.CreateTopic("r", partitions)
	p := ingesttest.NewProcess(1, peace, func() {})
	l := &endless{Log: w.kafka.Log(p), at: time.Now(), wait: wait}
	w.cfg.Start = ingest.Start{Beginning: true}
	set(&w.cfg)
	store := w.store.Client(p)
	if isAway {
		store = away{store}
	}
	loop, err := ingest.New(w.cfg, ingest.Deps{Log: l, Group: w.kafka.Group(p), Store: store, Sources: []ingest.Source{source(t, "requests", "r", "json", "")},
		Clock: ingest.NewClock(ingest.ClockWall, nil), Logger: slog.New(slog.DiscardHandler), Metrics: ingest.NewMetrics(nil)})
	if err != nil {
		t.Fatal(err)
	}
	return loop, w.store, l
}

// While the store is away each partition gathers one batch and fetches no more, however much the log has: what is held
// stays below the bound that was configured, in whatever rows are largest.
func TestBlockedStoreBoundsMemory(t *testing.T) {
	const partitions, bound = 4, 64 << 20
	synctest.Test(t, func(t *testing.T) {
		loop, _, log := endlessLoop(t, partitions, time.Millisecond, true, func(c *ingest.Config) {
			c.MaxMemory, c.MaxBatch, c.FetchBytes = bound, bound/partitions, 1<<18
		})
		heap := func() int64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		before := heap()
		go func() { done <- loop.Run(ctx) }()
		var held, fetched [2]int64
		for i := range held {
			time.Sleep(5 * time.Minute) //nolint:forbidigo // in a bubble, which waits for nothing else
			synctest.Wait()
			held[i], fetched[i] = heap()-before, log.fetches.Load()
		}
		if fetched[0] != fetched[1] || fetched[0] < 2*partitions {
			t.Errorf("%d fetches after five minutes, %d after ten: it goes on fetching", fetched[0], fetched[1])
		}
		if held[0] < bound/8 || held[0] > bound || held[1] > held[0]+bound/16 {
			t.Errorf("holds %d bytes after five minutes, %d after ten; the bound is %d", held[0], held[1], bound)
		}
		if h := loop.Health(); h.BlockedSince.IsZero() {
			t.Errorf("health %+v", h)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A partition that is behind gathers as long as any may, and one that is not keeps to its share of the inserts.
func TestWhoIsBehindGathersLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop, store, _ := endlessLoop(t, 1, 200*time.Millisecond, false, func(c *ingest.Config) { c.FetchBytes = 1 << 10 })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- loop.Run(ctx) }()
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble, which waits for nothing else
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := len(store.Batches()); n < 10 || n > 13 {
			t.Errorf("%d batches in a minute", n)
		}
	})
}
