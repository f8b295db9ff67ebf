package app

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"

	"github.com/tocsin-project/tocsin/internal/kafka"
	"github.com/tocsin-project/tocsin/internal/respond/selfpage"
)

var kafkaModule = fx.Module("kafka",
	component("kafka"),
	fx.Provide(newKafka, newTopics),
)

func newKafka(lc fx.Lifecycle, c *Config, logger *slog.Logger, reg *prometheus.Registry) (*kafka.Client, error) {
	client, err := kafka.NewClient(c.Kafka.Config, logger, kafka.NewMetrics(reg))
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	lc.Append(fx.StopHook(client.Close))
	return client, nil
}

// topics tells when the topics that Tocsin itself writes are there. Those that it reads belong to others.
type topics struct {
	ready chan struct{}

	mu      sync.Mutex
	missing []string // of those that it reads
}

func (t *topics) missingNow() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.missing
}

func (t *topics) wait(ctx context.Context) bool {
	select {
	case <-t.ready:
		return true
	case <-ctx.Done():
		return false
	}
}

// ownPrefix is what topics are called that exist for Tocsin alone: they are made where they are missing, so that an
// installation which has no tickets yet is not kept waiting for their topic. Topics of others are theirs to make.
const ownPrefix = "tocsin."

func ownTopics(c *KafkaConfig, read []string) []kafka.TopicSpec {
	own := []kafka.TopicSpec{
		// One partition: commands have one order, and who is assigned it may lead.
		{Name: c.CommandsTopic, Partitions: 1, Configs: map[string]string{"retention.ms": fmt.Sprint((7 * 24 * time.Hour).Milliseconds())}},
		{Name: c.OutboxTopic, Partitions: 1, Configs: map[string]string{"cleanup.policy": "compact"}},
		{Name: c.SilencesTopic, Partitions: 1, Configs: map[string]string{"cleanup.policy": "compact"}},
	}
	for _, t := range read {
		if strings.HasPrefix(t, ownPrefix) {
			own = append(own, kafka.TopicSpec{Name: t, Partitions: 1})
		}
	}
	return own
}

func newTopics(lc fx.Lifecycle, stop fx.Shutdowner, c *Config, f *Files, client *kafka.Client, pager *selfpage.Pager, logger *slog.Logger) *topics {
	t := &topics{ready: make(chan struct{})}
	health := pager.From("topics")
	made := false
	background(lc, stop, logger, "topics", func(ctx context.Context) error {
		down := complaint{logger: logger, what: "Kafka"}
		for {
			err := t.look(ctx, c, f.Pipelines.Topics(), client, &made)
			if ctx.Err() == nil {
				down.look(err, time.Now())
				detail := ""
				if err != nil {
					detail = err.Error()
				}
				health.Report(selfpage.KafkaUnreachable, err == nil, detail)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(wait(err == nil, watchEvery)):
			}
		}
	})
	return t
}

func (t *topics) look(ctx context.Context, c *Config, read []string, client *kafka.Client, made *bool) error {
	ctx, cancel := context.WithTimeout(ctx, 2*watchTimeout)
	defer cancel()
	if *made && len(t.missingNow()) == 0 {
		return client.Ping(ctx)
	}
	if *made {
		return t.lookForMissing(ctx, read, client)
	}
	if err := client.EnsureTopics(ctx, ownTopics(&c.Kafka, read)); err != nil {
		return fmt.Errorf("making Tocsin's own topics: %w", err)
	}
	*made = true
	err := t.lookForMissing(ctx, read, client)
	close(t.ready)
	return err
}

// lookForMissing notes which topics that are read are not there. A group with none of them waits, and somebody has to be told
// for what.
func (t *topics) lookForMissing(ctx context.Context, read []string, client *kafka.Client) error {
	there, err := client.Topics(ctx)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.missing = slices.DeleteFunc(slices.Clone(read), func(name string) bool { return slices.Contains(there, name) })
	return nil
}

// outboxTopic fits a compacted topic to what the outbox mirrors to.
type outboxTopic struct{ table *kafka.Compacted }

func (o outboxTopic) Produce(ctx context.Context, key string, value []byte) error {
	if value == nil {
		return o.table.Delete(ctx, key)
	}
	return o.table.Put(ctx, key, value)
}

func (o outboxTopic) LoadAll(ctx context.Context) (map[string][]byte, error) {
	s, err := o.table.Load(ctx)
	return s.Values, err
}
