package clickhouse

import (
	"context"
	"fmt"
	"time"

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

const (
	resumeEnded = time.Hour          // of event time: incidents that ended since then may still draw findings
	recallPast  = 7 * 24 * time.Hour // what the log is asked for without a checkpoint
)

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
	if err := t.ticksAfter(ctx, &out, done); err != nil {
		return out, err
	}
	return out, t.concluded(ctx, &out, out.CheckpointTick, done, time.Time{}, resumeEnded)
}

// Recall reads the ticks of the last window of event time.
func (t *Timeline) Recall(ctx context.Context, window time.Duration) (detect.Resume, error) {
	out, err := t.lastWindow(ctx, window)
	if err != nil {
		return detect.Resume{}, fmt.Errorf("recall: %w", err)
	}
	return out, nil
}

func (t *Timeline) lastWindow(ctx context.Context, window time.Duration) (detect.Resume, error) {
	var out detect.Resume
	claimed, done, err := t.lastTicks(ctx)
	if err != nil {
		return out, err
	}
	err = t.db.query(ctx, "read ticks", queryText("tick_before.sql"), func(r driver.Rows) error { return r.Scan(&out.CheckpointTick) },
		ch.Named("window", window.Milliseconds()))
	if err != nil {
		return out, err
	}
	out.CheckpointTick = min(out.CheckpointTick, max(claimed, 1)-1) // ticks that only carry commands end where the one before did
	if err := t.ticksAfter(ctx, &out, done); err != nil {
		return out, err
	}
	var since time.Time
	if n := len(out.Ticks); n > 0 {
		since = out.Ticks[n-1].Tick.To.Add(-recallPast)
	}
	return out, t.concluded(ctx, &out, 0, done, since, recallPast)
}

// ticksAfter reads every tick after the one of the checkpoint, with its inputs.
func (t *Timeline) ticksAfter(ctx context.Context, out *detect.Resume, done uint64) error {
	ticks, _, err := t.readTicks(ctx, "ticks_after.sql", out.CheckpointTick)
	if err != nil || len(ticks) == 0 {
		return err
	}
	for i, tick := range ticks[1:] {
		if tick.Number != ticks[i].Number+1 {
			return &Error{Op: "read ticks", Reason: ReasonData, Err: fmt.Errorf("tick %d follows tick %d", tick.Number, ticks[i].Number)}
		}
	}
	newest := ticks[len(ticks)-1]
	if out.Unfinished = newest.Number > done; out.Unfinished {
		// Who claimed it may have died between the claim and its inputs.
		before, err := t.before(ctx, newest.Number)
		if err != nil {
			return err
		}
		if err := t.store(ctx, newest, newRows(before, newest)); err != nil {
			return err
		}
	}
	inputs, err := t.inputs(ctx, streams, ticks[0].Number, newest.Number)
	if err != nil {
		return err
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
	return nil
}

// concluded reads what the log says of ticks that are done: findings of those after a tick and since a time, incidents that
// are open or ended within a span of the newest tick's end.
func (t *Timeline) concluded(ctx context.Context, out *detect.Resume, after, done uint64, since time.Time, ended time.Duration) error {
	err := t.db.query(ctx, "read findings", render("findings_newest.sql", nil), func(r driver.Rows) error {
		tr, err := scanTransition(r)
		out.Findings = append(out.Findings, tr)
		return err
	}, ch.Named("after", after), ch.Named("done", done), ch.Named("since", toDB(since).UnixMilli()))
	if err != nil {
		return err
	}
	log := NewIncidentLog(t.db)
	head, err := log.head(ctx)
	if err != nil || head.Tick == 0 {
		return err
	}
	out.Incidents, err = log.Open(ctx, head.To.Add(-ended))
	return err
}

func (t *Timeline) lastTicks(ctx context.Context) (claimed, done uint64, err error) {
	err = t.db.query(ctx, "read last tick", queryText("last_ticks.sql"), func(r driver.Rows) error { return r.Scan(&claimed, &done) })
	return claimed, done, err
}
