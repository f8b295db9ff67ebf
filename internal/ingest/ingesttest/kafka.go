package ingesttest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
)

// Kafka is a broker in memory: logs, and one consumer group with generations that fence commits.
type Kafka struct {
	mu      sync.Mutex
	logs    map[ingest.TopicPartition]*partitionLog
	commits map[ingest.TopicPartition]commit
	group   group
}

type partitionLog struct {
	start   int64
	records []ingest.Record
	wake    chan struct{} // closed and renewed when records come
}

func (l *partitionLog) end() int64 { return l.start + int64(len(l.records)) }

type commit struct {
	offset   int64
	metadata string
}

// NewKafka starts it.
func NewKafka() *Kafka {
	return &Kafka{logs: map[ingest.TopicPartition]*partitionLog{}, commits: map[ingest.TopicPartition]commit{}, group: group{members: map[int]*member{}}}
}

// CreateTopic makes empty partitions, or throws away what they held: a topic made anew.
func (k *Kafka) CreateTopic(topic string, partitions int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range partitions {
		tp := ingest.TopicPartition{Topic: topic, Partition: int32(i)}
		if old := k.logs[tp]; old != nil {
			close(old.wake)
		}
		k.logs[tp] = &partitionLog{wake: make(chan struct{})}
	}
}

// DeleteTopic makes requests about its partitions fail, until it is made anew.
func (k *Kafka) DeleteTopic(topic string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for tp, l := range k.logs {
		if tp.Topic == topic {
			close(l.wake)
			delete(k.logs, tp)
		}
	}
}

// Produce appends a record and returns its offset.
func (k *Kafka) Produce(topic string, partition int32, at time.Time, value []byte) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.logs[ingest.TopicPartition{Topic: topic, Partition: partition}]
	offset := l.end()
	l.records = append(l.records, ingest.Record{Offset: offset, Time: at, Value: value})
	close(l.wake)
	l.wake = make(chan struct{})
	return offset
}

// DeleteBefore is retention.
func (k *Kafka) DeleteBefore(topic string, partition int32, offset int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.logs[ingest.TopicPartition{Topic: topic, Partition: partition}]
	n := offset - l.start
	l.records, l.start = slices.Clone(l.records[n:]), offset
}

// SetCommit changes the group's commit as an operator's tool would.
func (k *Kafka) SetCommit(topic string, partition int32, offset int64, metadata string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.commits[ingest.TopicPartition{Topic: topic, Partition: partition}] = commit{offset, metadata}
}

// Commit reads the group's commit, -1 without one.
func (k *Kafka) Commit(topic string, partition int32) (offset int64, metadata string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c, ok := k.commits[ingest.TopicPartition{Topic: topic, Partition: partition}]
	if !ok {
		return -1, ""
	}
	return c.offset, c.metadata
}

// Log is the broker as a process sees it.
func (k *Kafka) Log(p *Process) ingest.Log { return &log{k, p} }

type log struct {
	k *Kafka
	p *Process
}

var _ ingest.Log = (*log)(nil)

func (l *log) Fetch(ctx context.Context, tp ingest.TopicPartition, offset int64, maxBytes int, maxWait time.Duration) (ingest.Fetched, error) {
	if err := l.p.step(); err != nil {
		return ingest.Fetched{}, err
	}
	deadline := time.Now().Add(maxWait)
	for {
		f, wake, err := l.k.read(tp, offset, maxBytes)
		if err != nil || len(f.Records) > 0 || !time.Now().Before(deadline) {
			if dead := l.p.step(); dead != nil {
				return ingest.Fetched{}, dead
			}
			return f, err
		}
		timer := time.NewTimer(time.Until(deadline))
		select {
		case <-wake:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ingest.Fetched{}, ctx.Err()
		}
		timer.Stop()
	}
}

func (k *Kafka) read(tp ingest.TopicPartition, offset int64, maxBytes int) (ingest.Fetched, chan struct{}, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.logs[tp]
	if l == nil {
		return ingest.Fetched{}, nil, fmt.Errorf("fetch %v: no such partition", tp)
	}
	if offset < l.start || offset > l.end() {
		return ingest.Fetched{}, nil, fmt.Errorf("fetch %v at %d: %w", tp, offset, ingest.ErrOutOfRange)
	}
	f := ingest.Fetched{Next: offset, HighWatermark: l.end(), LogStart: l.start}
	size := 0
	for _, r := range l.records[offset-l.start:] {
		if size += len(r.Value) + 64; size > maxBytes && len(f.Records) > 0 {
			break
		}
		f.Records = append(f.Records, r)
		f.Next = r.Offset + 1
	}
	return f, l.wake, nil
}

func (l *log) Bounds(_ context.Context, tp ingest.TopicPartition) (start, end int64, err error) {
	if err := l.p.step(); err != nil {
		return 0, 0, err
	}
	l.k.mu.Lock()
	defer l.k.mu.Unlock()
	pl := l.k.logs[tp]
	if pl == nil {
		return 0, 0, fmt.Errorf("bounds of %v: no such partition", tp)
	}
	return pl.start, pl.end(), nil
}

func (l *log) OffsetAt(_ context.Context, tp ingest.TopicPartition, t time.Time) (int64, error) {
	if err := l.p.step(); err != nil {
		return 0, err
	}
	l.k.mu.Lock()
	defer l.k.mu.Unlock()
	pl := l.k.logs[tp]
	for _, r := range pl.records {
		if !r.Time.Before(t) {
			return r.Offset, nil
		}
	}
	return pl.end(), nil
}
