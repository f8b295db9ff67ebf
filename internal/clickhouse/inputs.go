package clickhouse

import (
	"context"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/errgroup"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/detect/memory"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// ofTick is a row with the tick that saw it first.
type ofTick[T any] struct {
	tick uint64
	row  T
}

type cellRow struct {
	id   uint64
	cell signal.Cell
}

// inputs reads the tick tables of the given streams for a run of ticks, each tick's in the fixed order.
func (t *Timeline) inputs(ctx context.Context, tables []stream, from, to uint64) (map[uint64]*detect.Inputs, error) {
	var (
		cells   []ofTick[cellRow]
		gauges  []ofTick[signal.Gauge]
		tickets []ofTick[signal.Ticket]
		changes []ofTick[signal.Change]
		alerts  []ofTick[signal.Alert]
	)
	group, groupCtx := errgroup.WithContext(ctx)
	for _, table := range tables {
		group.Go(func() (err error) {
			switch table.Name {
			case signal.Requests:
				cells, err = t.cells(groupCtx, from, to)
			case signal.Gauges:
				gauges, err = readRows(groupCtx, t.db, "inputs_gauges.sql", from, to, scanGauge)
			case signal.Tickets:
				tickets, err = readRows(groupCtx, t.db, "inputs_tickets.sql", from, to, scanTicket)
			case signal.Changes:
				changes, err = readRows(groupCtx, t.db, "inputs_changes.sql", from, to, scanChange)
			case signal.Alerts:
				alerts, err = readRows(groupCtx, t.db, "inputs_alerts.sql", from, to, scanAlert)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	ids := make([]uint64, len(cells))
	for i := range cells {
		ids[i] = cells[i].row.id
	}
	words, err := t.keys.load(ctx, t.db, ids)
	if err != nil {
		return nil, err
	}
	all := map[uint64]*detect.Inputs{}
	of := func(tick uint64) *detect.Inputs {
		if all[tick] == nil {
			all[tick] = &detect.Inputs{}
		}
		return all[tick]
	}
	for _, c := range cells {
		c.row.cell.Key = words[c.row.id]
		of(c.tick).Cells = append(of(c.tick).Cells, c.row.cell)
	}
	for _, r := range gauges {
		of(r.tick).Gauges = append(of(r.tick).Gauges, r.row)
	}
	for _, r := range tickets {
		of(r.tick).Tickets = append(of(r.tick).Tickets, r.row)
	}
	for _, r := range changes {
		of(r.tick).Changes = append(of(r.tick).Changes, r.row)
	}
	for _, r := range alerts {
		of(r.tick).Alerts = append(of(r.tick).Alerts, r.row)
	}
	for _, in := range all {
		memory.Order(in)
		in.Cells = mergeCells(in.Cells)
	}
	return all, nil
}

// cells reads by far the most rows of a tick.
func (t *Timeline) cells(ctx context.Context, from, to uint64) (out []ofTick[cellRow], err error) {
	if t.db.cfg.Protocol == "native" {
		return readRows(ctx, t.db, "inputs_cells.sql", from, to, scanCell)
	}
	latency := make([]uint64, 0, len(signal.Latency{}))
	err = t.db.queryBinary(ctx, "read inputs", queryText("inputs_cells.sql"), func(r *binaryRows) error {
		out = append(out, ofTick[cellRow]{})
		row := &out[len(out)-1]
		c := &row.row.cell
		row.tick = r.uint64()
		c.Bucket = fromMillis(r.int64())
		row.row.id = r.uint64()
		for _, o := range [...]signal.Outcome{signal.Success, signal.Failure, signal.Rejected, signal.Throttled} {
			c.Outcomes[o] = r.uint64()
		}
		c.Retries = r.uint64()
		latency = r.uint64s(latency[:0])
		copy(c.Latency[:], latency)
		c.Accounts = r.uint64s(nil)
		hashes, traces, errs, who := r.uint64s(nil), r.texts(), r.texts(), r.texts()
		c.Estimated = r.uint8() != 0
		if r.err == nil {
			c.Samples = samplesOf(hashes, traces, errs, who)
		}
		return r.err
	}, ch.Named("from", from), ch.Named("to", to))
	return out, err
}

func samplesOf(hashes []uint64, traces, errs, who []string) (out []signal.Sample) {
	for i := range hashes {
		out = append(out, signal.Sample{Hash: hashes[i], TraceID: traces[i], Error: errs[i], Account: who[i]})
	}
	return out
}

func readRows[T any](ctx context.Context, db *DB, file string, from, to uint64, scan func(driver.Rows, *uint64, *T) error) (out []ofTick[T], err error) {
	err = db.query(ctx, "read inputs", queryText(file), func(r driver.Rows) error {
		var row ofTick[T]
		if err := scan(r, &row.tick, &row.row); err != nil {
			return err
		}
		out = append(out, row)
		return nil
	}, ch.Named("from", from), ch.Named("to", to))
	return out, err
}

func scanCell(r driver.Rows, tick *uint64, out *cellRow) error {
	var bucket int64
	var latency, accounts, hashes []uint64
	var traces, errs, who []string
	var estimated uint8
	c := &out.cell
	if err := r.Scan(tick, &bucket, &out.id, &c.Outcomes[signal.Success], &c.Outcomes[signal.Failure], &c.Outcomes[signal.Rejected],
		&c.Outcomes[signal.Throttled], &c.Retries, &latency, &accounts, &hashes, &traces, &errs, &who, &estimated); err != nil {
		return err
	}
	c.Bucket, c.Estimated = fromMillis(bucket), estimated != 0
	copy(c.Latency[:], latency)
	if len(accounts) > 0 {
		c.Accounts = accounts
	}
	c.Samples = samplesOf(hashes, traces, errs, who)
	return nil
}

func scanGauge(r driver.Rows, tick *uint64, g *signal.Gauge) error {
	var at int64
	var attributes map[string]string
	if err := r.Scan(tick, &at, &g.Resource, &g.Metric, &g.Value, &g.Limit, &g.Unit, &attributes); err != nil {
		return err
	}
	g.Time, g.Attributes = fromMillis(at), signal.NewAttributes(attributes)
	return nil
}

func scanTicket(r driver.Rows, tick *uint64, t *signal.Ticket) error {
	var at int64
	if err := r.Scan(tick, &at, &t.ID, &t.Subject, &t.Text, &t.Account, &t.Area, &t.Service, &t.Language, &t.Source, &t.Tags, &t.Severity,
		&t.URL, &t.Status); err != nil {
		return err
	}
	if t.Time = fromMillis(at); len(t.Tags) == 0 {
		t.Tags = nil
	}
	return nil
}

func scanChange(r driver.Rows, tick *uint64, c *signal.Change) error {
	var at int64
	var kind, phase string
	var attributes map[string]string
	if err := r.Scan(tick, &at, &c.ID, &kind, &phase, &c.Target, &c.Title, &c.Actor, &c.URL, &c.Dose, &attributes); err != nil {
		return err
	}
	c.Time, c.Kind, c.Phase, c.Attributes = fromMillis(at), signal.ChangeKind(kind), signal.Phase(phase), signal.NewAttributes(attributes)
	return nil
}

func scanAlert(r driver.Rows, tick *uint64, a *signal.Alert) error {
	var at, starts, ends int64
	var labels, annotations map[string]string
	if err := r.Scan(tick, &at, &a.Fingerprint, &a.Status, &labels, &annotations, &starts, &ends, &a.GeneratorURL, &a.Receiver); err != nil {
		return err
	}
	a.Time, a.StartsAt, a.EndsAt = fromMillis(at), fromMillis(starts), fromMillis(ends)
	a.Labels, a.Annotations = signal.NewAttributes(labels), signal.NewAttributes(annotations)
	return nil
}
