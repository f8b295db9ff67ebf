package clickhouse

import (
	"cmp"
	"context"
	"maps"
	"slices"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/tocsin-project/tocsin/internal/ingest/series"
)

// totalsKept bounds what a process remembers of cumulative series; past it, it asks the table anew.
const totalsKept = 200_000

const (
	// lastsKept bounds the starts of all series together, each of which takes 300 bytes.
	lastsKept = 3 * totalsKept
	// startKept is for how long after its last point a start is remembered, in milliseconds of event time: as long as the table keeps it.
	startKept = 3 * 24 * 60 * 60 * 1000
	// momentKept is the same for a start that was the moment of its only point, as some writers tell with each.
	momentKept = 60 * 60 * 1000
)

// known is what this process has read or stored of series_totals. Only the process that leads writes there, so what it
// remembers is what is stored for as long as it leads. Without that each tick would read the rows of all series of three days.
type known struct {
	series map[uint64][]series.Last // by series, one for each start
	lasts  int                      // all of these together
	seen   seenFirst
	asked  map[seenID]bool // whose absence is known, too; of series by id alone
}

func newKnown() *known {
	return &known{series: map[uint64][]series.Last{}, seen: seenFirst{}, asked: map[seenID]bool{}}
}

// full tells that it is time to forget, and to ask the table anew.
func (k *known) full() bool { return len(k.series)+len(k.seen) > totalsKept || k.lasts > lastsKept }

// found is what new points are of.
type found struct {
	series []uint64
	seen   seenFirst // first times among the new points
}

// news looks at what the new points are of. Where there are none it costs a look at one column of the ranges.
func (t *Timeline) news(ctx context.Context, ranges []span) (f found, err error) {
	f.seen = seenFirst{}
	ids := map[uint64]bool{}
	err = t.db.query(ctx, "read totals", render("totals_news.sql", ranges), func(r driver.Rows) error {
		var id, writer, family uint64
		var start, first int64
		if err := r.Scan(&id, &writer, &family, &start, &first); err != nil {
			return err
		}
		ids[id] = true
		f.seen.note(seenID{kindWriter, writer, start}, first)
		f.seen.note(seenID{kindWriter, writer, 0}, first)
		f.seen.note(seenID{kindFamily, family, 0}, first)
		return nil
	})
	f.series = slices.Sorted(maps.Keys(ids))
	return f, err
}

// note keeps the earliest time.
func (s seenFirst) note(id seenID, first int64) {
	if before, ok := s[id]; !ok || first < before {
		s[id] = first
	}
}

// learn reads what is stored of those that were not asked for before.
func (k *known) learn(ctx context.Context, db *DB, f found) error {
	missing := map[string]map[uint64]bool{kindSeries: {}, kindWriter: {}, kindFamily: {}}
	for _, id := range f.series {
		if !k.asked[seenID{kindSeries, id, 0}] {
			missing[kindSeries][id] = true
		}
	}
	for id := range f.seen {
		if !k.asked[id] {
			missing[id.kind][id.id] = true
		}
	}
	for _, kind := range []string{kindSeries, kindWriter, kindFamily} {
		for ids := range slices.Chunk(slices.Sorted(maps.Keys(missing[kind])), keysAskedMax) {
			if err := k.ask(ctx, db, kind, ids); err != nil {
				return err
			}
		}
	}
	for _, id := range f.series {
		k.asked[seenID{kindSeries, id, 0}] = true
	}
	for id := range f.seen {
		k.asked[id] = true
	}
	return nil
}

func (k *known) ask(ctx context.Context, db *DB, kind string, ids []uint64) error {
	lists := map[uint64][]series.Last{}
	err := db.query(ctx, "read known totals", queryText("totals_known.sql"), func(r driver.Rows) error {
		var l series.Last
		var latency []uint64
		if err := r.Scan(&l.Series, &l.Start, &l.Time, &l.Count, &latency); err != nil {
			return err
		}
		if kind != kindSeries {
			k.seen.note(seenID{kind, l.Series, l.Start}, l.Time)
			return nil
		}
		copy(l.Latencies[:], latency)
		lists[l.Series] = append(lists[l.Series], l)
		return nil
	}, ch.Named("kind", kind), ch.Named("ids", ids))
	if err != nil {
		return err
	}
	for id, list := range lists { // each by itself, so their order does not matter
		k.keep(id, list, len(k.series[id]))
	}
	return nil
}

// put replaces what is known of a series under a start.
func (k *known) put(l series.Last) {
	list := slices.DeleteFunc(k.series[l.Series], func(o series.Last) bool { return o.Start == l.Start })
	k.lasts -= len(k.series[l.Series]) - len(list)
	k.keep(l.Series, append(list, l), len(list))
}

// keep remembers a list whose length was another before: its starts in order of time, without those of which nothing can come any
// more. Some writers reckon their start anew with each point, so that without this it would grow with each.
func (k *known) keep(id uint64, list []series.Last, before int) {
	slices.SortFunc(list, func(a, b series.Last) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Start, b.Start), cmp.Compare(a.Count, b.Count))
	})
	newest := list[len(list)-1].Time
	list = slices.DeleteFunc(list, func(o series.Last) bool {
		return o.Time < newest-startKept || o.Start >= o.Time && o.Time < newest-momentKept
	})
	k.lasts += len(list) - before
	k.series[id] = list
}

// merged is when writers and families of new points were seen first, be it now.
func (k *known) merged(f found) seenAll {
	all := seenAll{first: seenFirst{}}
	for id, first := range f.seen {
		all.first[id] = first
		if before, ok := k.seen[id]; ok {
			all.first.note(id, before)
		}
		all.order = append(all.order, id)
	}
	slices.SortFunc(all.order, func(a, b seenID) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id), cmp.Compare(a.start, b.start))
	})
	return all
}

// note remembers what has been stored.
func (k *known) note(g gains) {
	for _, l := range g.lasts {
		k.put(l)
	}
	for id, first := range g.seen.first {
		k.seen.note(id, first)
	}
}
