package evidence

import "math/bits"

// firstShares is how many keys share the first half of a budget.
const firstShares = 128

// firstAreas is how many areas do.
const firstAreas = 8

// Share is the part of a budget that the key in the given place gets: half of it is for the first 128 places, a sixth for the
// next 256, a twelfth for the next 512 and so on, 1/(g+1)(g+2) for the g-th group. The parts of all places add up to 1,
// however many keys come, and a key's part never changes; the price of not knowing the number of keys is at most some
// tenths of a decade more than an equal division among ten thousand.
func Share(place int) float64 { return share(place, firstShares) }

// ShareOfArea is the same for areas, of which there are few: the first 8 share the first half.
func ShareOfArea(place int) float64 { return share(place, firstAreas) }

func share(place, first int) float64 {
	g := bits.Len(uint(place/first+1)) - 1
	return 1 / (float64((g+1)*(g+2)*first) * float64(uint(1)<<g))
}

// Shares gives places to keys. A place that was given back is given again, the lowest first: what counts for the budget is
// what the living keys have together. Its zero value is empty.
type Shares struct {
	used []uint64
	low  int // no word before this one has a free place
}

// Take gives the lowest free place.
func (s *Shares) Take() int {
	for ; s.low < len(s.used); s.low++ {
		if w := s.used[s.low]; w != ^uint64(0) {
			b := bits.TrailingZeros64(^w)
			s.used[s.low] |= 1 << b
			return s.low*64 + b
		}
	}
	s.used = append(s.used, 1)
	return s.low * 64
}

// Claim marks a place as taken, when keys are read back.
func (s *Shares) Claim(place int) {
	for place/64 >= len(s.used) {
		s.used = append(s.used, 0)
	}
	s.used[place/64] |= 1 << (place % 64)
}

// Return gives a place back.
func (s *Shares) Return(place int) {
	s.used[place/64] &^= 1 << (place % 64)
	s.low = min(s.low, place/64)
}
