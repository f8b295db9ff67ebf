package kafka

import (
	"context"
	"fmt"
	"time"
)

// Bounds of what is kept of a compacted topic in memory.
const (
	maxCompactedBytes = 512 << 20
	compactedWait     = 500 * time.Millisecond
	compactedRetry    = 200 * time.Millisecond
)

// Snapshot is a compacted topic as it was at one moment.
type Snapshot struct {
	Values map[string][]byte // The last value of each key that was not deleted.
	Next   map[int32]int64   // Where reading on begins, by partition.
}

// Compacted reads and writes a compacted topic: a table of keys and their last values. It is safe for concurrent use;
// who wins among several writers of one key is for the writers to settle.
type Compacted struct {
	c        *Client
	producer *Producer
	topic    string
}

// NewCompacted is cheap. The topic should exist with cleanup.policy=compact: see EnsureTopics.
func (c *Client) NewCompacted(topic string) *Compacted {
	return &Compacted{c: c, producer: c.NewProducer(), topic: topic}
}

// Put stores the value of a key. An empty value is a value; see Delete.
func (t *Compacted) Put(ctx context.Context, key string, value []byte) error {
	if value == nil {
		value = []byte{}
	}
	return t.producer.Produce(ctx, t.topic, ByKey, Record{Key: []byte(key), Value: value})
}

// Delete writes a tombstone.
func (t *Compacted) Delete(ctx context.Context, key string) error {
	return t.producer.Produce(ctx, t.topic, ByKey, Record{Key: []byte(key)})
}

// Load reads the topic from its start to the end it has when Load is called.
func (t *Compacted) Load(ctx context.Context) (Snapshot, error) {
	s := Snapshot{Values: map[string][]byte{}, Next: map[int32]int64{}}
	ps, err := t.c.Partitions(ctx, t.topic)
	if err != nil {
		return s, err
	}
	ranges, err := t.c.ListOffsets(ctx, t.topic, ps[t.topic]...)
	if err != nil {
		return s, err
	}
	bytes := 0
	for _, p := range ps[t.topic] {
		next, err := t.c.ReadRange(ctx, t.topic, p, ranges[p].Start, ranges[p].End, func(r Record) error {
			key := string(r.Key)
			if old, ok := s.Values[key]; ok {
				bytes -= len(key) + len(old)
			}
			if r.Value == nil {
				delete(s.Values, key)
				return nil
			}
			if bytes += len(key) + len(r.Value); bytes > maxCompactedBytes {
				return fmt.Errorf("%w: compacted topic of more than %d MiB", errTooLarge, maxCompactedBytes>>20)
			}
			s.Values[key] = append(make([]byte, 0, len(r.Value)), r.Value...)
			return nil
		})
		if err != nil {
			return s, err
		}
		s.Next[p] = next
	}
	return s, nil
}

// LoadAll is Load without the positions.
func (c *Client) LoadAll(ctx context.Context, topic string) (map[string][]byte, error) {
	s, err := c.NewCompacted(topic).Load(ctx)
	return s.Values, err
}

// ReadRange gives fn each committed record of [start, end) in order and returns the position reached, at least end. It
// retries what can be retried until ctx ends, and goes on at the log's start where retention has taken the rest away.
func (c *Client) ReadRange(ctx context.Context, topic string, partition int32, start, end int64,
	fn func(Record) error) (int64, error) {
	for pos := start; ; {
		if pos >= end {
			return pos, nil
		}
		res, err := c.Fetch(ctx, topic, partition, pos, 0, compactedWait)
		if err != nil {
			if from, ok := skippedTo(err, pos); ok {
				pos = from
				continue
			}
			if !Retryable(err) || ctx.Err() != nil {
				return pos, err
			}
			pause(ctx, compactedRetry)
			continue
		}
		for _, r := range res.Records {
			if r.Offset >= end {
				return end, nil
			}
			if err := fn(r); err != nil {
				return pos, c.fail(opFetch, topic, partition, err)
			}
		}
		pos = res.NextOffset
		if err := ctx.Err(); err != nil {
			return pos, c.fail(opFetch, topic, partition, err)
		}
	}
}
