package kafka_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tocsin-project/tocsin/internal/kafka"
	"github.com/tocsin-project/tocsin/internal/kafka/realkafka/realkafkatest"
	"github.com/tocsin-project/tocsin/internal/kafkalocal"
	"github.com/tocsin-project/tocsin/internal/kafkalocal/kafkatest"
)

func TestMain(m *testing.M) {
	// The broker of the contract tests may be a child process shared by all of them.
	code := m.Run()
	realkafkatest.Stop()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// broker is the Kafka the contract tests run against: the embedded one, or with TOCSIN_REAL_KAFKA=1 Apache Kafka.
// Topics are named after the test, so that tests do not see each other's.
func broker(t *testing.T, partitions int) (addr, topic string) {
	t.Helper()
	topic = topicName(t)
	if realkafkatest.Wanted() {
		addr = realkafkatest.Addr(t)
		must(t, newClient(t, addr).EnsureTopics(t.Context(), []kafka.TopicSpec{{Name: topic, Partitions: partitions,
			ReplicationFactor: 1}}))
		led(t, addr, topic, partitions)
		return addr, topic
	}
	return kafkatest.Start(t, kafkalocal.Topic{Name: topic, Partitions: partitions}), topic
}

// led waits until all partitions of a topic just made are led: a cluster knows them a moment earlier.
func led(t *testing.T, addr, topic string, partitions int) {
	t.Helper()
	c := newClient(t, addr)
	eventually(t, "leaders of "+topic, func() bool {
		for p := range int32(partitions) {
			if _, err := c.ListOffsets(t.Context(), topic, p); err != nil {
				return false
			}
		}
		return true
	})
}

func topicName(t *testing.T) string {
	return fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), time.Now().UnixNano())
}

// restarted is a broker with a topic of one partition, on disk, and what ends it and brings it back on its address.
// Apache Kafka is killed; the embedded broker is in this process and can only be closed.
func restarted(t *testing.T) (addr, topic string, end, again func()) {
	t.Helper()
	if realkafkatest.Wanted() {
		addr, topic = broker(t, 1)
		c := realkafkatest.One(t)
		return addr, topic, func() { must(t, c.Kill(1)) }, func() { must(t, c.Restart(1)) }
	}
	topic = topicName(t)
	o := kafkalocal.Options{DataDir: t.TempDir(), Topics: []kafkalocal.Topic{{Name: topic}}}
	b, err := kafkalocal.Start(t.Context(), o)
	must(t, err)
	o.Addr = b.Addr()
	closed := false
	end = func() { must(t, b.Close()); closed = true }
	t.Cleanup(func() {
		if !closed {
			must(t, b.Close())
		}
	})
	return o.Addr, topic, end, func() {
		b, err = kafkalocal.Start(t.Context(), o)
		must(t, err)
		closed = false
	}
}

// newClient takes addresses with commas between.
func newClient(t testing.TB, addr string, edit ...func(*kafka.Config)) *kafka.Client {
	t.Helper()
	cfg := kafka.Config{Brokers: strings.Split(addr, ",")}
	for _, e := range edit {
		e(&cfg)
	}
	c, err := kafka.NewClient(cfg, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func values(from, n int) []kafka.Record {
	out := make([]kafka.Record, n)
	for i := range out {
		out[i] = kafka.Record{Value: fmt.Appendf(nil, "v%d", from+i)}
	}
	return out
}

// readAll fetches [from, end) and returns the values by offset.
func readAll(t *testing.T, c *kafka.Client, topic string, partition int32, from, end int64) map[int64]string {
	t.Helper()
	got := map[int64]string{}
	next, err := c.ReadRange(t.Context(), topic, partition, from, end, func(r kafka.Record) error {
		if _, ok := got[r.Offset]; ok {
			t.Errorf("offset %d twice", r.Offset)
		}
		got[r.Offset] = string(r.Value)
		return nil
	})
	if err != nil || next < end {
		t.Fatalf("read [%d, %d): reached %d, %v", from, end, next, err)
	}
	return got
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not in 20 s: %s", what)
		}
	}
}

// runner is one process of a consumer group.
type runner struct {
	client *kafka.Client
	gens   chan kafka.Generation
	cancel context.CancelFunc
	done   chan struct{}

	mu   sync.Mutex
	last kafka.Generation
}

// run takes part in a group. body is the consumer; by default it holds its partitions until the generation ends.
func run(t *testing.T, c *kafka.Client, group, topic string, body func(context.Context, kafka.Generation) error) *runner {
	t.Helper()
	return runTopics(t, c, group, []string{topic}, body)
}

func runTopics(t *testing.T, c *kafka.Client, group string, topics []string, body func(context.Context, kafka.Generation) error) *runner {
	t.Helper()
	g, err := c.NewGroup(kafka.GroupConfig{ID: group, Topics: topics, SessionTimeout: 2 * time.Second,
		Heartbeat: 50 * time.Millisecond, RebalanceTimeout: 2 * time.Second, RejoinBackoff: 20 * time.Millisecond,
		PartitionInterval: 50 * time.Millisecond})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	r := &runner{client: c, gens: make(chan kafka.Generation, 100), cancel: cancel, done: make(chan struct{})}
	if body == nil {
		body = func(ctx context.Context, _ kafka.Generation) error { <-ctx.Done(); return nil }
	}
	go func() {
		defer close(r.done)
		_ = g.Run(ctx, func(ctx context.Context, gen kafka.Generation) error {
			r.mu.Lock()
			r.last = gen
			r.mu.Unlock()
			r.gens <- gen
			return body(ctx, gen)
		})
	}()
	t.Cleanup(r.stop)
	return r
}

func (r *runner) stop() {
	r.cancel()
	<-r.done
}

func (r *runner) next(t *testing.T) kafka.Generation {
	t.Helper()
	select {
	case g := <-r.gens:
		return g
	case <-time.After(20 * time.Second):
		t.Fatal("no generation in 20 s")
		return kafka.Generation{}
	}
}

// owns waits until the member's newest generation has n partitions of the topic, and returns it.
func (r *runner) owns(t *testing.T, topic string, n int) (g kafka.Generation) {
	t.Helper()
	eventually(t, fmt.Sprintf("a member with %d partitions", n), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		g = r.last
		return g.ID > 0 && len(g.Assigned[topic]) == n
	})
	return g
}
