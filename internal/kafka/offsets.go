package kafka

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/listoffsets"
	"golang.org/x/sync/errgroup"
)

// OffsetRange is what a partition's log holds: [Start, End). End is where read-committed reading ends.
type OffsetRange struct{ Start, End int64 }

const (
	timestampEnd   = -1
	timestampStart = -2

	maxConcurrentLookups = 8
)

// ListOffsets looks up the bounds of partitions. It fails as a whole if one of them fails.
func (c *Client) ListOffsets(ctx context.Context, topic string, partitions ...int32) (map[int32]OffsetRange, error) {
	var mu sync.Mutex
	ranges := make(map[int32]OffsetRange, len(partitions))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(maxConcurrentLookups)
	for _, p := range partitions {
		g.Go(func() error {
			start, err := c.listOffset(gctx, topic, p, timestampStart)
			if err != nil {
				return err
			}
			end, err := c.listOffset(gctx, topic, p, timestampEnd)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			ranges[p] = OffsetRange{Start: start, End: end}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return ranges, nil
}

// OffsetForTime is the offset of the first record whose timestamp is at or after t, or the end of the log if there is
// none.
func (c *Client) OffsetForTime(ctx context.Context, topic string, partition int32, t time.Time) (int64, error) {
	off, err := c.listOffset(ctx, topic, partition, max(t.UnixMilli(), 0)) // Below 0 are Kafka's special values.
	if err != nil || off >= 0 {
		return off, err
	}
	return c.listOffset(ctx, topic, partition, timestampEnd)
}

// listOffset asks for one offset a request: kafka-go loses the error of one among several.
func (c *Client) listOffset(ctx context.Context, topic string, partition int32, timestamp int64) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.RequestTimeout)
	defer cancel()
	msg, err := c.transport.RoundTrip(ctx, c.addr, &listoffsets.Request{
		ReplicaID:      -1,
		IsolationLevel: readCommitted,
		Topics: []listoffsets.RequestTopic{{Topic: topic, Partitions: []listoffsets.RequestPartition{{
			Partition: partition, CurrentLeaderEpoch: -1, Timestamp: timestamp}}}},
	})
	if err != nil {
		return 0, c.fail(opListOffsets, topic, partition, err)
	}
	res := msg.(*listoffsets.Response)
	if len(res.Topics) != 1 || len(res.Topics[0].Partitions) != 1 {
		return 0, c.fail(opListOffsets, topic, partition, fmt.Errorf("%w: answer without the partition", errCorrupt))
	}
	p := res.Topics[0].Partitions[0]
	if p.ErrorCode != 0 {
		return 0, c.fail(opListOffsets, topic, partition, kafka.Error(p.ErrorCode))
	}
	return p.Offset, nil
}
