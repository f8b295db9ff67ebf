package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tocsin-project/tocsin/internal/kafka"
)

func TestFetchReadsEveryCodec(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_123).UTC()
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		t.Run(codec, func(t *testing.T) {
			addr, topic := broker(t, 1)
			c := newClient(t, addr, func(cfg *kafka.Config) { cfg.Compression = codec })
			want := []kafka.Record{
				{Offset: 0, Time: at, Key: []byte("k"), Value: []byte("v"), Headers: []kafka.Header{{Key: "h", Value: []byte("x")}}},
				{Offset: 1, Time: at.Add(time.Second), Key: nil, Value: []byte{}},
				{Offset: 2, Time: at.Add(-time.Hour), Key: []byte{}, Value: nil},
			}
			must(t, c.NewProducer().Produce(t.Context(), topic, 0, want...))
			got, err := c.Fetch(t.Context(), topic, 0, 0, 0, time.Second)
			must(t, err)
			if diff := cmp.Diff(want, got.Records); diff != "" {
				t.Error(diff)
			}
			if got.NextOffset != 3 || got.HighWatermark != 3 || got.LogStart != 0 || !got.CaughtUp() {
				t.Errorf("bounds %+v", got)
			}
		})
	}
}

// Other producers frame their batches in other ways: what franz-go writes is read too.
func TestFetchReadsAnotherClientsBatches(t *testing.T) {
	for name, codec := range map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(),
		"snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()} {
		t.Run(name, func(t *testing.T) {
			addr, topic := broker(t, 1)
			p := kgoClient(t, addr, kgo.ProducerBatchCompression(codec), kgo.DefaultProduceTopic(topic))
			want := map[int64]string{}
			var recs []*kgo.Record
			for i := range 5000 {
				want[int64(i)] = fmt.Sprintf("value %d of a record long enough to be compressed", i)
				recs = append(recs, kgo.StringRecord(want[int64(i)]))
			}
			must(t, p.ProduceSync(t.Context(), recs...).FirstErr())
			if got := readAll(t, newClient(t, addr), topic, 0, 0, 5000); !maps.Equal(got, want) {
				t.Errorf("%d of %d records read right", len(got), len(want))
			}
		})
	}
}

func kgoClient(t *testing.T, addr string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(strings.Split(addr, ",")...))...)
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestFetchStartsInTheMiddleOfABatchAndKeepsBounds(t *testing.T) {
	addr, topic := broker(t, 1)
	c := newClient(t, addr)
	p := c.NewProducer()
	for i := range 10 {
		must(t, p.Produce(t.Context(), topic, 0, values(100*i, 100)...))
	}
	res, err := c.Fetch(t.Context(), topic, 0, 150, 1, time.Second)
	must(t, err)
	if n := len(res.Records); n != 50 || res.Records[0].Offset != 150 || string(res.Records[0].Value) != "v150" ||
		res.NextOffset != 200 {
		t.Errorf("from 150 with one byte: %d records, next %d; want the batch's other 50", n, res.NextOffset)
	}
	if res.CaughtUp() {
		t.Error("caught up at 200 of 1000")
	}
}

func TestFetchAtTheEndWaitsForARecord(t *testing.T) {
	addr, topic := broker(t, 1)
	c := newClient(t, addr)
	res, err := c.Fetch(t.Context(), topic, 0, 0, 0, 10*time.Millisecond)
	if err != nil || len(res.Records) != 0 || res.NextOffset != 0 || !res.CaughtUp() {
		t.Errorf("empty partition: %+v, %v", res, err)
	}
	got := make(chan error, 1)
	go func() {
		res, err := c.Fetch(t.Context(), topic, 0, 0, 0, 10*time.Second)
		if err == nil && len(res.Records) != 1 {
			err = fmt.Errorf("%d records", len(res.Records))
		}
		got <- err
	}()
	must(t, newClient(t, addr).NewProducer().Produce(t.Context(), topic, 0, values(0, 1)...))
	must(t, <-got)
}

