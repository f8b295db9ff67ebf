package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
)

// IngestLog is the client as the ingest loop sees it.
func IngestLog(c *Client) ingest.Log { return ingestLog{c} }

type ingestLog struct{ c *Client }

var _ ingest.Log = ingestLog{}

// Fetch gives committed records only: the end it tells is that of committed reading.
func (l ingestLog) Fetch(ctx context.Context, tp ingest.TopicPartition, offset int64, maxBytes int, maxWait time.Duration) (ingest.Fetched, error) {
	r, err := l.c.Fetch(ctx, tp.Topic, tp.Partition, offset, maxBytes, maxWait)
	if err != nil {
		return ingest.Fetched{}, toIngest(err)
	}
	f := ingest.Fetched{Records: make([]ingest.Record, len(r.Records)), Next: r.NextOffset, HighWatermark: r.LastStable, LogStart: r.LogStart, Release: r.Release}
	for i, rec := range r.Records {
		f.Records[i] = ingest.Record{Offset: rec.Offset, Time: rec.Time, Key: rec.Key, Value: rec.Value}
	}
	return f, nil
}

func (l ingestLog) Bounds(ctx context.Context, tp ingest.TopicPartition) (start, end int64, err error) {
	r, err := l.c.ListOffsets(ctx, tp.Topic, tp.Partition)
	if err != nil {
		return 0, 0, toIngest(err)
	}
	return r[tp.Partition].Start, r[tp.Partition].End, nil
}

func (l ingestLog) OffsetAt(ctx context.Context, tp ingest.TopicPartition, t time.Time) (int64, error) {
	offset, err := l.c.OffsetForTime(ctx, tp.Topic, tp.Partition, t)
	return offset, toIngest(err)
}

// IngestGroup is the membership as the ingest loop sees it.
func IngestGroup(g *Group) ingest.Group { return ingestGroup{g} }

type ingestGroup struct{ g *Group }

var _ ingest.Group = ingestGroup{}

func (g ingestGroup) Run(ctx context.Context, fn func(context.Context, ingest.Generation) error) error {
	return g.g.Run(ctx, func(ctx context.Context, gen Generation) error {
		err := fn(ctx, ingestGeneration{g.g.client, gen})
		if errors.Is(err, ingest.ErrPoisoned) {
			return fmt.Errorf("%w: %w", ErrPoisoned, err)
		}
		return err
	})
}

type ingestGeneration struct {
	c   *Client
	gen Generation
}

var _ ingest.Generation = ingestGeneration{}

func (g ingestGeneration) Assigned() []ingest.TopicPartition {
	var out []ingest.TopicPartition
	for _, topic := range slices.Sorted(maps.Keys(g.gen.Assigned)) {
		for _, p := range g.gen.Assigned[topic] {
			out = append(out, ingest.TopicPartition{Topic: topic, Partition: p})
		}
	}
	return out
}

func (g ingestGeneration) Committed(ctx context.Context, tp ingest.TopicPartition) (int64, string, error) {
	offset, metadata, err := g.c.FetchCommitted(ctx, g.gen.GroupID, tp.Topic, tp.Partition)
	return offset, metadata, toIngest(err)
}

func (g ingestGeneration) Commit(ctx context.Context, tp ingest.TopicPartition, offset int64, metadata string) error {
	return toIngest(g.c.Commit(ctx, g.gen, tp.Topic, tp.Partition, offset, metadata))
}

// toIngest says in the loop's words what it has to tell apart.
func toIngest(err error) error {
	for ours, theirs := range map[error]error{ErrOffsetOutOfRange: ingest.ErrOutOfRange, ErrFenced: ingest.ErrFenced, ErrUnknownOutcome: ingest.ErrUnknownOutcome} {
		if errors.Is(err, ours) {
			return fmt.Errorf("%w: %w", theirs, err)
		}
	}
	return err
}
