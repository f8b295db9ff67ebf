package clickhouse

import (
	"context"
	"fmt"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/tocsin-project/tocsin/internal/detect"
)

// Resume reads the newest checkpoint of a tick that is done, and every tick after it.
func (t *Timeline) Resume(ctx context.Context) (detect.Resume, error) {
	out, err := t.resume(ctx)
	if err != nil {
		return detect.Resume{}, fmt.Errorf("resume: %w", err)
	}
	return out, nil
}

func (t *Timeline) resume(ctx context.Context) (detect.Resume, error) {
	var out detect.Resume
	_, done, err := t.lastTicks(ctx)
	if err != nil {
		return out, err
	}
	err = t.db.query(ctx, "read checkpoint", queryText("checkpoint.sql"), func(r driver.Rows) error {
		var state string
		if err := r.Scan(&out.CheckpointTick, &state); err != nil {
			return err
		}
		out.Checkpoint = []byte(state)
		return nil
	}, ch.Named("tick", done))
	if err != nil {
		return out, err
	}
	ticks, _, err := t.readTicks(ctx, "ticks_after.sql", out.CheckpointTick)
	if err != nil || len(ticks) == 0 {
		return out, err
	}
	for i, tick := range ticks[1:] {
		if tick.Number != ticks[i].Number+1 {
			return out, &Error{Op: "read ticks", Reason: ReasonData, Err: fmt.Errorf("tick %d follows tick %d", tick.Number, ticks[i].Number)}
		}
	}
	newest := ticks[len(ticks)-1]
	if out.Unfinished = newest.Number > done; out.Unfinished {
		// Who claimed it may have died between the claim and its inputs.
		before, err := t.before(ctx, newest.Number)
		if err != nil {
			return out, err
		}
		if err := t.store(ctx, newest, newRows(before, newest)); err != nil {
			return out, err
		}
	}
	inputs, err := t.inputs(ctx, streams, ticks[0].Number, newest.Number)
	if err != nil {
		return out, err
	}
	for _, tick := range ticks {
		in := detect.Inputs{}
		if found := inputs[tick.Number]; found != nil {
			in = *found
		}
		in.Tick = tick
		out.Ticks = append(out.Ticks, in)
	}
	t.last = &newest
	return out, nil
}

func (t *Timeline) lastTicks(ctx context.Context) (claimed, done uint64, err error) {
	err = t.db.query(ctx, "read last tick", queryText("last_ticks.sql"), func(r driver.Rows) error { return r.Scan(&claimed, &done) })
	return claimed, done, err
}