func TestFetchOutOfRangeTellsTheBounds(t *testing.T) {
	addr, topic := broker(t, 1)
	c := newClient(t, addr)
	must(t, c.NewProducer().Produce(t.Context(), topic, 0, values(0, 5)...))
	_, err := c.Fetch(t.Context(), topic, 0, 100, 0, 0)
	var out *kafka.OffsetOutOfRangeError
	if !errors.Is(err, kafka.ErrOffsetOutOfRange) || !errors.As(err, &out) || kafka.Retryable(err) {
		t.Fatalf("fetch at 100 of 5: %v", err)
	}
	if *out != (kafka.OffsetOutOfRangeError{Offset: 100, Start: 0, End: 5}) {
		t.Errorf("bounds %+v", *out)
	}
}

func TestFetchOfUnknownTopicCanBeRetried(t *testing.T) {
	addr, topic := broker(t, 1)
	c := newClient(t, addr)
	_, err := c.Fetch(t.Context(), topic+"-not-there", 0, 0, 0, 0)
	if !kafka.Retryable(err) || kafka.ReasonOf(err) != kafka.ReasonUnknownTopic {
		t.Errorf("unknown topic: %v", err)
	}
	_, err = c.Fetch(t.Context(), topic, 7, 0, 0, 0)
	if !kafka.Retryable(err) || kafka.ReasonOf(err) != kafka.ReasonUnknownTopic {
		t.Errorf("unknown partition: %v", err)
	}
}

