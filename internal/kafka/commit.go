package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/segmentio/kafka-go"
)

// MaxMetadataBytes is the longest commit metadata that brokers accept by default.
const MaxMetadataBytes = 4096

// notApplied are the answers with which a coordinator says for good that it did not take the commit. All others, such as
// a coordinator that is loading, say nothing about a copy of the request that is still on its way.
var notApplied = map[kafka.Error]bool{
	kafka.IllegalGeneration:          true,
	kafka.UnknownMemberId:            true,
	kafka.RebalanceInProgress:        true,
	kafka.FencedInstanceID:           true,
	kafka.OffsetMetadataTooLarge:     true,
	kafka.InvalidCommitOffsetSize:    true,
	kafka.InvalidGroupId:             true,
	kafka.GroupAuthorizationFailed:   true,
	kafka.TopicAuthorizationFailed:   true,
	kafka.UnknownTopicOrPartition:    true,
	kafka.ClusterAuthorizationFailed: true,
}

// Commit commits an offset with metadata under a generation. The outcome is one of three:
//
//   - nil: applied, said so explicitly;
//   - ErrFenced: not applied, and it never will be;
//   - ErrUnknownOutcome: it may be applied, or may still be later. The generation is poisoned: its context ends, further
//     commits of it are refused as fenced without being sent, and Group.Run leaves the group before it joins anew.
//
// Once sent, it waits for the answer until the commit time-out even if ctx ends, because giving up would turn a known
// outcome into an unknown one.
func (c *Client) Commit(ctx context.Context, gen Generation, topic string, partition int32, offset int64,
	metadata string) error {
	switch {
	case len(metadata) > MaxMetadataBytes:
		return c.unsent(topic, partition, fmt.Errorf("metadata of %d bytes, %d are allowed: %w", len(metadata),
			MaxMetadataBytes, errTooLarge))
	case gen.Poisoned():
		return c.unsent(topic, partition, ErrPoisoned)
	case ctx.Err() != nil:
		return c.unsent(topic, partition, context.Cause(ctx))
	}
	cctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.CommitTimeout)
	defer cancel()
	err := c.commit(cctx, gen, topic, partition, offset, metadata)
	var code kafka.Error
	switch {
	case err == nil:
		c.metrics.commits.WithLabelValues(outcomeOK).Inc()
		return nil
	case errors.As(err, &code) && notApplied[code]:
		c.metrics.commits.WithLabelValues(outcomeFenced).Inc()
		return c.fail(opCommit, topic, partition, fmt.Errorf("%w: %w", ErrFenced, err))
	default:
		gen.poison()
		c.metrics.commits.WithLabelValues(outcomeUnknown).Inc()
		return c.fail(opCommit, topic, partition, fmt.Errorf("%w: %w", ErrUnknownOutcome, err))
	}
}

// unsent is the outcome of a commit that never left this process.
func (c *Client) unsent(topic string, partition int32, err error) error {
	c.metrics.commits.WithLabelValues(outcomeFenced).Inc()
	reason, _ := classify(err)
	if errors.Is(err, ErrPoisoned) {
		reason = ReasonFenced
	}
	c.metrics.errors.WithLabelValues(opCommit, string(reason)).Inc()
	return &Error{Op: opCommit, Object: topic, Partition: partition, Reason: reason,
		Err: fmt.Errorf("%w: not sent: %w", ErrFenced, err)}
}

// commit returns a kafka.Error only where the coordinator answered for this partition.
func (c *Client) commit(ctx context.Context, gen Generation, topic string, partition int32, offset int64,
	metadata string) error {
	res, err := c.kc.OffsetCommit(ctx, &kafka.OffsetCommitRequest{
		GroupID:      gen.GroupID,
		GenerationID: int(gen.ID),
		MemberID:     gen.MemberID,
		Topics: map[string][]kafka.OffsetCommit{
			topic: {{Partition: int(partition), Offset: offset, Metadata: metadata}}},
	})
	if err != nil {
		return err
	}
	ps := res.Topics[topic]
	if len(ps) != 1 || ps[0].Partition != int(partition) {
		return fmt.Errorf("%w: answer without the partition", errCorrupt)
	}
	return ps[0].Error
}

// FetchCommitted reads a group's committed offset and its metadata: -1 and nothing if there is none.
func (c *Client) FetchCommitted(ctx context.Context, group, topic string, partition int32) (offset int64, metadata string,
	err error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.RequestTimeout)
	defer cancel()
	res, err := c.kc.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group,
		Topics: map[string][]int{topic: {int(partition)}}})
	if err == nil {
		err = res.Error
	}
	if errors.Is(err, kafka.GroupIdNotFound) { // kfake's answer for a group that never was; Kafka says -1 for each partition.
		return -1, "", nil
	}
	if err != nil {
		return 0, "", c.fail(opCommitted, topic, partition, err)
	}
	ps := res.Topics[topic]
	if len(ps) != 1 || ps[0].Partition != int(partition) {
		return 0, "", c.fail(opCommitted, topic, partition, fmt.Errorf("%w: answer without the partition", errCorrupt))
	}
	if ps[0].Error != nil {
		return 0, "", c.fail(opCommitted, topic, partition, ps[0].Error)
	}
	return ps[0].CommittedOffset, ps[0].Metadata, nil
}
