package kafka

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sort"
	"time"

	"github.com/segmentio/kafka-go"
)

// ByKey as partition lets the hash of each record's key choose, as Java clients do, so that a key stays on its partition
// whoever writes it. Records without a key go to one random partition a call.
const ByKey int32 = -1

const (
	maxBatchRecords  = 10_000
	maxProduceBytes  = 900 << 10 // Below the broker's usual message.max.bytes of 1 MiB, before compression.
	recordOverhead   = 32        // Generous for lengths, deltas and headers' framing.
	produceTries     = 5
	produceBackoff   = 100 * time.Millisecond
	produceBackoffTo = 2 * time.Second
)

// Producer writes records, acknowledged by all in-sync replicas. It is safe for concurrent use and holds nothing of its
// own: nothing is buffered, and it need not be closed.
//
// It is not idempotent: a try whose answer was lost is sent again, and its records may then be in the log twice. What is
// written through it must bear that (keyed state, commands with ids), or be counted from the log.
type Producer struct{ c *Client }

// NewProducer is cheap.
func (c *Client) NewProducer() *Producer { return &Producer{c} }

// Produce returns when all records are stored. Records of one partition keep their order. On an error some may be
// stored; retryable errors have already been retried for a while. A zero Time becomes now.
func (p *Producer) Produce(ctx context.Context, topic string, partition int32, records ...Record) error {
	byPartition, err := p.spread(ctx, topic, partition, records)
	if err != nil {
		return err
	}
	order := make([]int32, 0, len(byPartition))
	for part := range byPartition {
		order = append(order, part)
	}
	sort.Slice(order, func(i, j int) bool { return order[i] < order[j] })
	for _, part := range order {
		for rest := byPartition[part]; len(rest) > 0; {
			n := batchLen(rest)
			if err := p.send(ctx, topic, part, rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
		}
	}
	return nil
}

func (p *Producer) spread(ctx context.Context, topic string, partition int32, records []Record) (map[int32][]Record, error) {
	if partition >= 0 {
		return map[int32][]Record{partition: records}, nil
	}
	ps, err := p.c.Partitions(ctx, topic)
	if err != nil {
		return nil, err
	}
	ids := make([]int, len(ps[topic]))
	for i, id := range ps[topic] {
		ids[i] = int(id)
	}
	if len(ids) == 0 {
		return nil, p.c.fail(opProduce, topic, -1, kafka.LeaderNotAvailable)
	}
	keyless := int32(ids[rand.IntN(len(ids))])
	var hash kafka.Murmur2Balancer
	out := map[int32][]Record{}
	for _, r := range records {
		part := keyless
		if r.Key != nil {
			part = int32(hash.Balance(kafka.Message{Key: r.Key}, ids...))
		}
		out[part] = append(out[part], r)
	}
	return out, nil
}

// batchLen is how many of the records go into one request; at least one.
func batchLen(records []Record) int {
	size := 0
	for i, r := range records {
		size += len(r.Key) + len(r.Value) + recordOverhead
		for _, h := range r.Headers {
			size += len(h.Key) + len(h.Value) + recordOverhead
		}
		if i > 0 && (size > maxProduceBytes || i == maxBatchRecords) {
			return i
		}
	}
	return len(records)
}

func (p *Producer) send(ctx context.Context, topic string, partition int32, records []Record) error {
	backoff := produceBackoff
	for try := 1; ; try++ {
		err := p.sendOnce(ctx, topic, partition, records)
		if err == nil {
			return nil
		}
		err = p.c.fail(opProduce, topic, partition, err)
		if !Retryable(err) || try == produceTries || ctx.Err() != nil {
			return err
		}
		pause(ctx, backoff/2+rand.N(backoff/2))
		backoff = min(2*backoff, produceBackoffTo)
	}
}

func (p *Producer) sendOnce(ctx context.Context, topic string, partition int32, records []Record) error {
	ctx, cancel := context.WithTimeout(ctx, p.c.cfg.RequestTimeout)
	defer cancel()
	now := time.Now()
	bytes := 0
	out := make([]kafka.Record, len(records))
	for i, r := range records {
		out[i] = kafka.Record{Time: r.Time, Key: kafka.NewBytes(r.Key), Value: kafka.NewBytes(r.Value)}
		if r.Time.IsZero() {
			out[i].Time = now
		}
		for _, h := range r.Headers {
			out[i].Headers = append(out[i].Headers, kafka.Header{Key: h.Key, Value: h.Value})
		}
		bytes += len(r.Key) + len(r.Value)
	}
	res, err := p.c.kc.Produce(ctx, &kafka.ProduceRequest{Topic: topic, Partition: int(partition),
		RequiredAcks: kafka.RequireAll, Compression: p.c.compress, Records: kafka.NewRecordReader(out...)})
	if err != nil {
		return err
	}
	if res.Error != nil {
		if len(res.RecordErrors) > 0 {
			return fmt.Errorf("%w: %w", res.Error, joinRecordErrors(res.RecordErrors))
		}
		return res.Error
	}
	p.c.metrics.producedRecords.Add(float64(len(records)))
	p.c.metrics.producedBytes.Add(float64(bytes))
	return nil
}

func joinRecordErrors(m map[int]error) error {
	errs := make([]error, 0, len(m))
	for i, err := range m {
		errs = append(errs, fmt.Errorf("record %d: %w", i, err))
	}
	return errors.Join(errs...)
}
