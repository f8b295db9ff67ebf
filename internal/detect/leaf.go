package detect

import (
	"cmp"
	"slices"

	"github.com/tocsin-project/tocsin/internal/detect/localise"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	// maxLeaves of a path are told apart, the heaviest; a hundred already lose cases (research in localise's doc).
	maxLeaves = 200
	// leafMinutes is how long leaves are kept by minute: eight minutes before an onset and the minutes it took to notice.
	leafMinutes = 20
	otherLeaf   = signal.Attributes("")
)

// leaf is one full combination of attribute values of a path, by minute.
type leaf struct {
	attributes signal.Attributes
	minutes    []leafMinute // ascending; empty once it is forgotten
}

type leafMinute struct {
	minute          int64
	total, failures uint64
}

// addLeaf counts a cell; known is the leaf that the last cell of its key went to, and what it gives is that of this one.
func (s *series) addLeaf(bucket int64, c *signal.Cell, known *leaf) *leaf {
	if c.Key.Attributes == "" && len(s.leaves) == 0 {
		return nil // a path without attributes needs no scan
	}
	total, failures := c.Outcomes[signal.Success]+c.Outcomes[signal.Failure], c.Outcomes[signal.Failure]
	if total == 0 {
		return known
	}
	l := known
	if l == nil || len(l.minutes) == 0 || l.attributes != c.Key.Attributes {
		l = s.leaf(c.Key.Attributes)
	}
	minute := bucket * bucketSeconds / 60
	i := len(l.minutes) - 1
	if i < 0 || l.minutes[i].minute != minute {
		var found bool
		i, found = slices.BinarySearchFunc(l.minutes, minute, func(m leafMinute, k int64) int { return cmp.Compare(m.minute, k) })
		if !found {
			l.minutes = slices.Insert(l.minutes, i, leafMinute{minute: minute})
		}
	}
	l.minutes[i].total += total
	l.minutes[i].failures += failures
	return l
}

// leaf finds or makes a leaf. Past the limit rare combinations share one that no slice contains.
func (s *series) leaf(a signal.Attributes) *leaf {
	at := func(l *leaf, a signal.Attributes) int { return cmp.Compare(l.attributes, a) }
	i, found := slices.BinarySearchFunc(s.leaves, a, at)
	if !found && len(s.leaves) >= maxLeaves {
		s.leafOverflow = true
		a = otherLeaf
		i, found = slices.BinarySearchFunc(s.leaves, a, at)
	}
	if !found {
		s.leaves = slices.Insert(s.leaves, i, &leaf{attributes: a})
	}
	return s.leaves[i]
}

// trimLeaves forgets old minutes and leaves without any. While the path is in trouble since `hold` (a minute, 0 for none),
// what is needed of the time before is kept.
func (s *series) trimLeaves(minute, hold int64) {
	oldest := minute - leafMinutes
	if hold > 0 {
		oldest = min(oldest, hold-leafMinutes)
	}
	s.leaves = slices.DeleteFunc(s.leaves, func(l *leaf) bool {
		n := 0
		for n < len(l.minutes) && l.minutes[n].minute < oldest {
			n++
		}
		l.minutes = slices.Delete(l.minutes, 0, n)
		return len(l.minutes) == 0
	})
}

// scan gives the leaves in localise's terms: before the onset, and since.
func (s *series) scan(onset, now int64) (out []localise.Leaf) {
	for _, l := range s.leaves {
		x := localise.Leaf{Attributes: l.attributes}
		for _, m := range l.minutes {
			switch {
			case m.minute < onset:
				x.BeforeTotal += m.total
				x.BeforeFailures += m.failures
			case m.minute > onset && m.minute <= now && m.minute > now-60:
				x.Total += m.total
				x.Failures += m.failures
			}
		}
		out = append(out, x)
	}
	return out
}
