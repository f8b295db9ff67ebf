// Package nth finds quantiles without sorting. It is for lists that are the caller's to reorder.
package nth

import (
	"cmp"
	"math/bits"
	"slices"
)

// Of gives what would be at place k were the list sorted, and leaves it in another order: nothing before k is greater than
// it, nothing behind it is less. (Hoare, "Find", 1961.)
func Of[T cmp.Ordered](list []T, k int) T {
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
