package clickhouse

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

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
	events, err := eventsBlock(tick, o.Events)
	if err != nil {
		return err
	}
	warnings, err := warningsBlock(tick, o.Warnings)
	if err != nil {
		return err
	}
	blocks := []*block{findingsBlock(tick, o.Transitions), events, warnings}
	if len(o.Checkpoint) > 0 {
		blocks = append(blocks, checkpointBlock(tick, o.Checkpoint))
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, b := range blocks {
		group.Go(func() error { return t.conclude(groupCtx, tick, b) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return t.conclude(ctx, tick, doneBlock(tick, o))
}

func (t *Timeline) conclude(ctx context.Context, tick detect.Tick, b *block) error {
	return t.db.insert(ctx, tickToken(tick.Number)+"/"+b.table, b)
}

func conclusion(table string, tick detect.Tick, rows int) *block {
	b := newBlock(table, rows)
	same(b, "tick", tick.Number)
	column(b, "position", func(i int) uint32 { return uint32(i) })
	return b
}

func findingsBlock(tick detect.Tick, rows []incident.Transition) *block {
	b := conclusion("findings", tick, len(rows))
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

func eventsBlock(tick detect.Tick, rows []incident.Event) (*block, error) {
	after := make([]string, len(rows))
	for i := range rows {
		j, err := json.Marshal(rows[i].After)
		if err != nil {
			return nil, fmt.Errorf("encode incident %s: %w", rows[i].Incident, err)
		}
		after[i] = string(j)
	}
	b := conclusion("incident_events", tick, len(rows))
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
	return b, nil
}

func warningsBlock(tick detect.Tick, rows []incident.Warning) (*block, error) {
	suspects := make([]string, len(rows))
	for i := range rows {
		j, err := json.Marshal(rows[i].Suspects)
		if err != nil {
			return nil, fmt.Errorf("encode suspects of %s: %w", rows[i].Resource, err)
		}
		suspects[i] = string(j)
	}
	b := conclusion("warnings", tick, len(rows))
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
	return b, nil
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
	return b
}
