package clickhouse

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

const (
	lockLease = 2 * time.Minute        // by the database's clock; a migrator that died holds others up for so long
	lockPoll  = 100 * time.Millisecond // between looks at a lock that somebody has
)

// lock is a turn at changing the schema. A turn is taken as epochs are: by inserting its number under a token that only one
// inserter's row survives. It ends when it is given back or its lease runs out.
type lock struct {
	db    *DB
	term  uint64
	owner string
}

// takeLock waits for a turn until ctx ends.
func takeLock(ctx context.Context, db *DB) (*lock, error) {
	l := &lock{db: db, owner: rand.Text()}
	for {
		term, _, busy, err := l.state(ctx)
		if err != nil {
			return nil, err
		}
		if !busy {
			if err := l.put(ctx, term+1, 1); err != nil {
				return nil, err
			}
			now, owner, held, err := l.state(ctx)
			if err != nil {
				return nil, err
			}
			if now == term+1 && owner == l.owner && held {
				l.term = now
				return l, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, fail("wait for the schema lock", ctx.Err())
		case <-time.After(lockPoll):
		}
	}
}

// check is made before each change: a holder that was stopped for longer than its lease must not go on.
func (l *lock) check(ctx context.Context) error {
	term, owner, held, err := l.state(ctx)
	if err != nil {
		return err
	}
	if term != l.term || owner != l.owner || !held {
		return &Error{Op: "check the schema lock", Reason: ReasonServer, Err: fmt.Errorf("turn %d ran out and somebody has turn %d", l.term, term)}
	}
	return nil
}

func (l *lock) release(ctx context.Context) error { return l.put(ctx, l.term, 0) }

func (l *lock) put(ctx context.Context, term uint64, held uint8) error {
	token := fmt.Sprintf("lock/%d/%d", term, held)
	return l.db.insertSelect(ctx, "write the schema lock", token, queryText("lock_take.sql"), ch.Named("term", term), ch.Named("owner", l.owner),
		ch.Named("held", held), ch.Named("seconds", uint32(lockLease.Seconds())))
}

func (l *lock) state(ctx context.Context) (term uint64, owner string, held bool, err error) {
	err = l.db.query(ctx, "read the schema lock", queryText("lock_state.sql"), func(r driver.Rows) error { return r.Scan(&term, &owner, &held) })
	return term, owner, held, err
}
