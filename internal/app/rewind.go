package app

import (
	"context"
	"fmt"
	"log/slog"
	"os/user"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tocsin-project/tocsin/internal/cli"
	"github.com/tocsin-project/tocsin/internal/clickhouse"
	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/kafka"
)

// Rewind makes the partitions of a topic be read again, or says what it would do.
func Rewind(ctx context.Context, o cli.RewindOptions) (done []cli.Rewound, err error) {
	c, err := LoadConfig(o.Config)
	if err != nil {
		return nil, err
	}
	f, err := LoadFiles(c)
	if err != nil {
		return nil, err
	}
	p := f.Pipelines.ByTopic(o.Topic)
	if p == nil {
		return nil, fmt.Errorf("no pipeline reads topic %q", o.Topic)
	}
	logger := slog.New(slog.DiscardHandler)
	client, err := kafka.NewClient(c.Kafka.Config, logger, kafka.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	db, err := clickhouse.Open(c.ClickHouse, logger, nil)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	all, err := client.Partitions(ctx, o.Topic)
	if err != nil {
		return nil, err
	}
	partitions := slices.Sorted(slices.Values(all[o.Topic]))
	if o.Partition >= 0 {
		if !slices.Contains(partitions, o.Partition) {
			return nil, fmt.Errorf("topic %q has no partition %d", o.Topic, o.Partition)
		}
		partitions = []int32{o.Partition}
	}
	if o.Really {
		if err := nobodyReads(ctx, client, c.Kafka.Group); err != nil {
			return nil, err
		}
	}
	by := o.By
	if u, err := user.Current(); by == "" && err == nil {
		by = u.Username
	}
	store, log := clickhouse.NewStore(db), kafka.IngestLog(client)
	for _, n := range partitions {
		r, err := planRewind(ctx, store, log, ingest.TopicPartition{Topic: o.Topic, Partition: n}, clickhouse.Rewind{
			Stream: p.Stream, Topic: o.Topic, Partition: n, By: by, Reason: o.Reason, At: time.Now(),
		}, o)
		if err != nil {
			return done, err
		}
		done = append(done, r)
	}
	return done, nil
}

// nobodyReads refuses what a daemon that runs would neither notice nor survive the right way. The store asks too, but it
// knows only what was heard, and a daemon that waits is not heard.
func nobodyReads(ctx context.Context, client *kafka.Client, group string) error {
	empty, err := client.GroupIsEmpty(ctx, group)
	if err != nil {
		return fmt.Errorf("find whether a daemon runs: %w", err)
	}
	if !empty {
		return fmt.Errorf("the consumer group %q has members: stop every daemon first (one that was killed stays a member for kafka.session_timeout)", group)
	}
	return nil
}

func planRewind(ctx context.Context, store *clickhouse.Store, log ingest.Log, tp ingest.TopicPartition, r clickhouse.Rewind, o cli.RewindOptions) (cli.Rewound, error) {
	out := cli.Rewound{Partition: tp.Partition}
	pos, err := store.Position(ctx, r.Stream, tp.Topic, tp.Partition)
	if err != nil {
		return out, err
	}
	start, _, err := log.Bounds(ctx, tp)
	if err != nil {
		return out, fmt.Errorf("read the bounds of %s/%d: %w", tp.Topic, tp.Partition, err)
	}
	to := o.Offset
	if to < 0 {
		if to, err = log.OffsetAt(ctx, tp, o.Time); err != nil {
			return out, fmt.Errorf("find the offset at %s: %w", o.Time.Format(time.RFC3339), err)
		}
	}
	to = max(to, start) // what Kafka has deleted cannot be read again
	out.From, out.To = pos.End, to
	switch {
	case !pos.Found:
		out.Skipped = "nothing of it is stored"
	case to >= pos.End:
		out.Skipped = fmt.Sprintf("stored is up to %d, which %d does not go back from", pos.End, to)
	case o.Really:
		r.To = to
		return out, store.Rewind(ctx, r)
	}
	return out, nil
}
