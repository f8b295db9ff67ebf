package clickhouse

import (
	"context"
	"fmt"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"golang.org/x/sync/errgroup"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// gather copies the rows between the two ticks' vectors into the tick tables and reads them back. It may be repeated, by
// whomever: the copies carry the tick's token.
func (t *Timeline) gather(ctx context.Context, before, tick detect.Tick) (detect.Inputs, error) {
	news := newRows(before, tick)
	if err := t.store(ctx, tick, news); err != nil {
		return detect.Inputs{}, err
	}
	if len(news) == 0 {
		return detect.Inputs{Tick: tick}, nil
	}
	tables := make([]stream, len(news))
	for i, n := range news {
		tables[i] = n.stream
	}
	byTick, err := t.inputs(ctx, tables, tick.Number, tick.Number)
	if err != nil {
		return detect.Inputs{}, err
	}
	in := detect.Inputs{Tick: tick}
	if found := byTick[tick.Number]; found != nil {
		in = *found
		in.Tick = tick
	}
	return in, nil
}

// store copies each stream's new rows; streams do not wait for each other.
func (t *Timeline) store(ctx context.Context, tick detect.Tick, news []streamSpans) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, n := range news {
		if n.Name == signal.Requests {
			group.Go(func() error { return t.countTotals(ctx, tick, n.Ranges) })
		}
		group.Go(func() error {
			return t.db.insertSelect(ctx, "gather "+n.TickTable, fmt.Sprintf("%s/%s", tickToken(tick.Number), n.TickTable), render(n.Claim, n.Ranges),
				ch.Named("tick", tick.Number), ch.Named("to", toDB(tick.To).UnixMilli()))
		})
	}
	return group.Wait()
}

// newRows lists the parts of each stream that the tick sees first; streams without news are left out.
func newRows(before, tick detect.Tick) (news []streamSpans) {
	ends := make(map[detect.Partition]int64, len(before.Marks))
	for _, m := range before.Marks {
		ends[m.Partition] = m.End
	}
	for _, st := range streams {
		s := streamSpans{stream: st}
		for _, m := range tick.Marks {
			if m.Stream == st.Name && m.End > ends[m.Partition] {
				s.Ranges = append(s.Ranges, span{Topic: m.Topic, Incarnation: m.Incarnation, Partition: m.Partition.Partition,
					After: ends[m.Partition], Bounded: true, Until: m.End})
			}
		}
		if len(s.Ranges) > 0 {
			news = append(news, s)
		}
	}
	return news
}
