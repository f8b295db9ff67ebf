package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/fx"

	"github.com/tocsin-project/tocsin/internal/clickhouse"
	"github.com/tocsin-project/tocsin/internal/kafka"
	"github.com/tocsin-project/tocsin/internal/respond/outbox"
	"github.com/tocsin-project/tocsin/internal/respond/silence"
)

// silencesRead is closed when all silences of the topic have been heard of once.
type silencesRead chan struct{}

// newSilences keeps silences as the outbox keeps its records: in a local file first, which answers while Kafka is down, and
// in a compacted topic, from which every process hears of those that another one was given.
func newSilences(lc fx.Lifecycle, stop fx.Shutdowner, c *Config, client *kafka.Client, t *topics, logger *slog.Logger) (*silence.Store, silencesRead, error) {
	wal, err := outbox.OpenWAL(filepath.Join(c.path(c.Respond.DataDir), "silences"))
	if err != nil {
		return nil, nil, fmt.Errorf("respond: data_dir: %w", err)
	}
	// What the file has is in force from the start; the topic is read as soon as it answers, below.
	s, err := silence.New(context.Background(), wal, time.Now)
	if err != nil {
		return nil, nil, errors.Join(err, wal.Close())
	}
	m := outbox.NewMirror(wal, outboxTopic{client.NewCompacted(c.Kafka.SilencesTopic)}, silence.Newer, logger.With("store", "silences"))
	s.Write(m)
	lc.Append(fx.StopHook(m.Close))
	read := make(silencesRead)
	background(lc, stop, logger, "silences", func(ctx context.Context) error {
		if !t.wait(ctx) {
			return nil
		}
		follow(ctx, client, c.Kafka.SilencesTopic, func(r kafka.Record) { s.Take(string(r.Key), r.Value) }, sync.OnceFunc(func() { close(read) }))
		return nil
	})
	return s, read, nil
}

// follow reads a topic of one partition from its start, and on, until ctx ends. It calls end whenever there is no more.
func follow(ctx context.Context, client *kafka.Client, topic string, take func(kafka.Record), end func()) {
	next := int64(0)
	for ctx.Err() == nil {
		r, err := client.Fetch(ctx, topic, 0, next, 1<<20, 500*time.Millisecond)
		var out *kafka.OffsetOutOfRangeError
		switch {
		case errors.As(err, &out):
			next = out.Start
			continue
		case err != nil:
			pause(ctx, time.Second)
			continue
		}
		for _, rec := range r.Records {
			take(rec)
		}
		if r.CaughtUp() {
			end()
		}
		next = r.NextOffset
	}
}

// copyEvery is how often silences that are new, or were ended, are copied for analysts.
const copyEvery = 5 * time.Second

// copySilences keeps ClickHouse's copy of the silences. That it cannot is told once: nothing else depends on it.
func copySilences(ctx context.Context, s *schema, from *silence.Store, to *clickhouse.Silences, logger *slog.Logger) error {
	if !s.wait(ctx) {
		return nil
	}
	for failed := false; ctx.Err() == nil; pause(ctx, copyEvery) {
		err := to.Copy(ctx, from.List())
		if err != nil && !failed && ctx.Err() == nil {
			logger.Warn("silences are not copied to ClickHouse, trying on", "err", err)
		}
		failed = err != nil
	}
	return nil
}
