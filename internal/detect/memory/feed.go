package memory

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Add feeds one event; requests are counted into their cell. The event is copied.
func (t *Timeline) Add(e signal.Event) {
	switch e := e.(type) {
	case *signal.Request:
		t.past.count(e)
	case *signal.Gauge:
		t.AddGauges([]signal.Gauge{*e})
	case *signal.Ticket:
		t.AddTickets([]signal.Ticket{*e})
	case *signal.Change:
		t.AddChanges([]signal.Change{*e})
	case *signal.Alert:
		t.AddAlerts([]signal.Alert{*e})
	}
}

func (p *past) count(r *signal.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := cellKey{signal.BucketOf(r.Time), signal.Key{Path: r.Path, Attributes: r.Attributes}}
	c := p.open[k]
	if c == nil {
		c = &signal.Cell{Bucket: k.bucket, Key: k.key}
		p.open[k] = c
	}
	c.Count(r)
}

// AddCells feeds cells. Like all rows they become visible with the next Progress, whatever their time.
func (t *Timeline) AddCells(cells []signal.Cell) {
	p := t.past
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range cells {
		k := cellKey{signal.BucketOf(cells[i].Bucket), cells[i].Key}
		c := p.open[k]
		if c == nil {
			c = &signal.Cell{Bucket: k.bucket, Key: k.key}
			p.open[k] = c
		}
		c.Merge(&cells[i])
	}
}

// AddGauges feeds measurements.
func (t *Timeline) AddGauges(fed []signal.Gauge) {
	t.past.add(func(r *rows) {
		for _, g := range fed {
			g.Time = stored(g.Time)
			r.gauges = append(r.gauges, g)
		}
	})
}

// AddTickets feeds tickets; of one id only the first counts.
func (t *Timeline) AddTickets(fed []signal.Ticket) {
	t.past.add(func(r *rows) {
		for _, e := range fed {
			e.Time, e.Tags = stored(e.Time), slices.Clone(e.Tags)
			r.tickets = append(r.tickets, e)
		}
	})
}

// AddChanges feeds changes; of one id and phase only the first counts.
func (t *Timeline) AddChanges(fed []signal.Change) {
	t.past.add(func(r *rows) {
		for _, e := range fed {
			e.Time = stored(e.Time)
			r.changes = append(r.changes, e)
		}
	})
}

// AddAlerts feeds alerts of other systems.
func (t *Timeline) AddAlerts(fed []signal.Alert) {
	t.past.add(func(r *rows) {
		for _, e := range fed {
			e.Time, e.StartsAt, e.EndsAt = stored(e.Time), stored(e.StartsAt), stored(e.EndsAt)
			r.alerts = append(r.alerts, e)
		}
	})
}

func (p *past) add(f func(*rows)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.rows)
}

// stored is a time as a database keeps it: to the millisecond, so that a backtest sees what the live detector saw.
func stored(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// SetProgress raises the watermark of every stream and the ingest clock; neither goes back.
func (t *Timeline) SetProgress(watermark, clock time.Time) {
	for _, s := range signal.Streams {
		t.SetWatermark(s, watermark)
	}
	p := t.past
	p.mu.Lock()
	defer p.mu.Unlock()
	if clock = stored(clock); clock.After(p.clock) {
		p.clock = clock
	}
}

// SetWatermark raises the watermark of one stream.
func (t *Timeline) SetWatermark(s signal.Stream, watermark time.Time) {
	p := t.past
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(signal.Streams, s); i >= 0 && stored(watermark).After(p.watermarks[i]) {
		p.watermarks[i] = stored(watermark)
	}
}

// seal turns what was counted into rows, so that a tick's marks say which of them it sees.
func (p *past) seal() {
	for _, c := range p.open {
		p.rows.cells = append(p.rows.cells, *c)
	}
	clear(p.open)
}

// end is the offset after the last row of stream i.
func (p *past) end(i int) int64 { return p.base[i] + int64(p.rows.len(i)) }

func (r *rows) len(i int) int {
	return [streams]int{len(r.cells), len(r.gauges), len(r.tickets), len(r.changes), len(r.alerts)}[i]
}

// take moves the rows below the tick's marks into its inputs.
func (p *past) take(tick detect.Tick) (*detect.Inputs, error) {
	upTo := p.base
	for _, m := range tick.Marks {
		i := int(m.Partition.Partition)
		if i < 0 || i >= streams || m.Partition != partition(i, signal.Streams[i]) || m.End < p.base[i] || m.End > p.end(i) {
			return nil, fmt.Errorf("mark %+v is none that Progress gave", m)
		}
		upTo[i] = m.End
	}
	in := &detect.Inputs{Tick: tick}
	in.Cells = merge(cut(&p.rows.cells, &p.base[0], upTo[0]))
	in.Gauges = cut(&p.rows.gauges, &p.base[1], upTo[1])
	in.Tickets = cut(&p.rows.tickets, &p.base[2], upTo[2])
	in.Changes = cut(&p.rows.changes, &p.base[3], upTo[3])
	in.Alerts = cut(&p.rows.alerts, &p.base[4], upTo[4])

	// The earliest of several in one tick is its first sight, whichever was fed first.
	slices.SortStableFunc(in.Tickets, func(a, b signal.Ticket) int {
		if c := a.Time.Compare(b.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Status, b.Status)
	})
	in.Tickets = firstSight(in.Tickets, p.tickets, func(e *signal.Ticket) string { return e.ID })
	slices.SortStableFunc(in.Changes, func(a, b signal.Change) int { return a.Time.Compare(b.Time) })
	in.Changes = firstSight(in.Changes, p.changes, func(e *signal.Change) changeKey { return changeKey{e.ID, e.Phase} })
	Order(in)
	return in, nil
}

// cut takes the rows in front of offset end off the list.
func cut[T any](from *[]T, base *int64, end int64) []T {
	n := int(end - *base)
	if n == 0 {
		return nil
	}
	out := slices.Clone((*from)[:n])
	*from = slices.Delete(*from, 0, n)
	*base = end
	return out
}

func firstSight[T any, K comparable](rows []T, seen map[K]bool, key func(*T) K) []T {
	return slices.DeleteFunc(rows, func(r T) bool {
		k := key(&r)
		was := seen[k]
		seen[k] = true
		return was
	})
}

// merge sums cells of the same key and bucket, which came with different progress.
func merge(cells []signal.Cell) []signal.Cell {
	at := make(map[cellKey]int, len(cells))
	out := cells[:0]
	for _, c := range cells {
		k := cellKey{c.Bucket, c.Key}
		if i, ok := at[k]; ok {
			out[i].Merge(&c)
			continue
		}
		at[k] = len(out)
		out = append(out, c)
	}
	return out
}
