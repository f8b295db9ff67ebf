package clickhouse

import (
	"context"
	"fmt"
	"slices"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Letters gives the offsets of the range that have dead letters, in order.
func (s *Store) Letters(ctx context.Context, stream signal.Stream, r ingest.Range) (offsets []int64, err error) {
	err = s.db.query(ctx, "look up dead letters", queryText("letters.sql"), func(rows driver.Rows) error {
		var offset int64
		if err := rows.Scan(&offset); err != nil {
			return err
		}
		offsets = append(offsets, offset)
		return nil
	}, ch.Named("stream", string(stream)), ch.Named("topic", r.Topic), ch.Named("incarnation", r.Incarnation), ch.Named("partition", r.Partition),
		ch.Named("start", r.Start), ch.Named("end", r.End))
	return offsets, err
}

// storeLetters stores the batch's dead letters. One table holds those of all streams, and one topic can feed several.
//
// Where a part of them may be stored already, under the token of a range that was forgotten, that part is left out. What
// is left has tokens of its own, because the forgotten range may have been the same one.
func (s *Store) storeLetters(ctx context.Context, b *ingest.Batch) error {
	kind := "dead"
	if b.Again && len(b.DeadLetters) > 0 {
		known, err := s.Letters(ctx, b.Stream, b.Range)
		if err != nil {
			return err
		}
		news := *b
		news.DeadLetters = slices.DeleteFunc(slices.Clone(b.DeadLetters), func(d ingest.DeadLetter) bool {
			_, found := slices.BinarySearch(known, d.Offset)
			return found
		})
		kind, b = "dead-again", &news
	}
	for i, block := range deadLetterBlocks(b) {
		if err := s.db.insert(ctx, fmt.Sprintf("%s/%s/%s/%d", token(b.Range), kind, b.Stream, i), block); err != nil {
			return err
		}
	}
	return nil
}
