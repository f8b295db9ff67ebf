package series

import (
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// Point is what a cumulative series says at one time. It is an event like the request whose path, outcome and attributes
// it has, but Count is a total since Start, and Latencies are totals, too.
type Point struct {
	signal.Request

	// Series names the series: metric, resource, scope and attributes.
	Series uint64
	// Writer names what all series of one metric of one resource have in common: who writes one of them writes all that it
	// has, so that one which appears later began at zero.
	Writer uint64
	// Family names the metric in its pipeline.
	Family uint64
	// Start is since when the totals count; zero where the writer does not say.
	Start     time.Time
	Latencies signal.Latency
}

var _ signal.Event = (*Point)(nil)
