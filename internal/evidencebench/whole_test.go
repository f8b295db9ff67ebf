package evidencebench

import "testing"

// Three quiet days wake nobody, and what is a page by the same rules in the same world is one within minutes: a path of 30 requests a
// minute fails two of five.
func TestTheWholeDetectorIsQuietUntilSomethingBreaks(t *testing.T) {
	rules, err := WholeRules("1 per 7d")
	if err != nil {
		t.Fatal(err)
	}
	const from = 2*day + 20*hour
	w, err := RunWhole(Realistic, 1, 3, rules, Trouble{Path: busyPath(1), From: from, To: from + 30, Share: 0.4})
	if err != nil {
		t.Fatal(err)
	}
	if w.Pages != 1 || w.Paging[0].Minute < from || w.Paging[0].Minute > from+8 {
		t.Errorf("paged %+v, want once, within eight minutes of minute %d", w, int64(from))
	}
}

// busyPath is the first whose volume is near 30 a minute.
func busyPath(seed uint64) int {
	for i, p := range newWorld(Realistic, seed).paths {
		if p.volume > 30 && p.volume < 60 && p.rate < 0.01 {
			return i
		}
	}
	return -1
}
