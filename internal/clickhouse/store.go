package clickhouse

import (
	"context"
	"fmt"
	"sync"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Store is where the ingest loop's batches go.
type Store struct {
	db   *DB
	keys *keyCache

	mu         sync.Mutex
	partitions map[registered]bool // that topic_partitions has
	beats      []beat              // that wait for the ones on their way
	beating    bool
}

type registered struct {
	stream      signal.Stream
	topic       string
	incarnation uint32
	partition   int32
}

var _ ingest.Store = (*Store)(nil)

// NewStore makes a store over an open database, which stays the caller's.
func NewStore(db *DB) *Store {
	return &Store{db: db, keys: newKeyCache(), partitions: map[registered]bool{}}
}

// Insert stores the batch once, whoever repeats it. What the block refers to is stored before it, so that whoever
// sees the block sees that too; if the insert breaks off between them, the repetition completes it.
func (s *Store) Insert(ctx context.Context, b *ingest.Batch) error {
	op := fmt.Sprintf("store batch %s", token(b.Range))
	if tableOf(b.Stream) == "" {
		return &Error{Op: op, Reason: ReasonData, Err: fmt.Errorf("there is no stream %q", b.Stream)}
	}
	if err := s.register(ctx, b); err != nil {
		return fail(op, err)
	}
	if b.Marker.Heartbeat {
		return fail(op, s.beat(ctx, b))
	}
	if err := s.keys.store(ctx, s.db, withPoints(b)); err != nil {
		return fail(op, err)
	}
	if err := s.storeLetters(ctx, b); err != nil {
		return fail(op, err)
	}
	if b.Stream == signal.Requests && s.db.cfg.Protocol == "http" && len(b.Points) == 0 {
		return fail(op, s.db.insertCells(ctx, token(b.Range), b))
	}
	return fail(op, s.db.insert(ctx, token(b.Range), batchBlock(b)))
}

// token names a range: rows are a function of it, so whoever inserts it inserts the same.
func token(r ingest.Range) string {
	return fmt.Sprintf("%s/%d/%d/%d-%d", r.Topic, r.Incarnation, r.Partition, r.Start, r.End)
}

// register makes the partition known before its first batch, so that readers need not search for new ones.
func (s *Store) register(ctx context.Context, b *ingest.Batch) error {
	return s.known(ctx, registered{b.Stream, b.Range.Topic, b.Range.Incarnation, b.Range.Partition})
}

// Expect makes partitions known that have stored nothing yet, so that the detector waits for what they hold: else one that
// is read a moment later than the others would bring its past after that had been judged.
func (s *Store) Expect(ctx context.Context, stream signal.Stream, topic string, partitions []int32) error {
	for _, p := range partitions {
		if err := s.known(ctx, registered{stream, topic, 0, p}); err != nil {
			return fail("expect "+topic, err)
		}
	}
	return nil
}

func (s *Store) known(ctx context.Context, p registered) error {
	s.mu.Lock()
	known := s.partitions[p]
	s.mu.Unlock()
	if known {
		return nil
	}
	row := newBlock("topic_partitions", 1)
	same(row, "stream", string(p.stream))
	same(row, "topic", p.topic)
	same(row, "incarnation", p.incarnation)
	same(row, "partition", p.partition)
	if err := s.db.insert(ctx, "", row); err != nil {
		return err
	}
	s.mu.Lock()
	s.partitions[p] = true
	s.mu.Unlock()
	return nil
}

// Stored tells whether the block of exactly this range is there.
func (s *Store) Stored(ctx context.Context, stream signal.Stream, r ingest.Range) (stored bool, err error) {
	sql := render("stored.sql", map[string]string{"Table": tableOf(stream)})
	err = s.db.query(ctx, "look up batch", sql, func(rows driver.Rows) error { return rows.Scan(&stored) },
		ch.Named("topic", r.Topic), ch.Named("incarnation", r.Incarnation), ch.Named("partition", r.Partition),
		ch.Named("start", r.Start), ch.Named("end", r.End))
	return stored, err
}

// Position reads where the newest life of the partition goes on.
func (s *Store) Position(ctx context.Context, stream signal.Stream, topic string, partition int32) (p ingest.Position, err error) {
	sql := render("position.sql", map[string]string{"Table": tableOf(stream)})
	err = s.db.query(ctx, "read position", sql, func(rows driver.Rows) error {
		var recordTime, watermark int64
		if err := rows.Scan(&p.Incarnation, &p.End, &recordTime, &watermark); err != nil {
			return err
		}
		p.RecordTime, p.Watermark, p.Found = fromMillis(recordTime), fromMillis(watermark), true
		return nil
	}, ch.Named("stream", string(stream)), ch.Named("topic", topic), ch.Named("partition", partition))
	return p, err
}
