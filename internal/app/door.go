package app

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"

	"github.com/tocsin-project/tocsin/internal/door"
	"github.com/tocsin-project/tocsin/internal/kafka"
)

var doorModule = fx.Module("door",
	component("door"),
	fx.Provide(newDoor),
)

func newDoor(c *Config, f *Files, client *kafka.Client, logger *slog.Logger, reg *prometheus.Registry) (*door.Door, error) {
	return door.New(door.Options{
		Config: c.Door, Pipelines: f.Pipelines, Producer: doorProducer{client.NewProducer()}, Path: c.path, Logger: logger, Metrics: door.NewMetrics(reg),
	})
}

// doorProducer fits Kafka's producer to the door.
type doorProducer struct{ p *kafka.Producer }

var _ door.Producer = doorProducer{}

func (d doorProducer) Produce(ctx context.Context, topic string, value []byte) error {
	err := d.p.Produce(ctx, topic, kafka.ByKey, kafka.Record{Value: value})
	if err != nil && kafka.ReasonOf(err) == kafka.ReasonTooLarge {
		return fmt.Errorf("%w: %w", door.ErrTooLarge, err)
	}
	return err
}
