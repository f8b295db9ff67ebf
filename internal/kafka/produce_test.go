package kafka_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tocsin-project/tocsin/internal/kafka"
	"github.com/tocsin-project/tocsin/internal/kafka/realkafka/realkafkatest"
	"github.com/tocsin-project/tocsin/internal/kafkalocal"
	"github.com/tocsin-project/tocsin/internal/kafkalocal/kafkatest"
)

func TestKeysChooseThePartitionAsJavaDoes(t *testing.T) {
	addr, topic := broker(t, 7)
	c := newClient(t, addr)
	// Hashes from Kafka's own UtilsTest.testMurmur2.
	want := map[string]int32{}
	for key, hash := range map[string]int32{"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536} {
		want[key] = hash & 0x7fffffff % 7
	}
	for key := range want {
		must(t, c.NewProducer().Produce(t.Context(), topic, kafka.ByKey, kafka.Record{Key: []byte(key), Value: []byte("v")}))
	}
	r, err := c.ListOffsets(t.Context(), topic, 0, 1, 2, 3, 4, 5, 6)
	must(t, err)
	got := map[string]int32{}
	for p, b := range r {
		_, err := c.ReadRange(t.Context(), topic, p, b.Start, b.End, func(r kafka.Record) error {
			got[string(r.Key)] = p
			return nil
		})
		must(t, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestProduceSplitsWhatDoesNotFitOneBatch(t *testing.T) {
	addr, topic := broker(t, 1)
	c := newClient(t, addr)
	recs := make([]kafka.Record, 30)
	rng := rand.NewChaCha8([32]byte{1})
	for i := range recs {
		recs[i].Value = make([]byte, 100<<10) // Not compressible: 3 MB in all.
		_, _ = rng.Read(recs[i].Value)
	}
	must(t, c.NewProducer().Produce(t.Context(), topic, 0, recs...))
	n := 0
	_, err := c.ReadRange(t.Context(), topic, 0, 0, 30, func(r kafka.Record) error {
		if !bytes.Equal(r.Value, recs[r.Offset].Value) {
			t.Errorf("record %d differs", r.Offset)
		}
		n++
		return nil
	})
	if err != nil || n != 30 {
		t.Errorf("%d records, %v", n, err)
	}
	big := kafka.Record{Value: make([]byte, 2<<20)}
	_, _ = rng.Read(big.Value)
	err = c.NewProducer().Produce(t.Context(), topic, 0, big)
	if kafka.ReasonOf(err) != kafka.ReasonTooLarge || kafka.Retryable(err) {
		t.Errorf("a record of 2 MiB: %v", err)
	}
}

func TestProduceGoesOnAfterABrokerRestart(t *testing.T) {
	addr, topic, end, again := restarted(t)
	c := newClient(t, addr)
	must(t, c.NewProducer().Produce(t.Context(), topic, 0, values(0, 1)...))
	end()
	done := make(chan error, 1)
	go func() { done <- untilStored(t, c, topic, 0, values(1, 1)...) }()
	again()
	must(t, <-done)
	if got := readAll(t, c, topic, 0, 0, 2); got[1] != "v1" {
		t.Errorf("read %v", got)
	}
}

// untilStored produces for as long as errors say that it can be tried again: a broker needs longer to come back than a
// producer tries by itself.
func untilStored(t *testing.T, c *kafka.Client, topic string, partition int32, recs ...kafka.Record) error {
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	for {
		err := c.NewProducer().Produce(ctx, topic, partition, recs...)
		if err == nil || !kafka.Retryable(err) || ctx.Err() != nil {
			return err
		}
	}
}

func TestProduceGivesUpWithItsContext(t *testing.T) {
	addr, topic := broker(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := newClient(t, addr).NewProducer().Produce(ctx, topic, 0, values(0, 1)...); kafka.ReasonOf(err) != kafka.ReasonCanceled {
		t.Errorf("produce with an ended context: %v", err)
	}
}

// Compaction leaves batches whose last records are gone: reading must pass them, and the last value of a key must win.
func TestCompactedTopicIsReadToItsEnd(t *testing.T) {
	addr, outbox := compacted(t, 2)
	c := newClient(t, addr)
	table := c.NewCompacted(outbox)
	ctx := t.Context()
	want := map[string][]byte{}
	for i := range 40 {
		key := fmt.Sprint("incident/", i%10)
		want[key] = fmt.Appendf(nil, "state %d", i)
		must(t, table.Put(ctx, key, want[key]))
	}
	must(t, table.Put(ctx, "empty", nil))
	want["empty"] = []byte{}
	for _, key := range []string{"incident/3", "incident/4"} {
		must(t, table.Delete(ctx, key))
		delete(want, key)
	}
	check := func(when string) {
		s, err := table.Load(ctx)
		must(t, err)
		if diff := cmp.Diff(want, s.Values); diff != "" {
			t.Errorf("%s: %s", when, diff)
		}
		if r, err := c.ListOffsets(ctx, outbox, 0, 1); err != nil || s.Next[0] != r[0].End || s.Next[1] != r[1].End {
			t.Errorf("%s: goes on at %v, the log ends at %v, %v", when, s.Next, r, err)
		}
	}
	check("before compaction")
	before, err := c.ListOffsets(ctx, outbox, 0, 1)
	must(t, err)
	again := 0
	eventually(t, "compaction", func() bool {
		n := 0
		for p, r := range before {
			_, err := c.ReadRange(ctx, outbox, p, r.Start, r.End, func(kafka.Record) error { n++; return nil })
			must(t, err)
		}
		if realkafkatest.Wanted() { // It never compacts the segment that is written to, and closes it only when something is written.
			key := fmt.Sprint("incident/", again%3)
			must(t, table.Put(ctx, key, want[key]))
			key = fmt.Sprint("incident/", 5+again%5)
			must(t, table.Put(ctx, key, want[key]))
			again++
		}
		return n < 25
	})
	check("after compaction")
	all, err := c.LoadAll(ctx, outbox)
	if err != nil || len(all) != len(want) {
		t.Errorf("LoadAll: %d keys, %v", len(all), err)
	}
}

// compacted is a topic that is compacted within moments.
func compacted(t *testing.T, partitions int) (addr, topic string) {
	t.Helper()
	topic = topicName(t)
	if !realkafkatest.Wanted() {
		return kafkatest.StartWith(t, kafkalocal.Options{CleanerBackoff: 20 * time.Millisecond,
			Topics: []kafkalocal.Topic{{Name: topic, Partitions: partitions, Compacted: true}}}).Addr(), topic
	}
	addr = realkafkatest.Addr(t)
	must(t, newClient(t, addr).EnsureTopics(t.Context(), []kafka.TopicSpec{{Name: topic, Partitions: partitions,
		Configs: map[string]string{"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}}}))
	led(t, addr, topic, partitions)
	return addr, topic
}

func TestTopicsAreMadeOnceAndKeptUpToDate(t *testing.T) {
	addr, topic := broker(t, 1)
	c := newClient(t, addr)
	spec := kafka.TopicSpec{Name: topic + "-new", Partitions: 2, ReplicationFactor: 1,
		Configs: map[string]string{"cleanup.policy": "compact"}}
	for range 2 {
		must(t, c.EnsureTopics(t.Context(), []kafka.TopicSpec{spec}))
	}
	spec.Partitions = 4
	must(t, c.EnsureTopics(t.Context(), []kafka.TopicSpec{spec}))
	if ps, err := newClient(t, addr).Partitions(t.Context(), spec.Name); err != nil || len(ps[spec.Name]) != 2 {
		t.Errorf("without Update the topic became %v, %v", ps, err)
	}
	spec.Update = true
	spec.Configs["retention.ms"] = "1000"
	must(t, c.EnsureTopics(t.Context(), []kafka.TopicSpec{spec}))
	if ps, err := newClient(t, addr).Partitions(t.Context(), spec.Name); err != nil || len(ps[spec.Name]) != 4 {
		t.Errorf("with Update the topic became %v, %v", ps, err)
	}
	if _, err := c.Partitions(t.Context(), topic+"-none"); kafka.ReasonOf(err) != kafka.ReasonUnknownTopic {
		t.Errorf("partitions of an unknown topic: %v", err)
	}
	names, err := newClient(t, addr).Topics(t.Context())
	must(t, err)
	found := map[string]bool{}
	for _, n := range names {
		found[n] = true
	}
	if !found[topic] || !found[spec.Name] {
		t.Errorf("topics %v", names)
	}
}
