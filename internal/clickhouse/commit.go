package clickhouse

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"golang.org/x/sync/errgroup"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/incident"
)

// Commit stores what the tick concluded, then that it is done. Readers of whole ticks see nothing of it before that; a
// repetition, after whatever broke off where, completes it under the same tokens.
func (t *Timeline) Commit(ctx context.Context, tick detect.Tick, o detect.Outputs) error {
	if err := t.commit(ctx, tick, o); err != nil {
		return fmt.Errorf("commit tick %d: %w", tick.Number, err)
	}
	return nil
}

func (t *Timeline) commit(ctx context.Context, tick detect.Tick, o detect.Outputs) error {
	// A tick taken over carries the epoch of whoever claimed it; what counts is who commits it.
	highest, err := t.highest(ctx)
	if err != nil {
		return err
	}
	if mine := max(tick.Epoch, t.epoch); highest > mine {
		return fmt.Errorf("under epoch %d: epoch %d: %w", mine, highest, detect.ErrSuperseded)
	}
	blocks, err := conclusions(tick, o)
	if err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, b := range blocks {
		group.Go(func() error { return t.conclude(groupCtx, tick, b) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := t.conclude(ctx, tick, doneBlock(tick, o)); err != nil {
		return err
	}
	if len(o.Checkpoint) > 0 && tick.Number%checkpointsKept == 0 {
		t.thinOut(ctx, tick.Number)
	}
	return nil
}

// checkpointsKept is how many ticks lie between two checkpoints that stay: about an hour. A restart needs the newest, a replay of
// the past any that is not long before it; with 100,000 series one of them is 50 MB.
const checkpointsKept = 360

// thinOut deletes the others. Should that fail they are too many, nothing else, and the next time deletes them.
func (t *Timeline) thinOut(ctx context.Context, now uint64) {
	err := t.db.request(ctx, "thin out checkpoints", func(ctx context.Context) error {
		ctx = ch.Context(ctx, ch.WithSettings(ch.Settings{"lightweight_deletes_sync": 0}))
		return t.db.conn.Exec(ctx, queryText("checkpoints_thin.sql"), ch.Named("before", now-min(now, checkpointsKept)), ch.Named("every", uint64(checkpointsKept)))
	})
	if err != nil && ctx.Err() == nil {
		t.db.logger.Warn("old checkpoints stay until the next hour", "err", err)
	}
}

func (t *Timeline) conclude(ctx context.Context, tick detect.Tick, b *block) error {
	return t.db.insert(ctx, fmt.Sprintf("%s/%s/%d", tickToken(tick.Number), b.table, b.first), b)
}

// conclusions makes the blocks of a tick's outputs. Usually there is one a table, or none.
func conclusions(tick detect.Tick, o detect.Outputs) (blocks []*block, err error) {
	small := func(int) int { return 0 }
	for _, c := range cut(len(o.Transitions), small) {
		blocks = append(blocks, findingsBlock(tick, c, o.Transitions[c.from:c.to]))
	}
	after := make([]string, len(o.Events))
	for i, e := range o.Events {
		if after[i], err = encode(e.After); err != nil {
			return nil, fmt.Errorf("encode incident %s: %w", e.Incident, err)
		}
	}
	for _, c := range cut(len(o.Events), func(i int) int { return len(after[i]) }) {
		blocks = append(blocks, eventsBlock(tick, c, o.Events[c.from:c.to], after[c.from:c.to]))
	}
	suspects := make([]string, len(o.Warnings))
	for i, w := range o.Warnings {
		if suspects[i], err = encode(w.Suspects); err != nil {
			return nil, fmt.Errorf("encode suspects of %s: %w", w.Resource, err)
		}
	}
	for _, c := range cut(len(o.Warnings), func(i int) int { return len(suspects[i]) }) {
		blocks = append(blocks, warningsBlock(tick, c, o.Warnings[c.from:c.to], suspects[c.from:c.to]))
	}
	if len(o.Checkpoint) > 0 {
		blocks = append(blocks, checkpointBlock(tick, o.Checkpoint))
	}
	return blocks, nil
}

func encode(v any) (string, error) {
	j, err := json.Marshal(v)
	return string(j), err
}

func conclusion(table string, tick detect.Tick, c chunk) *block {
	b := newBlock(table, c.to-c.from)
	b.first = c.from
	same(b, "tick", tick.Number)
	column(b, "position", func(i int) uint32 { return uint32(c.from + i) })
	return b
}

func findingsBlock(tick detect.Tick, c chunk, rows []incident.Transition) *block {
	b := conclusion("findings", tick, c)
	of := func(i int) *incident.Finding { return &rows[i].Finding }
	column(b, "at", func(i int) time.Time { return toDB(rows[i].At) })
	column(b, "rule", func(i int) string { return of(i).Rule })
	column(b, "kind", func(i int) string { return of(i).Kind })
	column(b, "previous_state", func(i int) string { return rows[i].From.String() })
	column(b, "state", func(i int) string { return of(i).State.String() })
	column(b, "service", func(i int) string { return of(i).Key.Service })
	column(b, "operation", func(i int) string { return of(i).Key.Operation })
	column(b, "access", func(i int) string { return of(i).Key.Access })
	column(b, "resource", func(i int) string { return of(i).Key.Resource })
	column(b, "metric", func(i int) string { return of(i).Key.Metric })
	column(b, "area", func(i int) string { return of(i).Key.Area })
	column(b, "attributes", func(i int) map[string]string { return of(i).Key.Attributes.Map() })
	column(b, "active_at", func(i int) *time.Time { return nullable(of(i).ActiveAt) })
	column(b, "fired_at", func(i int) *time.Time { return nullable(of(i).FiredAt) })
	column(b, "ended_at", func(i int) *time.Time { return nullable(of(i).EndedAt) })
	column(b, "value", func(i int) float64 { return of(i).Value })
	column(b, "requests", func(i int) uint64 { return of(i).Requests })
	column(b, "failures", func(i int) uint64 { return of(i).Failures })
	column(b, "accounts_at_least", func(i int) uint64 { return of(i).Accounts.Estimate() })
	column(b, "accounts", func(i int) []uint64 { return hashes(of(i).Accounts) })
	column(b, "labels", func(i int) map[string]string { return texts(of(i).Labels) })
	column(b, "annotations", func(i int) map[string]string { return texts(of(i).Annotations) })
	column(b, "explain", func(i int) string { return of(i).Explain })
	column(b, "partial", func(i int) uint8 { return flag(of(i).Partial) })
	return b
}

func eventsBlock(tick detect.Tick, c chunk, rows []incident.Event, after []string) *block {
	b := conclusion("incident_events", tick, c)
	of := func(i int) *incident.Incident { return &rows[i].After }
	first := func(i int) (s incident.Suspect) {
		if len(of(i).Suspects) > 0 {
			s = of(i).Suspects[0]
		}
		return s
	}
	column(b, "incident", func(i int) string { return rows[i].Incident })
	column(b, "sequence", func(i int) uint64 { return rows[i].Sequence })
	column(b, "at", func(i int) time.Time { return toDB(rows[i].At) })
	column(b, "clock", func(i int) time.Time { return toDB(rows[i].Clock) })
	column(b, "type", func(i int) string { return string(rows[i].Type) })
	column(b, "by", func(i int) string { return rows[i].By })
	column(b, "reason", func(i int) string { return rows[i].Reason })
	column(b, "state", func(i int) string { return of(i).State.String() })
	column(b, "severity", func(i int) string { return of(i).Severity.String() })
	column(b, "title", func(i int) string { return of(i).Title })
	column(b, "page", func(i int) uint8 { return flag(of(i).Page) })
	column(b, "muted", func(i int) string { return of(i).Muted })
	column(b, "areas", func(i int) []string { return list(of(i).Areas) })
	column(b, "services", func(i int) []string { return list(of(i).Services) })
	column(b, "resources", func(i int) []string { return list(of(i).Resources) })
	column(b, "started_at", func(i int) *time.Time { return nullable(of(i).StartedAt) })
	column(b, "first_finding_at", func(i int) *time.Time { return nullable(of(i).FirstFindingAt) })
	column(b, "declared_at", func(i int) *time.Time { return nullable(of(i).DeclaredAt) })
	column(b, "acknowledged_at", func(i int) *time.Time { return nullable(of(i).AcknowledgedAt) })
	column(b, "acknowledged_by", func(i int) string { return of(i).AcknowledgedBy })
	column(b, "mitigated_at", func(i int) *time.Time { return nullable(of(i).MitigatedAt) })
	column(b, "resolved_at", func(i int) *time.Time { return nullable(of(i).ResolvedAt) })
	column(b, "merged_into", func(i int) string { return of(i).MergedInto })
	column(b, "impact_kind", func(i int) string { return string(of(i).Impact.Kind) })
	column(b, "requests", func(i int) uint64 { return of(i).Impact.Requests })
	column(b, "failures", func(i int) uint64 { return of(i).Impact.Failures })
	column(b, "peak_share", func(i int) float64 { return of(i).Impact.PeakShare })
	column(b, "peak_at", func(i int) *time.Time { return nullable(of(i).Impact.PeakAt) })
	column(b, "accounts_at_least", func(i int) uint64 { return of(i).Impact.AccountsAtLeast })
	column(b, "tickets", func(i int) uint64 { return uint64(max(of(i).Tickets, 0)) })
	column(b, "suspect_kind", func(i int) string { return string(first(i).Kind) })
	column(b, "suspect", func(i int) string { return first(i).ID })
	column(b, "suspect_score", func(i int) float64 { return first(i).Score })
	column(b, "labels", func(i int) map[string]string { return texts(of(i).Labels) })
	column(b, "after", func(i int) string { return after[i] })
	return b
}

func warningsBlock(tick detect.Tick, c chunk, rows []incident.Warning, suspects []string) *block {
	b := conclusion("warnings", tick, c)
	column(b, "at", func(i int) time.Time { return toDB(rows[i].At) })
	column(b, "resource", func(i int) string { return rows[i].Resource })
	column(b, "metric", func(i int) string { return rows[i].Metric })
	column(b, "value", func(i int) float64 { return rows[i].Value })
	column(b, "limit", func(i int) float64 { return rows[i].Limit })
	column(b, "exhausted_at", func(i int) *time.Time { return nullable(rows[i].ExhaustedAt) })
	column(b, "rule", func(i int) string { return rows[i].Rule })
	column(b, "guard", func(i int) string { return rows[i].Guard })
	column(b, "incident", func(i int) string { return rows[i].Incident })
	column(b, "suspects", func(i int) string { return suspects[i] })
	return b
}

func checkpointBlock(tick detect.Tick, state []byte) *block {
	b := newBlock("checkpoints", 1)
	same(b, "tick", tick.Number)
	same(b, "tick_to", toDB(tick.To))
	same(b, "size", uint64(len(state)))
	same(b, "state", string(state))
	return b
}

func doneBlock(tick detect.Tick, o detect.Outputs) *block {
	b := newBlock("ticks_done", 1)
	same(b, "tick", tick.Number)
	same(b, "to", toDB(tick.To))
	same(b, "clock", toDB(tick.Clock))
	same(b, "transitions", uint32(len(o.Transitions)))
	same(b, "events", uint32(len(o.Events)))
	same(b, "warnings", uint32(len(o.Warnings)))
	seen := uint64(max(o.Seen, 0))
	same(b, "inputs", &seen)
	return b
}
