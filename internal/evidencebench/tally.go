package evidencebench

import "slices"

// quietAfter is after how many minutes a service's next alarm is another one. Alarms of a service's paths and slices at
// one time are one: correlation makes one page of them.
const quietAfter = 60

// Tally counts pages, for each setting and each level of its threshold.
type Tally [][]int32

func (g *grid) tally() Tally {
	t := make(Tally, len(g.settings))
	for i := range t {
		t[i] = make([]int32, g.levels(i).n)
	}
	return t
}

// add puts the pages of another tally in.
func (t Tally) add(o Tally) {
	for i := range t {
		for j, v := range o[i] {
			t[i][j] += v
		}
	}
}

// sum turns differences between neighbouring levels into pages at each level.
func (t Tally) sum() {
	for i := range t {
		for j := len(t[i]) - 2; j >= 0; j-- {
			t[i][j] += t[i][j+1]
		}
	}
}

// recent holds the highest levels of one service under one setting in the last hour, falling from the front to the back.
type recent struct {
	level []int16
	at    []int32
}

// see takes the level of one minute and says which one the hour before had reached: a page begins at all levels between them.
func (r *recent) see(t int32, level int16) (before int16) {
	gone := 0
	for gone < len(r.at) && t-r.at[gone] > quietAfter {
		gone++
	}
	if gone > 0 {
		r.level, r.at = slices.Delete(r.level, 0, gone), slices.Delete(r.at, 0, gone)
	}
	before = none
	if len(r.level) > 0 {
		before = r.level[0]
	}
	n := len(r.level)
	for n > 0 && r.level[n-1] <= level {
		n--
	}
	r.level, r.at = append(r.level[:n], level), append(r.at[:n], t)
	return before
}

// count adds what one service reached in a minute to a tally of differences.
func (t Tally) count(rs []recent, minute int32, reached []int16) {
	for s, level := range reached {
		if level < 0 {
			continue
		}
		if before := rs[s].see(minute, level); before < level {
			t[s][level]++
			if before >= 0 {
				t[s][before]--
			}
		}
	}
}
