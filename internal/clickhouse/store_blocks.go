package clickhouse

import (
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// batchBlock makes the batch's one block: its rows, then its marker.
func batchBlock(b *ingest.Batch) *block {
	var out *block
	switch b.Stream {
	case signal.Requests:
		cells := withPoints(b)
		out = baseBlock(b, len(cells))
		cellColumns(out, cells)
		pointColumns(out, b)
	case signal.Gauges:
		out = baseBlock(b, len(b.Gauges))
		gaugeColumns(out, b.Gauges)
	case signal.Tickets:
		out = baseBlock(b, len(b.Tickets))
		ticketColumns(out, b.Tickets)
	case signal.Changes:
		out = baseBlock(b, len(b.Changes))
		changeColumns(out, b.Changes)
	case signal.Alerts:
		out = baseBlock(b, len(b.Alerts))
		alertColumns(out, b.Alerts)
	}
	return out
}

func baseBlock(batch *ingest.Batch, rows int) *block {
	b := newBlock(tableOf(batch.Stream), rows+1)
	r, m := batch.Range, batch.Marker
	same(b, "topic", r.Topic)
	same(b, "incarnation", r.Incarnation)
	same(b, "partition", r.Partition)
	same(b, "start_offset", r.Start)
	same(b, "end_offset", r.End)
	same(b, "batch_time", toDB(batch.Time))
	last(b, "marker", uint8(1))
	// The marker counts what this block holds, not what it was told: readers compare it with what they find.
	last(b, "marker_rows", uint64(rows))
	last(b, "marker_records", m.Records)
	last(b, "marker_events", m.Events)
	last(b, "marker_rejected", m.Rejected)
	last(b, "marker_late", m.Late)
	last(b, "marker_gap", m.Gap)
	lastTime(b, "marker_max_event_time", m.MaxEventTime)
	lastTime(b, "marker_watermark", m.Watermark)
	lastTime(b, "marker_record_time", m.RecordTime)
	last(b, "marker_revision", m.Revision)
	lastTime(b, "marker_clock", m.Clock)
	return b
}

func lastTime(b *block, name string, t time.Time) {
	column(b, name, func(i int) time.Time {
		if i == b.rows-1 {
			return toDB(t)
		}
		return epoch
	})
}

func dataTime[R any](b *block, name string, rows []R, value func(*R) time.Time) {
	column(b, name, func(i int) time.Time {
		if i < len(rows) {
			return toDB(value(&rows[i]))
		}
		return epoch
	})
}

func dataMap[R any](b *block, name string, rows []R, value func(*R) signal.Attributes) {
	column(b, name, func(i int) map[string]string {
		if i < len(rows) {
			return value(&rows[i]).Map()
		}
		return map[string]string{}
	})
}

func cellColumns(b *block, cells []ingest.Cell) {
	dataTime(b, "bucket", cells, func(c *ingest.Cell) time.Time { return time.Unix(c.Bucket(), 0) })
	data(b, "key", cells, func(c *ingest.Cell) uint64 { return c.Key().ID })
	for o, name := range outcomeColumns {
		data(b, name, cells, func(c *ingest.Cell) uint64 { return c.Outcome(signal.Outcome(o)) })
	}
	data(b, "retries", cells, (*ingest.Cell).Retries)
	data(b, "latency", cells, func(c *ingest.Cell) []uint64 {
		var l signal.Latency
		return slices.Clone(l[:c.Latency(&l)])
	})
	data(b, "accounts", cells, func(c *ingest.Cell) []uint64 { return hashes(c.Accounts()) })
	data(b, "samples", cells, func(c *ingest.Cell) [][]any {
		out := make([][]any, len(c.Samples()))
		for i, s := range c.Samples() {
			out[i] = []any{s.Hash, s.TraceID, s.Error, s.Account}
		}
		return out
	})
	data(b, "estimated", cells, func(c *ingest.Cell) uint8 { return flag(c.Estimated()) })
}

var outcomeColumns = [signal.NumOutcomes]string{signal.Success: "successes", signal.Failure: "failures", signal.Rejected: "rejected", signal.Throttled: "throttled"}

func gaugeColumns(b *block, rows []signal.Gauge) {
	dataTime(b, "time", rows, func(g *signal.Gauge) time.Time { return g.Time })
	data(b, "resource", rows, func(g *signal.Gauge) string { return g.Resource })
	data(b, "metric", rows, func(g *signal.Gauge) string { return g.Metric })
	data(b, "value", rows, func(g *signal.Gauge) float64 { return g.Value })
	data(b, "limit", rows, func(g *signal.Gauge) float64 { return g.Limit })
	data(b, "unit", rows, func(g *signal.Gauge) string { return g.Unit })
	dataMap(b, "attributes", rows, func(g *signal.Gauge) signal.Attributes { return g.Attributes })
}

func ticketColumns(b *block, rows []signal.Ticket) {
	dataTime(b, "time", rows, func(t *signal.Ticket) time.Time { return t.Time })
	data(b, "id", rows, func(t *signal.Ticket) string { return t.ID })
	data(b, "subject", rows, func(t *signal.Ticket) string { return t.Subject })
	data(b, "text", rows, func(t *signal.Ticket) string { return t.Text })
	data(b, "account", rows, func(t *signal.Ticket) string { return t.Account })
	data(b, "area", rows, func(t *signal.Ticket) string { return t.Area })
	data(b, "service", rows, func(t *signal.Ticket) string { return t.Service })
	data(b, "language", rows, func(t *signal.Ticket) string { return t.Language })
	data(b, "source", rows, func(t *signal.Ticket) string { return t.Source })
	data(b, "tags", rows, func(t *signal.Ticket) []string { return list(t.Tags) })
	data(b, "severity", rows, func(t *signal.Ticket) string { return t.Severity })
	data(b, "url", rows, func(t *signal.Ticket) string { return t.URL })
	data(b, "status", rows, func(t *signal.Ticket) string { return t.Status })
}

func changeColumns(b *block, rows []signal.Change) {
	dataTime(b, "time", rows, func(c *signal.Change) time.Time { return c.Time })
	data(b, "id", rows, func(c *signal.Change) string { return c.ID })
	data(b, "kind", rows, func(c *signal.Change) string { return string(c.Kind) })
	data(b, "phase", rows, func(c *signal.Change) string { return string(c.Phase) })
	data(b, "target", rows, func(c *signal.Change) string { return c.Target })
	data(b, "title", rows, func(c *signal.Change) string { return c.Title })
	data(b, "actor", rows, func(c *signal.Change) string { return c.Actor })
	data(b, "url", rows, func(c *signal.Change) string { return c.URL })
	data(b, "dose", rows, func(c *signal.Change) float64 { return c.Dose })
	dataMap(b, "attributes", rows, func(c *signal.Change) signal.Attributes { return c.Attributes })
}

func alertColumns(b *block, rows []signal.Alert) {
	dataTime(b, "time", rows, func(a *signal.Alert) time.Time { return a.Time })
	data(b, "fingerprint", rows, func(a *signal.Alert) string { return a.Fingerprint })
	data(b, "status", rows, func(a *signal.Alert) string { return a.Status })
	dataMap(b, "labels", rows, func(a *signal.Alert) signal.Attributes { return a.Labels })
	dataMap(b, "annotations", rows, func(a *signal.Alert) signal.Attributes { return a.Annotations })
	dataTime(b, "starts_at", rows, func(a *signal.Alert) time.Time { return a.StartsAt })
	dataTime(b, "ends_at", rows, func(a *signal.Alert) time.Time { return a.EndsAt })
	data(b, "generator_url", rows, func(a *signal.Alert) string { return a.GeneratorURL })
	data(b, "receiver", rows, func(a *signal.Alert) string { return a.Receiver })
}

func heartbeatsBlock(all []*ingest.Batch) *block {
	b := newBlock("heartbeats", len(all))
	column(b, "stream", func(i int) string { return string(all[i].Stream) })
	column(b, "topic", func(i int) string { return all[i].Range.Topic })
	column(b, "incarnation", func(i int) uint32 { return all[i].Range.Incarnation })
	column(b, "partition", func(i int) int32 { return all[i].Range.Partition })
	column(b, "end_offset", func(i int) int64 { return all[i].Range.End })
	column(b, "watermark", func(i int) time.Time { return toDB(all[i].Marker.Watermark) })
	column(b, "record_time", func(i int) time.Time { return toDB(all[i].Marker.RecordTime) })
	column(b, "revision", func(i int) string { return all[i].Marker.Revision })
	column(b, "clock", func(i int) time.Time { return toDB(all[i].Marker.Clock) })
	return b
}

// deadLetterBlocks cuts the batch's dead letters into blocks: payloads are the one thing of a batch that can be large.
func deadLetterBlocks(batch *ingest.Batch) (blocks []*block) {
	for _, c := range cut(len(batch.DeadLetters), func(i int) int { return len(batch.DeadLetters[i].Payload) }) {
		blocks = append(blocks, deadLetterBlock(batch, c.from, batch.DeadLetters[c.from:c.to]))
	}
	return blocks
}

func deadLetterBlock(batch *ingest.Batch, first int, rows []ingest.DeadLetter) *block {
	b := newBlock("dead_letters", len(rows))
	same(b, "stream", string(batch.Stream))
	same(b, "topic", batch.Range.Topic)
	same(b, "incarnation", batch.Range.Incarnation)
	same(b, "partition", batch.Range.Partition)
	same(b, "batch_time", toDB(batch.Time))
	column(b, "offset", func(i int) int64 { return rows[i].Offset })
	column(b, "position", func(i int) uint32 { return uint32(first + i) })
	column(b, "time", func(i int) time.Time { return toDB(rows[i].Time) })
	column(b, "reason", func(i int) string { return rows[i].Reason })
	column(b, "detail", func(i int) string { return rows[i].Detail })
	column(b, "payload", func(i int) string { return string(rows[i].Payload) })
	column(b, "size", func(i int) uint64 { return uint64(max(rows[i].Size, 0)) })
	return b
}