func TestFetchEndsWithItsContext(t *testing.T) {
	addr, topic := broker(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	_, err := newClient(t, addr).Fetch(ctx, topic, 0, 0, 0, 10*time.Second)
	if kafka.ReasonOf(err) != kafka.ReasonCanceled || kafka.Retryable(err) {
		t.Errorf("cancelled fetch: %v", err)
	}
}

// Two producers whose transactions are interleaved, some committed, some aborted, the last still open.
func TestAbortedAndOpenTransactionsAreNotSeen(t *testing.T) {
	addr, topic := broker(t, 1)
	ctx := t.Context()
	a := kgoClient(t, addr, kgo.TransactionalID("a-"+topic), kgo.DefaultProduceTopic(topic))
	b := kgoClient(t, addr, kgo.TransactionalID("b-"+topic), kgo.DefaultProduceTopic(topic))
	put := func(c *kgo.Client, v string) { must(t, c.ProduceSync(ctx, kgo.StringRecord(v)).FirstErr()) }
	end := func(c *kgo.Client, e kgo.TransactionEndTry) { must(t, c.EndTransaction(ctx, e)) }
	must(t, a.BeginTransaction())
	must(t, b.BeginTransaction())
	put(a, "a1")
	put(b, "b1 aborted")
	put(a, "a2")
	end(b, kgo.TryAbort)
	must(t, b.BeginTransaction())
	put(b, "b2")
	end(a, kgo.TryCommit)
	end(b, kgo.TryCommit)
	must(t, a.BeginTransaction())
	put(a, "a3 aborted")
	end(a, kgo.TryAbort)
	c := newClient(t, addr)
	must(t, c.NewProducer().Produce(ctx, topic, 0, kafka.Record{Value: []byte("plain")}))
	must(t, a.BeginTransaction())
	put(a, "a4 open")
	must(t, c.NewProducer().Produce(ctx, topic, 0, kafka.Record{Value: []byte("behind the open one")}))

	r, err := c.ListOffsets(ctx, topic, 0)
	must(t, err)
	got := readAll(t, c, topic, 0, 0, r[0].End)
	want := []string{"a1", "a2", "b2", "plain"}
	var have []string
	for off := range r[0].End {
		if v, ok := got[off]; ok {
			have = append(have, v)
		}
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Error(diff)
	}
	// From the middle of the first aborted transaction on, the same.
	if got := readAll(t, c, topic, 0, 1, r[0].End); len(got) != 3 {
		t.Errorf("from offset 1: %v", got)
	}
	res, err := c.Fetch(ctx, topic, 0, r[0].End, 0, 10*time.Millisecond)
	if err != nil || len(res.Records) != 0 || res.LastStable != r[0].End || res.HighWatermark <= res.LastStable {
		t.Errorf("at the open transaction: %+v, %v", res, err)
	}
	end(a, kgo.TryAbort)
	eventually(t, "what is behind the aborted transaction", func() bool {
		res, err := c.Fetch(ctx, topic, 0, r[0].End, 0, 10*time.Millisecond)
		return err == nil && len(res.Records) == 1 && string(res.Records[0].Value) == "behind the open one"
	})
}

func TestOffsetsByBoundAndTime(t *testing.T) {
	addr, topic := broker(t, 2)
	c := newClient(t, addr)
	at := time.UnixMilli(1_700_000_000_000)
	for i := range 5 {
		must(t, c.NewProducer().Produce(t.Context(), topic, 1, kafka.Record{Time: at.Add(time.Duration(i) * time.Minute),
			Value: []byte("x")}))
	}
	r, err := c.ListOffsets(t.Context(), topic, 0, 1)
	must(t, err)
	if diff := cmp.Diff(map[int32]kafka.OffsetRange{0: {}, 1: {End: 5}}, r); diff != "" {
		t.Error(diff)
	}
	for want, when := range map[int64]time.Time{0: at.Add(-time.Hour), 2: at.Add(90 * time.Second), 3: at.Add(3 * time.Minute),
		5: at.Add(time.Hour)} {
		if got, err := c.OffsetForTime(t.Context(), topic, 1, when); err != nil || got != want {
			t.Errorf("offset for %s: %d %v, want %d", when, got, err, want)
		}
	}
	if got, err := c.OffsetForTime(t.Context(), topic, 1, time.Time{}); err != nil || got != 0 {
		t.Errorf("offset for the zero time: %d %v", got, err)
	}
	if _, err := c.ListOffsets(t.Context(), topic, 0, 9); kafka.ReasonOf(err) != kafka.ReasonUnknownTopic {
		t.Errorf("offsets of an unknown partition: %v", err)
	}
}

// The loop of a reader whose broker stops and comes back on the same data and port: it sees each record once.
func TestFetchLoopSurvivesABrokerRestart(t *testing.T) {
	addr, topic, end, again := restarted(t)
	c := newClient(t, addr, func(cfg *kafka.Config) { cfg.RequestTimeout = time.Second })
	const n = 3000
	seen := make(chan int64, n)
	read := make(chan map[int64]string, 1)
	go func() {
		got, pos := map[int64]string{}, int64(0)
		for pos < n && t.Context().Err() == nil {
			res, err := c.Fetch(t.Context(), topic, 0, pos, 4<<10, 50*time.Millisecond)
			if err != nil {
				if !kafka.Retryable(err) {
					t.Errorf("fetch failed for good: %v", err)
					break
				}
				continue
			}
			for _, r := range res.Records {
				if _, ok := got[r.Offset]; ok {
					t.Errorf("offset %d twice", r.Offset)
				}
				got[r.Offset] = string(r.Value)
			}
			if pos = res.NextOffset; len(res.Records) > 0 {
				seen <- pos
			}
		}
		read <- got
	}()
	p := newClient(t, addr)
	for i := range n / 100 {
		if i == 10 {
			for <-seen < 500 {
			}
			end()
			again()
		}
		must(t, untilStored(t, p, topic, 0, values(100*i, 100)...))
	}
	got := <-read
	for i := range int64(n) {
		if got[i] != fmt.Sprint("v", i) {
			t.Fatalf("offset %d is %q", i, got[i])
		}
	}
}
