package clickhouse

import (
	"slices"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest/series"
)

// Some writers reckon their start anew with each point, others tell the moment of the point: what is remembered of such a series
// does not grow for as long as a process leads, and what a point may still be held against is there.
func TestStartsThatNeverRepeatAreForgotten(t *testing.T) {
	k := newKnown()
	const every = 10 * 60 * 1000
	const points = 30 * 24 * 6
	now := time.Now().UnixMilli()
	for i := range int64(points) {
		at := now + i*every
		k.note(gains{lasts: []series.Last{
			{Series: 1, Start: now - 1000 + i, Time: at, Count: uint64(i)},
			{Series: 2, Start: at, Time: at, Count: uint64(i)},
			{Series: 3, Start: now - 1000, Time: at, Count: uint64(i)},
			{Series: 4, Start: 0, Time: at, Count: uint64(i)},
		}})
	}
	all := 0
	for id, want := range map[uint64]int{1: startKept/every + 1, 2: momentKept/every + 1, 3: 1, 4: 1} {
		list := k.series[id]
		if all += len(list); len(list) != want || list[len(list)-1].Count != points-1 || !slices.IsSortedFunc(list, func(a, b series.Last) int { return int(a.Time - b.Time) }) {
			t.Errorf("series %d: %d starts, want %d up to the newest", id, len(list), want)
		}
	}
	if k.lasts != all {
		t.Errorf("%d starts are counted, %d are there", k.lasts, all)
	}
	if k.lasts = lastsKept + 1; !k.full() {
		t.Error("there is no bound on all of them together")
	}
}
