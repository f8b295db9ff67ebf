package decode

import (
	"maps"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/tocsin-project/tocsin/internal/ingest/series"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// seriesState is what of the metric that is being read makes its series, where they are cumulative.
type seriesState struct {
	cumulative bool
	start      uint64 // of the point, Unix nanoseconds
	from       string // resource and scope
}

// under begins a resource's scope.
func (s *seriesState) under(resource map[string]string, scope, version string, attributes map[string]string) {
	*s = seriesState{from: words(resource) + scope + "\x1e" + version + "\x1e" + words(attributes)}
}

// words is a set of pairs as one text, equal for equal sets.
func words(set map[string]string) string {
	var b []byte
	for _, name := range slices.Sorted(maps.Keys(set)) {
		b = append(append(append(append(b, name...), 0x1f), set[name]...), 0x1e)
	}
	return string(append(b, 0x1d))
}

// total hands on a cumulative point: how many requests there were since its series began.
func (m *metrics) total(metric string, r *signal.Request, point map[string]string, n uint64, latencies *signal.Latency) {
	family := m.p.Name + "\x1d" + metric + "\x1d"
	p := &series.Point{Request: *r, Family: xxhash.Sum64String(family), Writer: xxhash.Sum64String(family + m.series.from),
		Series: xxhash.Sum64String(family + m.series.from + words(point)), Latencies: *latencies}
	p.Count, p.Time = n, p.Time.Truncate(time.Millisecond) // which is what is stored
	if s := m.series.start; s != 0 && s <= 1<<63-1 {
		p.Start = time.Unix(0, int64(s)).UTC().Truncate(time.Millisecond)
	}
	m.emit(p)
}
