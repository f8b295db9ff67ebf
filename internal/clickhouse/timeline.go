package clickhouse

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Timeline is one detector's view of the stored past. Like its interface says, one goroutine uses it.
type Timeline struct {
	db    *DB
	keys  *keyCache
	epoch uint64 // the last one led under

	// What was read last, so that only news is asked for. Marks only ever advance.
	last  *detect.Tick
	known map[detect.Partition]progressMark
	clock time.Time

	totals *known // of cumulative series, as stored; nil before it was asked for
}

var _ detect.Timeline = (*Timeline)(nil)

// NewTimeline makes a timeline over an open database, which stays the caller's.
func NewTimeline(db *DB) *Timeline { return &Timeline{db: db, keys: newKeyCache()} }

// leadTriesMax bounds the race for the lead: each lost try means that somebody else won one.
const leadTriesMax = 20

// Lead inserts the next epoch and reads back who got it. Of several that insert the same epoch the engine keeps one
// row, so exactly one of them finds its own claim; the others try the next epoch.
func (t *Timeline) Lead(ctx context.Context, owner string) (uint64, error) {
	t.last, t.known, t.clock, t.totals = nil, nil, time.Time{}, nil
	for range leadTriesMax {
		highest, err := t.highest(ctx)
		if err != nil {
			return 0, fmt.Errorf("take the lead: %w", err)
		}
		next, claim := highest+1, rand.Text()
		b := newBlock("epochs", 1)
		same(b, "epoch", next)
		same(b, "owner", owner)
		same(b, "claim", claim)
		if err := t.db.insert(ctx, fmt.Sprintf("epoch/%d", next), b); err != nil {
			return 0, fmt.Errorf("take the lead: %w", err)
		}
		var stored string
		err = t.db.query(ctx, "read epoch", queryText("lead_claim.sql"), func(r driver.Rows) error { return r.Scan(&highest, &stored) },
			ch.Named("epoch", next))
		if err != nil {
			return 0, fmt.Errorf("take the lead: %w", err)
		}
		if stored == claim && highest == next {
			t.epoch = next
			return next, nil
		}
	}
	return 0, fmt.Errorf("take the lead: %d times somebody else was faster: %w", leadTriesMax, detect.ErrSuperseded)
}

func (t *Timeline) highest(ctx context.Context) (epoch uint64, err error) {
	err = t.db.query(ctx, "read epoch", queryText("lead_highest.sql"), func(r driver.Rows) error { return r.Scan(&epoch) })
	return epoch, err
}

// Claim stores the tick unless one of its number is there, reads back which one is, and gathers that one's inputs.
func (t *Timeline) Claim(ctx context.Context, tick detect.Tick) (detect.Inputs, error) {
	op := fmt.Sprintf("claim tick %d", tick.Number)
	before, err := t.before(ctx, tick.Number)
	if err != nil {
		return detect.Inputs{}, fmt.Errorf("%s: %w", op, err)
	}
	if err := advances(before.Marks, tick.Marks); err != nil {
		return detect.Inputs{}, fmt.Errorf("%s: %w", op, err)
	}
	b, err := tickBlock(tick)
	if err != nil {
		return detect.Inputs{}, fmt.Errorf("%s: %w", op, err)
	}
	if err := t.db.insert(ctx, tickToken(tick.Number), b); err != nil {
		return detect.Inputs{}, fmt.Errorf("%s: %w", op, err)
	}
	stored, highest, err := t.read(ctx, tick.Number)
	if err != nil {
		return detect.Inputs{}, fmt.Errorf("%s: %w", op, err)
	}
	if max(highest, stored.Epoch) > tick.Epoch {
		return detect.Inputs{}, fmt.Errorf("%s under epoch %d: epoch %d: %w", op, tick.Epoch, max(highest, stored.Epoch), detect.ErrSuperseded)
	}
	in, err := t.gather(ctx, before, stored)
	if err != nil {
		return detect.Inputs{}, fmt.Errorf("%s: %w", op, err)
	}
	t.last = &stored
	return in, nil
}

func tickToken(n uint64) string { return fmt.Sprintf("tick/%d", n) }

// before returns the tick before n; before the first one there is an empty one.
func (t *Timeline) before(ctx context.Context, n uint64) (detect.Tick, error) {
	switch {
	case n == 0:
		return detect.Tick{}, fmt.Errorf("ticks are counted from 1")
	case n == 1:
		return detect.Tick{}, nil
	case t.last != nil && t.last.Number == n-1:
		return *t.last, nil
	}
	before, _, err := t.read(ctx, n-1)
	return before, err
}

