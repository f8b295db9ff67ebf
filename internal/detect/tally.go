package detect

import "github.com/tocsin-project/tocsin/internal/signal"

// tally is what a cell counts, worked out once for the path and all slices that it belongs to.
type tally struct {
	outcomes [signal.NumOutcomes]uint64
	total    uint64
	timed    uint64
	slow     []uint64 // slower than each bound; it is used again for the next cell
	accounts signal.Sketch
	// Cells of one service mostly follow each other: what was last noted of it, within one step.
	service string
	seen    int64
}

// read takes in a cell. above has for each bound the first bucket of latencies that lies wholly above it.
func (x *tally) read(c *signal.Cell, above []int) {
	x.outcomes, x.total, x.accounts = c.Outcomes, c.Total(), c.Accounts
	x.timed, x.slow = 0, x.slow[:0]
	if len(above) == 0 {
		return
	}
	x.timed = c.Latency.Total()
	for _, from := range above {
		var n uint64
		for _, v := range c.Latency[min(from, len(c.Latency)):] {
			n += v
		}
		x.slow = append(x.slow, n)
	}
}

// aboveOf are the first buckets of latencies wholly above each bound.
func aboveOf(bounds []latencyBound) (out []int) {
	for _, b := range bounds {
		out = append(out, signal.LatencyBucket(b.Duration)+1)
	}
	return out
}
