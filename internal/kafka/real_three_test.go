package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tocsin-project/tocsin/internal/ingest/ingesttest"
	"github.com/tocsin-project/tocsin/internal/kafka"
	"github.com/tocsin-project/tocsin/internal/kafka/realkafka"
	"github.com/tocsin-project/tocsin/internal/kafka/realkafka/realkafkatest"
)

// threeBrokers has a topic on three brokers, of which two must have each record.
func threeBrokers(t *testing.T, partitions int, configs map[string]string) (c *realkafka.Cluster, addrs, topic string) {
	t.Helper()
	c = realkafkatest.Three(t)
	addrs, topic = strings.Join(c.Addrs(realkafka.Plain), ","), topicName(t)
	must(t, newClient(t, addrs).EnsureTopics(t.Context(), []kafka.TopicSpec{{Name: topic, Partitions: partitions,
		ReplicationFactor: 3, Configs: configs}}))
	led(t, addrs, topic, partitions)
	return c, addrs, topic
}

// brokerAt is the number of the broker that listens at an address.
func brokerAt(t *testing.T, c *realkafka.Cluster, host string, port int) int {
	t.Helper()
	for id := 1; id <= c.Brokers(); id++ {
		if c.Addr(id, realkafka.Plain) == fmt.Sprintf("%s:%d", host, port) {
			return id
		}
	}
	t.Fatalf("no broker at %s:%d", host, port)
	return 0
}

func askBrokers[T any](t *testing.T, what, addrs string, ask func(context.Context, *kafkago.Client) (T, bool)) (out T) {
	t.Helper()
	tr := &kafkago.Transport{MetadataTTL: 50 * time.Millisecond}
	defer tr.CloseIdleConnections()
	client := &kafkago.Client{Addr: kafkago.TCP(strings.Split(addrs, ",")...), Transport: tr}
	eventually(t, what, func() (ok bool) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		out, ok = ask(ctx, client)
		return ok
	})
	return out
}

func leader(t *testing.T, c *realkafka.Cluster, addrs, topic string, partition int) int {
	t.Helper()
	b := askBrokers(t, "a leader", addrs, func(ctx context.Context, client *kafkago.Client) (kafkago.Broker, bool) {
		md, err := client.Metadata(ctx, &kafkago.MetadataRequest{Topics: []string{topic}})
		if err == nil && len(md.Topics) == 1 {
			for _, p := range md.Topics[0].Partitions {
				if p.ID == partition && p.Error == nil && p.Leader.Host != "" {
					return p.Leader, true
				}
			}
		}
		return kafkago.Broker{}, false
	})
	return brokerAt(t, c, b.Host, b.Port)
}

func coordinator(t *testing.T, c *realkafka.Cluster, addrs, group string) int {
	t.Helper()
	b := askBrokers(t, "a coordinator", addrs, func(ctx context.Context, client *kafkago.Client) (*kafkago.FindCoordinatorResponseCoordinator, bool) {
		res, err := client.FindCoordinator(ctx, &kafkago.FindCoordinatorRequest{Key: group, KeyType: kafkago.CoordinatorKeyTypeConsumer})
		if err != nil || res.Error != nil || res.Coordinator == nil {
			return nil, false
		}
		return res.Coordinator, true
	})
	return brokerAt(t, c, b.Host, b.Port)
}

// bringBack starts the brokers that were killed.
func bringBack(t *testing.T, c *realkafka.Cluster) {
	t.Helper()
	for id := range c.Brokers() {
		_ = c.Restart(id + 1) // those that run say so
	}
	must(t, c.WaitReady(t.Context()))
}

// impatient clients notice within a test's time that a broker is gone.
func impatient(cfg *kafka.Config) {
	cfg.MetadataTTL, cfg.RequestTimeout, cfg.DialTimeout = 200*time.Millisecond, 3*time.Second, time.Second
}