func (t *Timeline) read(ctx context.Context, n uint64) (detect.Tick, uint64, error) {
	ticks, highest, err := t.readTicks(ctx, "tick.sql", n)
	if err != nil {
		return detect.Tick{}, 0, err
	}
	if len(ticks) == 0 {
		return detect.Tick{}, 0, &Error{Op: "read tick", Reason: ReasonData, Err: fmt.Errorf("tick %d is not stored", n)}
	}
	return ticks[0], highest, nil
}

func (t *Timeline) readTicks(ctx context.Context, query string, n uint64, more ...any) (ticks []detect.Tick, highest uint64, err error) {
	err = t.db.query(ctx, "read tick", render(query, nil), func(r driver.Rows) error {
		var tick detect.Tick
		var from, to, clock int64
		var streams, topics, partial []string
		var incarnations []uint32
		var partitions []int32
		var ends, watermarks []int64
		var commands, answers string
		if err := r.Scan(&highest, &tick.Number, &tick.Epoch, &from, &to, &clock, &streams, &topics, &incarnations, &partitions, &ends, &watermarks,
			&partial, &commands, &answers, &tick.Rules, &tick.Catalogue, &tick.Binary); err != nil {
			return err
		}
		tick.From, tick.To, tick.Clock = fromMillis(from), fromMillis(to), fromMillis(clock)
		for i := range streams {
			tick.Marks = append(tick.Marks, detect.Mark{
				Partition: detect.Partition{Topic: topics[i], Incarnation: incarnations[i], Partition: partitions[i], Stream: signal.Stream(streams[i])},
				End:       ends[i], Watermark: fromMillis(watermarks[i]),
			})
		}
		for _, s := range partial {
			tick.Partial = append(tick.Partial, signal.Stream(s))
		}
		if commands != "" {
			if err := json.Unmarshal([]byte(commands), &tick.Commands); err != nil {
				return fmt.Errorf("commands of tick %d: %w", tick.Number, err)
			}
		}
		if answers != "" {
			if err := json.Unmarshal([]byte(answers), &tick.Answers); err != nil {
				return fmt.Errorf("answers of tick %d: %w", tick.Number, err)
			}
		}
		ticks = append(ticks, tick)
		return nil
	}, append(more, ch.Named("tick", n))...)
	return ticks, highest, err
}

func tickBlock(t detect.Tick) (*block, error) {
	marks := make([][]any, len(t.Marks))
	for i, m := range t.Marks {
		marks[i] = []any{string(m.Stream), m.Topic, m.Incarnation, m.Partition.Partition, m.End, toDB(m.Watermark)}
	}
	partial := make([]string, len(t.Partial))
	for i, s := range t.Partial {
		partial[i] = string(s)
	}
	commands, err := listJSON("commands", t.Commands)
	if err != nil {
		return nil, err
	}
	answers, err := listJSON("answers", t.Answers)
	if err != nil {
		return nil, err
	}
	b := newBlock("ticks", 1)
	same(b, "tick", t.Number)
	same(b, "epoch", t.Epoch)
	same(b, "from", toDB(t.From))
	same(b, "to", toDB(t.To))
	same(b, "clock", toDB(t.Clock))
	same(b, "marks", marks)
	same(b, "partial", partial)
	same(b, "commands", commands)
	same(b, "answers", answers)
	same(b, "rules", t.Rules)
	same(b, "catalogue", t.Catalogue)
	same(b, "binary", t.Binary)
	return b, nil
}

func listJSON[T any](what string, list []T) (string, error) {
	if len(list) == 0 {
		return "", nil
	}
	out, err := json.Marshal(list)
	if err != nil {
		return "", fmt.Errorf("encode %s: %w", what, err)
	}
	return string(out), nil
}

// advances refuses a vector that goes back or leaves a partition out: its rows would be counted twice later.
func advances(before, now []detect.Mark) error {
	ends := make(map[detect.Partition]int64, len(now))
	for _, m := range now {
		ends[m.Partition] = m.End
	}
	for _, m := range before {
		switch end, ok := ends[m.Partition]; {
		case !ok:
			return &Error{Op: "check marks", Reason: ReasonData, Err: fmt.Errorf("the mark of %s/%d/%d is missing", m.Topic, m.Incarnation, m.Partition.Partition)}
		case end < m.End:
			return &Error{Op: "check marks", Reason: ReasonData, Err: fmt.Errorf("the mark of %s/%d/%d goes back from %d to %d",
				m.Topic, m.Incarnation, m.Partition.Partition, m.End, end)}
		}
	}
	return nil
}
