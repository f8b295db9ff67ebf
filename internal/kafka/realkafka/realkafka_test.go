package realkafka_test

import (
	"context"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/kafka"
	"github.com/tocsin-project/tocsin/internal/kafka/realkafka"
	"github.com/tocsin-project/tocsin/internal/kafka/realkafka/realkafkatest"
)

func TestOptionsReportEveryMistake(t *testing.T) {
	for name, o := range map[string]realkafka.Options{
		"version":     {Version: "0.8"},
		"replication": {Brokers: 1, Replication: 3},
		"in sync":     {Brokers: 3, Replication: 2, MinInSync: 3},
		"listener":    {Listeners: []realkafka.Listener{"INTERNAL"}},
		"mechanism":   {Users: []realkafka.User{{Mechanism: "GSSAPI"}}},
	} {
		if c, err := realkafka.Start(t.Context(), o); err == nil {
			t.Errorf("%s: accepted, %v", name, c.Close())
		}
	}
}

// What a fault campaign does to a cluster: each broker is killed, halted and ended in order, comes back on its address
// with its data, and a cluster in the same folder goes on where the one before ended.
func TestAClusterSurvivesWhatIsDoneToIt(t *testing.T) {
	o := realkafka.Options{Brokers: 3, Dir: t.TempDir()}
	c := realkafkatest.Start(t, o)
	client := newClient(t, c.Addrs(realkafka.Plain))
	ensure(t, client, kafka.TopicSpec{Name: "t", Partitions: 3})
	written := 0
	write := func() {
		t.Helper()
		for p := range int32(3) {
			produce(t, client, "t", p)
		}
		written++
	}
	write()
	if err := c.Kill(1); err != nil {
		t.Fatal(err)
	}
	write()
	if err := c.Restart(1); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(2); err != nil {
		t.Fatal(err)
	}
	write()
	if err := c.Cont(2); err != nil {
		t.Fatal(err)
	}
	if err := c.Shutdown(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	write()
	addrs := c.Addrs(realkafka.Plain)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = realkafkatest.Start(t, o)
	if got := c.Addrs(realkafka.Plain); got[0] != addrs[0] || got[2] != addrs[2] {
		t.Errorf("addresses %v, before %v", got, addrs)
	}
	for p := range int32(3) {
		eventually(t, "the partition's end", func(ctx context.Context) bool {
			r, err := client.ListOffsets(ctx, "t", p)
			return err == nil && r[p].End >= int64(written)
		})
	}
}

func newClient(t *testing.T, brokers []string) *kafka.Client {
	t.Helper()
	c, err := kafka.NewClient(kafka.Config{Brokers: brokers, MetadataTTL: 200 * time.Millisecond}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func ensure(t *testing.T, c *kafka.Client, spec kafka.TopicSpec) {
	t.Helper()
	if err := c.EnsureTopics(t.Context(), []kafka.TopicSpec{spec}); err != nil {
		t.Fatal(err)
	}
}

// produce writes one record, for as long as it takes the cluster to choose another leader.
func produce(t *testing.T, c *kafka.Client, topic string, partition int32) {
	t.Helper()
	eventually(t, "a record is stored", func(ctx context.Context) bool {
		err := c.NewProducer().Produce(ctx, topic, partition, kafka.Record{Value: []byte("v")})
		if err != nil {
			t.Logf("produce: %v", err)
		}
		return err == nil
	})
}

func eventually(t *testing.T, what string, ok func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	for !ok(ctx) {
		if ctx.Err() != nil {
			t.Fatalf("not in 40 s: %s", what)
		}
	}
}
