package ingest

import (
	"context"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest/series"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Range is the part of one partition of one life of a topic that one batch covers: offsets [Start, End).
type Range struct {
	Topic       string
	Incarnation uint32
	Partition   int32
	Start, End  int64
}

// Marker is a batch's last row and the ledger's entry. All of it is a function of the records and of what the
// reservation names, but for Clock and Heartbeat rows (which cover no offsets).
type Marker struct {
	Rows         uint64    // rows of the batch's block without the marker itself
	Records      uint64    // Kafka records examined
	Events       uint64    // events counted
	Rejected     uint64    // records or events that went to the dead letters
	Late         uint64    // events older than the watermark when they came
	Gap          uint64    // offsets of the range that were deleted from the log before they were read
	MaxEventTime time.Time // largest event time, zero if none
	Watermark    time.Time // the partition's watermark after this batch
	RecordTime   time.Time // timestamp of the last record: with it a topic made anew is recognised
	Revision     string    // of the pipeline that decoded it
	Heartbeat    bool      // a caught-up partition's sign of life: Start == End
	Clock        time.Time // the ingest clock, for Heartbeat rows and as information on others
}

// DeadLetter is a record, or one event of it, that could not be counted. Payload is masked and cut.
type DeadLetter struct {
	Offset  int64
	Time    time.Time // the record's timestamp
	Reason  string    // from a closed set, also the metric label
	Detail  string    // what and where, for people
	Payload []byte
	Size    int // of the whole payload
}

// Batch is one insert: the rows of one range in one stream, with its marker. Rows are sorted, and equal for
// whoever decodes the range with the same revision.
type Batch struct {
	Range       Range
	Stream      signal.Stream
	Time        time.Time // the first record's timestamp: it chooses the storage partition
	Cells       []Cell
	Points      []series.Point // of cumulative series, which are counted where all partitions meet
	Gauges      []signal.Gauge
	Tickets     []signal.Ticket
	Changes     []signal.Change
	Alerts      []signal.Alert
	DeadLetters []DeadLetter
	Marker      Marker
	// Again says that dead letters of its records may be stored already, of a range that was forgotten before its block
	// was: those are left out.
	Again bool
}

// Position is where the ledger says that a partition goes on.
type Position struct {
	Incarnation uint32
	End         int64     // first offset not stored
	RecordTime  time.Time // timestamp of the record before End
	Watermark   time.Time
	Found       bool // false: nothing of this partition is stored
}

// Store is where batches go. It is safe for use by several partitions at once; the application closes it after the
// loop has ended. internal/clickhouse implements it.
type Store interface {
	// Insert stores the batch under the token of its range: once, whatever is retried, by whomever. It returns nil only
	// when all of it is stored. Dead letters and new keys are stored before the block that ends with the marker. When it has
	// returned, nothing of it reads the batch any more: its memory is used again.
	Insert(ctx context.Context, b *Batch) error
	// Stored tells whether the block of exactly this range is stored and complete.
	Stored(ctx context.Context, s signal.Stream, r Range) (bool, error)
	// Letters gives the offsets of the range that have dead letters, in order.
	Letters(ctx context.Context, s signal.Stream, r Range) ([]int64, error)
	// Position reads the ledger for one partition.
	Position(ctx context.Context, s signal.Stream, topic string, partition int32) (Position, error)
}
