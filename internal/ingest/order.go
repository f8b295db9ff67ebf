package ingest

import (
	"cmp"
	"slices"
)

// cellOrder is what cells are sorted by, and where they are.
type cellOrder struct {
	bucket int64
	id     uint64
	at     int32
}

// sortCells sorts by bucket and key's ID, which is the store's order. Cells are large, so their numbers are sorted, and
// each cell is moved once.
func (b *batch) sortCells() {
	order := b.order[:0]
	for i := range b.cells {
		c := &b.cells[i]
		order = append(order, cellOrder{c.bucket, c.key.ID, int32(i)})
	}
	slices.SortFunc(order, func(x, y cellOrder) int {
		if x.bucket != y.bucket {
			return cmp.Compare(x.bucket, y.bucket)
		}
		return cmp.Compare(x.id, y.id)
	})
	b.order = order
	for i := range order { // along each cycle of the permutation
		if int(order[i].at) == i {
			continue
		}
		first, at := b.cells[i], i
		for int(order[at].at) != i {
			from := int(order[at].at)
			b.cells[at] = b.cells[from]
			order[at].at, at = int32(at), from
		}
		b.cells[at], order[at].at = first, int32(at)
	}
}
