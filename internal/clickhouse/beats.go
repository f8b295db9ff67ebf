package clickhouse

import (
	"context"

	"github.com/tocsin-project/tocsin/internal/ingest"
)

// beat is a heartbeat that waits to be stored.
type beat struct {
	batch *ingest.Batch
	done  chan error
}

// beat stores a heartbeat together with those that come while others are on their way: a hundred idle partitions would else be
// twenty inserts a second. What waits is bounded by the partitions, each of which waits for its own.
func (s *Store) beat(ctx context.Context, b *ingest.Batch) error {
	done := make(chan error, 1)
	s.mu.Lock()
	s.beats = append(s.beats, beat{b, done})
	if !s.beating {
		s.beating = true
		go s.sendBeats(context.WithoutCancel(ctx)) // it carries those of others, too; each request has its own time-out
	}
	s.mu.Unlock()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sendBeats stores all that wait, until nothing does.
func (s *Store) sendBeats(ctx context.Context) {
	for {
		s.mu.Lock()
		all := s.beats
		s.beats = nil
		s.beating = len(all) > 0
		s.mu.Unlock()
		if len(all) == 0 {
			return
		}
		batches := make([]*ingest.Batch, len(all))
		for i := range all {
			batches[i] = all[i].batch
		}
		// The newest heartbeat of a partition is all that counts: no token, the table replaces the older ones.
		err := s.db.insert(ctx, "", heartbeatsBlock(batches))
		for i := range all {
			all[i].done <- err
		}
	}
}
