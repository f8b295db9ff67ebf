package ingest

import (
	"context"
	"errors"
	"time"
)

// Record is one Kafka record. Key and Value are only valid until Release, and until the next Fetch of the same partition.
type Record struct {
	Offset int64
	Time   time.Time
	Key    []byte
	Value  []byte
}

// Fetched is the answer to one fetch: committed records only, in order, none before the asked offset.
type Fetched struct {
	Records       []Record
	Next          int64 // the offset after everything examined, records or not
	HighWatermark int64 // the end that a reader of committed records may see
	LogStart      int64
	// Release, where it is not nil, gives the records' memory back; it is called once, or never.
	Release func()
}

// TopicPartition names a partition of the topic that carries this name today.
type TopicPartition struct {
	Topic     string
	Partition int32
}

var (
	// ErrOutOfRange: the asked offset is not in the log; Bounds tells what is.
	ErrOutOfRange = errors.New("offset out of range")
	// ErrFenced: the commit was not applied, the member is no longer of the group's current generation.
	ErrFenced = errors.New("fenced by a newer generation")
	// ErrUnknownOutcome: the commit may or may not have been applied, now or later.
	ErrUnknownOutcome = errors.New("outcome of the commit is unknown")
	// ErrPoisoned makes the group leave and join anew as another member.
	ErrPoisoned = errors.New("membership poisoned by an unknown outcome")
)

// Log reads partitions. It is safe for use by several partitions at once; internal/kafka implements it.
type Log interface {
	// Fetch waits up to maxWait for records from offset on.
	Fetch(ctx context.Context, tp TopicPartition, offset int64, maxBytes int, maxWait time.Duration) (Fetched, error)
	// Bounds returns the first offset and the one after the last.
	Bounds(ctx context.Context, tp TopicPartition) (start, end int64, err error)
	// OffsetAt returns the first offset whose record is not older than t, or the end.
	OffsetAt(ctx context.Context, tp TopicPartition, t time.Time) (int64, error)
}

// Generation is one assignment of partitions to this member. Commit is fenced by it.
type Generation interface {
	Assigned() []TopicPartition
	// Committed reads the group's offset and metadata; -1 where nothing was committed.
	Committed(ctx context.Context, tp TopicPartition) (offset int64, metadata string, err error)
	// Commit returns nil only after an explicit OK; else ErrFenced or ErrUnknownOutcome, wrapped.
	Commit(ctx context.Context, tp TopicPartition, offset int64, metadata string) error
}

// Group runs fn once for each generation; fn's context ends with the generation and Run waits for fn. If fn returns
// ErrPoisoned the member leaves and joins anew. Run returns when ctx ends, or on a permanent error.
type Group interface {
	Run(ctx context.Context, fn func(context.Context, Generation) error) error
}
