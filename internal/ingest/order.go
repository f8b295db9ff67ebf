package ingest

import (
	"cmp"
	"math/bits"
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

// nth gives what would be at place k were the list sorted, and leaves it in some other order. (Hoare, "Find", 1961.)
func nth(list []int64, k int) int64 {
	lo, hi := 0, len(list)-1
	for rounds := 4 * bits.Len(uint(len(list))); lo < hi; rounds-- {
		if rounds == 0 { // a list made to be slow
			slices.Sort(list[lo : hi+1])
			break
		}
		// The median of three keeps lists that are nearly in order, as times are, from being slow.
		a, m, z := list[lo], list[lo+(hi-lo)/2], list[hi]
		pivot := max(min(a, m), min(max(a, m), z))
		i, j := lo, hi
		for i <= j {
			for list[i] < pivot {
				i++
			}
			for list[j] > pivot {
				j--
			}
			if i <= j {
				list[i], list[j] = list[j], list[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case k <= j:
			hi = j
		case k >= i:
			lo = i
		default:
			return list[k]
		}
	}
	return list[k]
}
