package app

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"

	"github.com/tocsin-project/tocsin/internal/clickhouse"
	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/kafka"
	"github.com/tocsin-project/tocsin/internal/respond/selfpage"
)

var ingestModule = fx.Module("ingest",
	component("ingest"),
	fx.Provide(newIngest),
)

func newIngest(lc fx.Lifecycle, stop fx.Shutdowner, c *Config, f *Files, client *kafka.Client, store *clickhouse.Store, s *schema, _ *topics,
	pager *selfpage.Pager, logger *slog.Logger, reg *prometheus.Registry,
) (*ingest.Loop, error) {
	group, err := client.NewGroup(kafka.GroupConfig{
		ID: c.Kafka.Group, Topics: f.Pipelines.Topics(),
		SessionTimeout: c.Kafka.SessionTimeout.Std(), RebalanceTimeout: c.Kafka.RebalanceTimeout.Std(),
	})
	if err != nil {
		return nil, fmt.Errorf("ingest: %w", err)
	}
	health, gaps := pager.From("ingest"), &gaps{}
	loop, err := ingest.New(c.Ingest, ingest.Deps{
		Log: kafka.IngestLog(client), Group: kafka.IngestGroup(group), Store: store, Sources: f.Sources,
		Clock: ingest.NewClock(c.Ingest.Clock, time.Now), Logger: logger, Metrics: ingest.NewMetrics(reg), Values: store,
		OnNotice: func(n ingest.Notice) {
			if n.Kind == ingest.NoticeGap {
				gaps.found(n.Text, time.Now())
			}
		},
	})
	if err != nil {
		return nil, err
	}
	background(lc, stop, logger, "ingest", func(ctx context.Context) error {
		if !s.wait(ctx) {
			return nil
		}
		return loop.Run(ctx)
	})
	background(lc, stop, logger, "ingest health", func(ctx context.Context) error {
		for {
			h := loop.Health()
			health.Report(selfpage.IngestBlocked, h.BlockedSince.IsZero(), h.LastError)
			lately, text := gaps.lately(time.Now())
			health.Report(selfpage.IngestGap, !lately, text)
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(time.Second):
			}
		}
	})
	return loop, nil
}

// gapSpeaks is how long a gap counts as trouble. It does not end, what is gone stays gone: a page that lasted as long
// would come back every few minutes, whatever people do about it, and hide the next gap.
const gapSpeaks = 10 * time.Minute

// gaps remembers the newest gap.
type gaps struct {
	mu   sync.Mutex
	at   time.Time
	text string
}

func (g *gaps) found(text string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at, g.text = now, text
}

func (g *gaps) lately(now time.Time) (bool, string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.at.IsZero() && now.Sub(g.at) < gapSpeaks, g.text
}
