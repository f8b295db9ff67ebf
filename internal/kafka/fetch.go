package kafka

import (
	"context"
	"errors"
	"time"

	"github.com/segmentio/kafka-go"
)

// Record is one record of a partition. Key, Value and Headers belong to the caller, but records of one batch share
// memory: who keeps one for long should copy it. A nil Value is a tombstone.
type Record struct {
	Offset  int64
	Time    time.Time // The record's timestamp in milliseconds: the producer's clock, or the broker's if the topic says so.
	Key     []byte
	Value   []byte
	Headers []Header
}

// Header is a record's header.
type Header struct {
	Key   string
	Value []byte
}

// FetchResult is what one fetch saw of a partition.
type FetchResult struct {
	Records       []Record
	NextOffset    int64 // Where to go on: behind everything examined. Aborted and compacted records leave gaps.
	HighWatermark int64 // The offset the next record of the partition will get.
	LastStable    int64 // Where read-committed reading ends for now: the first open transaction, or HighWatermark.
	LogStart      int64 // First offset the log still holds.

	chunks []*[]byte // What keys, values and headers point into.
}

// Release gives the memory of the records' keys, values and headers to later fetches; none of them may be used any
// more. Who keeps records does not call it.
func (r *FetchResult) Release() {
	for _, c := range r.chunks {
		putChunk(c)
	}
	r.chunks, r.Records = nil, nil
}

// CaughtUp tells whether there was nothing more to read.
func (r *FetchResult) CaughtUp() bool { return r.NextOffset >= r.LastStable }

const (
	defaultFetchBytes = 1 << 20
	maxFetchBytes     = 64 << 20
	maxFetchWait      = 10 * time.Second
)

// Fetch reads one partition from offset on. It returns committed records only, from offset on, in order. maxBytes bounds
// the answer as sent, except that one batch always comes whole; decompressed it is bounded too, by stopping early. With
// nothing to read it waits for up to maxWait. It does not retry. An offset outside of the log is an
// OffsetOutOfRangeError.
func (c *Client) Fetch(ctx context.Context, topic string, partition int32, offset int64, maxBytes int,
	maxWait time.Duration) (FetchResult, error) {
	if maxBytes <= 0 {
		maxBytes = defaultFetchBytes
	}
	req := &fetchRequest{
		topic:     topic,
		partition: partition,
		offset:    offset,
		maxBytes:  int32(min(maxBytes, maxFetchBytes)),
		maxWait:   min(max(maxWait, 0), maxFetchWait),
		clientID:  c.cfg.ClientID,
	}
	rctx, cancel := context.WithTimeout(ctx, req.maxWait+c.cfg.RequestTimeout)
	defer cancel()
	msg, err := c.transport.RoundTrip(rctx, c.addr, req)
	if err != nil {
		return FetchResult{}, c.fail(opFetch, topic, partition, err)
	}
	res := msg.(*fetchResponse)
	if errors.Is(res.err, kafka.OffsetOutOfRange) {
		return FetchResult{}, c.fail(opFetch, topic, partition, c.outOfRange(ctx, topic, partition, offset))
	}
	if res.err != nil {
		return FetchResult{}, c.fail(opFetch, topic, partition, res.err)
	}
	c.metrics.fetches.Inc()
	c.metrics.fetchedRecords.Add(float64(len(res.result.Records)))
	c.metrics.fetchedBytes.Add(float64(res.size))
	return res.result, nil
}

// outOfRange asks for the log's bounds, because brokers do not send them with the error.
func (c *Client) outOfRange(ctx context.Context, topic string, partition int32, offset int64) error {
	e := &OffsetOutOfRangeError{Offset: offset, Start: -1, End: -1}
	if r, err := c.ListOffsets(ctx, topic, partition); err == nil {
		e.Start, e.End = r[partition].Start, r[partition].End
	}
	return e
}
