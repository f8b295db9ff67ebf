package clickhouse

import (
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/ingest/series"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// withPoints are the batch's cells, and a row of the same form for each point of a cumulative series.
func withPoints(b *ingest.Batch) []ingest.Cell {
	if len(b.Points) == 0 {
		return b.Cells
	}
	all := make([]ingest.Cell, 0, len(b.Cells)+len(b.Points))
	all = append(all, b.Cells...)
	for i := range b.Points {
		p := &b.Points[i]
		c := signal.Cell{Bucket: signal.BucketOf(p.Time), Key: signal.Key{Path: p.Path, Attributes: p.Attributes}}
		c.Count(&p.Request) // for its sample
		c.Outcomes = [signal.NumOutcomes]uint64{}
		c.Outcomes[p.Outcome], c.Latency, c.Accounts = p.Count, p.Latencies, nil
		all = append(all, ingest.NewCell(c))
	}
	return all
}

// pointColumns tells the points from the cells before them. Where there are none the columns' zeros say so.
func pointColumns(b *block, batch *ingest.Batch) {
	if len(batch.Points) == 0 {
		return
	}
	at := func(name string, value func(*series.Point) uint64) {
		column(b, name, func(i int) uint64 {
			if i -= len(batch.Cells); i >= 0 && i < len(batch.Points) {
				return value(&batch.Points[i])
			}
			return 0
		})
	}
	when := func(name string, value func(*series.Point) time.Time) {
		column(b, name, func(i int) time.Time {
			if i -= len(batch.Cells); i >= 0 && i < len(batch.Points) {
				return toDB(value(&batch.Points[i]))
			}
			return epoch
		})
	}
	at("series", func(p *series.Point) uint64 { return max(p.Series, 1) })
	at("series_writer", func(p *series.Point) uint64 { return p.Writer })
	at("series_family", func(p *series.Point) uint64 { return p.Family })
	when("series_start", func(p *series.Point) time.Time { return p.Start })
	when("series_time", func(p *series.Point) time.Time { return p.Time })
}
