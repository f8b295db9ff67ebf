package memory

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Order puts a tick's inputs into the fixed order that every timeline gives them in: by time, then key, then everything
// else that tells rows apart, so that the order says nothing about how they were stored.
func Order(in *detect.Inputs) {
	in.Cells = orderCells(in.Cells)
	slices.SortFunc(in.Gauges, func(a, b signal.Gauge) int {
		return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Metric, b.Metric),
			cmp.Compare(a.Attributes, b.Attributes), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Limit, b.Limit), strings.Compare(a.Unit, b.Unit))
	})
	slices.SortFunc(in.Tickets, func(a, b signal.Ticket) int {
		return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.ID, b.ID))
	})
	slices.SortFunc(in.Changes, func(a, b signal.Change) int {
		return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.ID, b.ID), cmp.Compare(a.Phase, b.Phase))
	})
	slices.SortFunc(in.Alerts, func(a, b signal.Alert) int {
		return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.Fingerprint, b.Fingerprint), strings.Compare(a.Status, b.Status),
			cmp.Compare(a.Labels, b.Labels), cmp.Compare(a.Annotations, b.Annotations), a.StartsAt.Compare(b.StartsAt), a.EndsAt.Compare(b.EndsAt),
			strings.Compare(a.GeneratorURL, b.GeneratorURL), strings.Compare(a.Receiver, b.Receiver))
	})
}

// orderCells sorts places, not cells: a cell is hundreds of bytes.
func orderCells(cells []signal.Cell) []signal.Cell {
	byTime := func(a, b *signal.Cell) int {
		if c := a.Bucket.Compare(b.Bucket); c != 0 {
			return c
		}
		return a.Key.Compare(b.Key)
	}
	places, sorted := make([]int32, len(cells)), true
	for i := range cells {
		places[i] = int32(i) //nolint:gosec // no tick has that many
		sorted = sorted && (i == 0 || byTime(&cells[i-1], &cells[i]) <= 0)
	}
	if sorted {
		return cells
	}
	slices.SortFunc(places, func(a, b int32) int { return byTime(&cells[a], &cells[b]) })
	out := make([]signal.Cell, len(cells))
	for i, p := range places {
		out[i] = cells[p]
	}
	return out
}