// What was acknowledged is read, once at its offset and in order, also by a reader that was reading while the leader was
// killed, and then the next one halted.
func TestLeaderKilledWhileProducingAndFetching(t *testing.T) {
	c, addrs, topic := threeBrokers(t, 1, nil)
	const n = 200
	read := make(chan map[int64]string, 1)
	var pos, end atomic.Int64
	go func() {
		client, got := newClient(t, addrs, impatient), map[int64]string{}
		for (end.Load() == 0 || pos.Load() < end.Load()) && t.Context().Err() == nil {
			res, err := client.Fetch(t.Context(), topic, 0, pos.Load(), 4<<10, 50*time.Millisecond)
			if err != nil {
				if !kafka.Retryable(err) && t.Context().Err() == nil {
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
			pos.Store(res.NextOffset)
		}
		read <- got
	}()
	client := newClient(t, addrs, impatient)
	for i := range n {
		if i%50 == 25 {
			eventually(t, "the reader", func() bool { return pos.Load() > 0 })
			id := leader(t, c, addrs, topic, 0)
			switch i / 50 {
			case 0:
				must(t, c.Kill(id))
			case 1:
				bringBack(t, c)
			case 2:
				must(t, c.Stop(id))
			case 3:
				for id := range c.Brokers() {
					_ = c.Cont(id + 1)
				}
			}
		}
		must(t, untilStored(t, client, topic, 0, values(i, 1)...))
	}
	r, err := client.ListOffsets(t.Context(), topic, 0)
	must(t, err)
	end.Store(r[0].End)
	got := <-read
	// A try whose answer was lost is sent again: a value may be there twice, and never out of order.
	next := 0
	for off := range r[0].End {
		v, _ := strconv.Atoi(strings.TrimPrefix(got[off], "v"))
		if v == next {
			next++
		} else if got[off] == "" || v > next {
			t.Fatalf("offset %d is %q, want v%d", off, got[off], next)
		}
	}
	if next != n {
		t.Errorf("acknowledged values end at v%d", next-1)
	}
}

// When the coordinator dies, a commit is applied, refused, or of unknown outcome, and then the member is another one.
// What counts as committed in the end is the last that was not refused.
func TestCoordinatorKilledWhileCommitting(t *testing.T) {
	c, addrs, topic := threeBrokers(t, 1, nil)
	group := "g-" + topic
	client := newClient(t, addrs, impatient)
	r := run(t, client, group, topic, nil)
	gen := r.owns(t, topic, 1)
	possible := map[string]bool{} // what the metadata may be
	for i, killed := 0, false; i < 60; i++ {
		if i == 20 && !killed {
			must(t, c.Kill(coordinator(t, c, addrs, group)))
			killed = true
		}
		meta := fmt.Sprint("m", i)
		err := client.Commit(t.Context(), gen, topic, 0, int64(i), meta)
		switch {
		case err == nil:
			possible = map[string]bool{meta: true}
		case errors.Is(err, kafka.ErrUnknownOutcome):
			possible[meta] = true
			if !gen.Poisoned() {
				t.Error("the outcome is unknown and the generation not poisoned")
			}
			fallthrough
		case errors.Is(err, kafka.ErrFenced):
			eventually(t, "another generation", func() bool {
				g := r.owns(t, topic, 1)
				if g.ID == gen.ID && g.MemberID == gen.MemberID {
					return false
				}
				if gen.Poisoned() && g.MemberID == gen.MemberID {
					t.Fatal("a poisoned member kept its id")
				}
				gen = g
				return true
			})
		default:
			t.Fatalf("commit: %v", err)
		}
	}
	var meta string
	eventually(t, "the committed offset", func() bool {
		off, m, err := client.FetchCommitted(t.Context(), group, topic, 0)
		meta = m
		return err == nil && m == fmt.Sprint("m", off)
	})
	if !possible[meta] {
		t.Errorf("committed is %s, possible are %v", meta, possible)
	}
}

// The outbox and the commands are compacted topics: what was put when leaders die is there for who starts anew.
func TestLeadersOfACompactedTopicKilled(t *testing.T) {
	c, addrs, topic := threeBrokers(t, 2, map[string]string{"cleanup.policy": "compact", "segment.ms": "200",
		"min.cleanable.dirty.ratio": "0.01"})
	client := newClient(t, addrs, impatient)
	table := client.NewCompacted(topic)
	want := map[string][]byte{}
	for i := range 120 {
		switch i {
		case 40:
			must(t, c.Kill(leader(t, c, addrs, topic, 0)))
		case 60:
			bringBack(t, c)
		case 80:
			must(t, c.Kill(leader(t, c, addrs, topic, 1)))
		}
		key := fmt.Sprint("incident/", i%7)
		put := func() error { return table.Put(t.Context(), key, fmt.Append(nil, i)) }
		want[key] = fmt.Append(nil, i)
		if i%11 == 10 {
			put = func() error { return table.Delete(t.Context(), key) }
			delete(want, key)
		}
		eventually(t, "a value is stored", func() bool {
			err := put()
			if err != nil && !kafka.Retryable(err) {
				t.Fatal(err)
			}
			return err == nil
		})
	}
	got, err := newClient(t, addrs, impatient).LoadAll(t.Context(), topic)
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Transactions that commit and abort, two members of which one dies, and brokers that are killed: what is stored is what
// another client reads as committed, each value once.
func TestIngestOnThreeBrokersCountsCommittedRecordsOnce(t *testing.T) {
	const partitions, rounds, perRound = 3, 60, 20
	c, addrs, topic := threeBrokers(t, partitions, nil)
	store := ingesttest.NewStore()
	counts := func() map[int]int {
		times := map[int]int{}
		for _, b := range store.Batches() {
			for _, g := range b.Gauges {
				times[int(g.Value)]++
			}
		}
		return times
	}
	_, first := startIngest(t, addrs, topic, store)
	producer := txnClient(t, addrs, topic)
	committed, aborted := 0, 0
	for round := range rounds {
		switch round {
		case rounds / 4:
			startIngest(t, addrs, topic, store)
		case rounds / 3:
			must(t, c.Kill(leader(t, c, addrs, topic, 0)))
		case rounds / 2:
			first.Kill()
			bringBack(t, c)
		case 2 * rounds / 3:
			must(t, c.Kill(coordinator(t, c, addrs, "ingest-"+topic)))
		}
		try := kgo.TransactionEndTry(kgo.TryCommit)
		if round%3 == 2 {
			try = kgo.TryAbort
		}
		if err := transaction(t, producer, round*perRound, perRound, partitions, try); err != nil {
			t.Logf("round %d: %v", round, err) // what became of it, the log tells
			producer.CloseAllowingRebalance()
			producer = txnClient(t, addrs, topic)
		}
	}
	want := readCommitted(t, addrs, topic, partitions)
	for v := range rounds * perRound {
		if want[v] == 0 {
			aborted++
		} else {
			committed++
		}
	}
	if committed < rounds*perRound/2 || aborted < rounds*perRound/4 {
		t.Fatalf("%d values committed, %d aborted: that shows little", committed, aborted)
	}
	eventually(t, "all committed values", func() bool { return len(counts()) >= len(want) })
	if got := counts(); !maps.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}

func txnClient(t *testing.T, addrs, topic string) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(addrs, ",")...), kgo.TransactionalID("t-"+topic), kgo.DefaultProduceTopic(topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionTimeout(10*time.Second), kgo.MetadataMinAge(50*time.Millisecond))
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

func transaction(t *testing.T, c *kgo.Client, from, n, partitions int, end kgo.TransactionEndTry) error {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := c.BeginTransaction(); err != nil {
		return err
	}
	recs := make([]*kgo.Record, n)
	for i := range recs {
		recs[i] = &kgo.Record{Partition: int32(i % partitions),
			Value: fmt.Appendf(nil, `{"time":%d,"resource":"r","metric":"m","value":%d}`, time.Now().UnixMilli(), from+i)}
	}
	if err := c.ProduceSync(ctx, recs...).FirstErr(); err != nil {
		return errors.Join(err, c.EndTransaction(ctx, kgo.TryAbort))
	}
	return c.EndTransaction(ctx, end)
}

// readCommitted is the truth: what another client reads of a topic, how often each value.
func readCommitted(t *testing.T, addrs, topic string, partitions int) map[int]int {
	t.Helper()
	ends := map[int32]int64{}
	eventually(t, "all transactions ended", func() bool {
		client := newClient(t, addrs, impatient)
		for p := range int32(partitions) {
			r, err := client.ListOffsets(t.Context(), topic, p)
			if err != nil {
				return false
			}
			res, err := client.Fetch(t.Context(), topic, p, r[p].End, 0, 10*time.Millisecond)
			if err != nil || res.LastStable != res.HighWatermark {
				return false
			}
			ends[p] = res.HighWatermark
		}
		return true
	})
	c := kgoClient(t, addrs, kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.KeepControlRecords())
	out, at := map[int]int{}, map[int32]int64{}
	done := func() bool {
		for p, end := range ends {
			if at[p] < end {
				return false
			}
		}
		return true
	}
	for !done() {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		fetches := c.PollFetches(ctx)
		must(t, ctx.Err())
		cancel()
		fetches.EachRecord(func(r *kgo.Record) {
			at[r.Partition] = r.Offset + 1
			if r.Attrs.IsControl() {
				return
			}
			_, v, _ := strings.Cut(string(r.Value), `"value":`)
			n, err := strconv.Atoi(strings.TrimSuffix(v, "}"))
			must(t, err)
			out[n]++
		})
	}
	return out
}
