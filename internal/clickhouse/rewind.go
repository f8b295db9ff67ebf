package clickhouse

import (
	"context"
	"fmt"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Rewind is a deliberate step back in one partition.
type Rewind struct {
	Stream    signal.Stream
	Topic     string
	Partition int32
	To        int64
	By        string
	Reason    string
	At        time.Time
}

// quietBefore is for how long nothing may have been heard of a partition that is rewound: a daemon that reads it would
// go on where it is, and take the rewind up at some later moment.
const quietBefore = 20 * time.Second

// Rewind makes the partition be read again from an offset on, as another reading with a number of its own. Nothing that
// was stored is touched. It refuses while somebody reads the partition.
func (s *Store) Rewind(ctx context.Context, r Rewind) error {
	op := fmt.Sprintf("rewind %s/%d to %d", r.Topic, r.Partition, r.To)
	pos, err := s.Position(ctx, r.Stream, r.Topic, r.Partition)
	if err != nil {
		return err
	}
	if !pos.Found || r.To >= pos.End {
		return &Error{Op: op, Reason: ReasonData, Err: fmt.Errorf("stored is up to %d: that is no step back", pos.End)}
	}
	var heard, clock, now int64
	err = s.db.query(ctx, "read position", render("rewind_state.sql", map[string]string{"Table": tableOf(r.Stream)}), func(rows driver.Rows) error {
		return rows.Scan(&heard, &clock, &now)
	}, ch.Named("stream", string(r.Stream)), ch.Named("topic", r.Topic), ch.Named("partition", r.Partition))
	if err != nil {
		return fail(op, err)
	}
	if ago := time.Duration(now-heard) * time.Millisecond; ago < quietBefore {
		return &Error{Op: op, Reason: ReasonData, Err: fmt.Errorf("somebody read the partition %s ago: stop every daemon, and wait for %s", ago.Round(time.Second), quietBefore)}
	}
	next := pos.Incarnation + 1
	row := newBlock("ingest_rewinds", 1)
	same(row, "stream", string(r.Stream))
	same(row, "topic", r.Topic)
	same(row, "partition", r.Partition)
	same(row, "incarnation", next)
	same(row, "from_offset", pos.End)
	same(row, "to_offset", r.To)
	same(row, "by", r.By)
	same(row, "reason", r.Reason)
	same(row, "at", r.At.UTC())
	if err := s.db.insert(ctx, fmt.Sprintf("rewind/%s/%s/%d/%d", r.Stream, r.Topic, r.Partition, next), row); err != nil {
		return fail(op, err)
	}
	// The heartbeat is the ledger's entry: whoever takes the partition over goes on behind it. Its watermark is the one
	// there is, so that nobody waits for a past that has been judged.
	return s.Insert(ctx, &ingest.Batch{Stream: r.Stream, Range: ingest.Range{Topic: r.Topic, Incarnation: next, Partition: r.Partition, Start: r.To, End: r.To},
		Marker: ingest.Marker{Heartbeat: true, Watermark: pos.Watermark, Clock: fromMillis(clock)}})
}
