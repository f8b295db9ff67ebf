package clickhouse

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// progressMark is how far one partition is known to be read without a gap.
type progressMark struct {
	end       int64
	begun     bool // false: no batch seen yet, the first one says where the partition begins
	watermark time.Time
}

// span is a part of one partition, as the templates want it: offsets of batches that end in (After, Until].
type span struct {
	Topic       string
	Incarnation uint32
	Partition   int32
	After       int64
	Bounded     bool
	Until       int64
}

// streamSpans is a stream's table with the parts of it to read.
type streamSpans struct {
	stream
	Ranges []span
}

type batchSeen struct {
	start, end       int64
	complete         bool
	watermark, clock time.Time
}

// Progress advances what is known by the batches stored since. Only a batch that joins what is known and whose rows are
// all there counts: behind a gap nothing does.
func (t *Timeline) Progress(ctx context.Context) (detect.Progress, error) {
	if err := t.recall(ctx); err != nil {
		return detect.Progress{}, fmt.Errorf("read progress: %w", err)
	}
	beats, err := t.partitions(ctx)
	if err != nil {
		return detect.Progress{}, fmt.Errorf("read progress: %w", err)
	}
	batches, err := t.batches(ctx)
	if err != nil {
		return detect.Progress{}, fmt.Errorf("read progress: %w", err)
	}
	for p, seen := range batches {
		slices.SortFunc(seen, func(a, b batchSeen) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) })
		t.known[p] = advance(t.known[p], seen)
		for _, b := range seen {
			t.clock = later(t.clock, b.clock)
		}
	}
	for p, beat := range beats {
		t.clock = later(t.clock, beat.clock)
		// A heartbeat speaks for what lies before its offset; it says nothing while batches before that are missing. A
		// partition that never had a batch has nothing that could be missing.
		if k := t.known[p]; !k.begun || beat.end <= k.end {
			k.watermark = later(k.watermark, beat.watermark)
			t.known[p] = k
		}
	}
	return detect.Progress{Marks: t.marks(), Clock: t.clock}, nil
}

func advance(k progressMark, seen []batchSeen) progressMark {
	for _, b := range seen {
		if !b.complete {
			break
		}
		if !k.begun {
			k.begun, k.end = true, b.start
		}
		if b.start > k.end {
			break
		}
		k.end = max(k.end, b.end)
		k.watermark = later(k.watermark, b.watermark)
	}
	return k
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// recall starts from the last claimed tick, when this process has not read anything yet.
func (t *Timeline) recall(ctx context.Context) error {
	if t.known != nil {
		return nil
	}
	newest, _, err := t.lastTicks(ctx)
	if err != nil {
		return err
	}
	known := map[detect.Partition]progressMark{}
	if newest > 0 {
		tick, _, err := t.read(ctx, newest)
		if err != nil {
			return err
		}
		for _, m := range tick.Marks {
			known[m.Partition] = progressMark{end: m.End, begun: m.End > 0, watermark: m.Watermark}
		}
		t.clock = later(t.clock, tick.Clock)
	}
	t.known = known
	return nil
}

// partitions makes every registered partition known and returns the newest heartbeats.
func (t *Timeline) partitions(ctx context.Context) (map[detect.Partition]batchSeen, error) {
	beats := map[detect.Partition]batchSeen{}
	err := t.db.query(ctx, "read partitions", queryText("partitions.sql"), func(r driver.Rows) error {
		var p detect.Partition
		var name string
		var b batchSeen
		var watermark, clock int64
		if err := r.Scan(&name, &p.Topic, &p.Incarnation, &p.Partition, &b.end, &watermark, &clock); err != nil {
			return err
		}
		p.Stream = signal.Stream(name)
		if _, ok := t.known[p]; !ok {
			t.known[p] = progressMark{}
		}
		if b.watermark, b.clock = fromMillis(watermark), fromMillis(clock); !b.clock.IsZero() {
			beats[p] = b
		}
		return nil
	})
	return beats, err
}

// batches reads the ledger beyond what is known.
func (t *Timeline) batches(ctx context.Context) (map[detect.Partition][]batchSeen, error) {
	var tables []streamSpans
	for _, st := range streams {
		s := streamSpans{stream: st}
		for p, k := range t.known {
			if p.Stream == st.Name {
				s.Ranges = append(s.Ranges, span{Topic: p.Topic, Incarnation: p.Incarnation, Partition: p.Partition, After: k.end})
			}
		}
		if len(s.Ranges) > 0 {
			tables = append(tables, s)
		}
	}
	out := map[detect.Partition][]batchSeen{}
	if len(tables) == 0 {
		return out, nil
	}
	err := t.db.query(ctx, "read ledger", render("progress.sql", tables), func(r driver.Rows) error {
		var p detect.Partition
		var name string
		var b batchSeen
		var watermark, clock int64
		if err := r.Scan(&name, &p.Topic, &p.Incarnation, &p.Partition, &b.start, &b.end, &b.complete, &watermark, &clock); err != nil {
			return err
		}
		p.Stream, b.watermark, b.clock = signal.Stream(name), fromMillis(watermark), fromMillis(clock)
		out[p] = append(out[p], b)
		return nil
	})
	return out, err
}

// marks lists what is known in order. Nothing can come any more in a life of a partition that was followed by another, so
// its watermark keeps up with that of its successor instead of holding the stream for ever.
func (t *Timeline) marks() []detect.Mark {
	newest := map[detect.Partition]detect.Partition{} // by partition without its life
	for p := range t.known {
		anyLife := p
		anyLife.Incarnation = 0
		if n, ok := newest[anyLife]; !ok || p.Incarnation > n.Incarnation {
			newest[anyLife] = p
		}
	}
	marks := make([]detect.Mark, 0, len(t.known))
	for p, k := range t.known {
		anyLife := p
		anyLife.Incarnation = 0
		marks = append(marks, detect.Mark{Partition: p, End: k.end, Watermark: later(k.watermark, t.known[newest[anyLife]].watermark)})
	}
	slices.SortFunc(marks, func(a, b detect.Mark) int {
		return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Incarnation, b.Incarnation), cmp.Compare(a.Partition.Partition, b.Partition.Partition),
			strings.Compare(string(a.Stream), string(b.Stream)))
	})
	return marks
}
