package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"

	"github.com/tocsin-project/tocsin/internal/door"
	"github.com/tocsin-project/tocsin/internal/kafka"
)

var doorModule = fx.Module("door",
	component("door"),
	fx.Provide(newDoor),
)

func newDoor(lc fx.Lifecycle, stop fx.Shutdowner, c *Config, f *Files, client *kafka.Client, logger *slog.Logger, reg *prometheus.Registry) (*door.Door, error) {
	d, err := door.New(door.Options{
		Config: c.Door, Pipelines: f.Pipelines, Producer: doorProducer{client.NewProducer()}, Path: c.path, Logger: logger, Metrics: door.NewMetrics(reg),
	})
	if err == nil && c.Door.Listen != "" {
		// Whoever may send need not see the console, nor give its commands: this address has the door alone.
		mux := http.NewServeMux()
		d.Register(mux)
		lc.Append(serving(stop, c.Door.Listen, mux, logger))
	}
	return d, err
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
