package nth

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Whatever the list, the place has what it would have in order, and the others are on their sides of it.
func TestOf(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for n := 1; n < 400; n++ {
		list := make([]int64, n)
		for i := range list {
			list[i] = int64(r.IntN(1+r.IntN(2*n))) - int64(n)/2
		}
		if n%3 == 0 {
			slices.Sort(list)
		}
		sorted := slices.Sorted(slices.Values(list))
		for _, k := range []int{0, n / 2, n * 99 / 100, n - 1} {
			l := slices.Clone(list)
			if got := Of(l, k); got != sorted[k] || slices.Max(l[:k+1]) != got || slices.Min(l[k:]) != got {
				t.Fatalf("place %d of %v: %d, and leaves %v", k, list, got, l)
			}
		}
	}
}
