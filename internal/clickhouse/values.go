package clickhouse

import (
	"maps"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// What ClickHouse's DateTime64 holds, a little inside its ends.
var (
	timeMin = time.Date(1901, 1, 1, 0, 0, 0, 0, time.UTC)
	timeMax = time.Date(2298, 12, 31, 0, 0, 0, 0, time.UTC)
	epoch   = time.Unix(0, 0).UTC()
)

// toDB makes a time storable: no time at all is 1970-01-01, which the columns' comments say.
func toDB(t time.Time) time.Time {
	switch {
	case t.IsZero():
		return epoch
	case t.Before(timeMin):
		return timeMin
	case t.After(timeMax):
		return timeMax
	}
	return t.UTC()
}

// fromMillis reads toUnixTimestamp64Milli; times travel as numbers because no time zone can get lost on the way.
func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// nullable stores no time as NULL, where analysts read the column.
func nullable(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = toDB(t)
	return &t
}

func fromNullableMillis(ms *int64) time.Time {
	if ms == nil {
		return time.Time{}
	}
	return time.UnixMilli(*ms).UTC()
}

func flag(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

func texts(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func hashes(s signal.Sketch) []uint64 {
	if s == nil {
		return []uint64{}
	}
	return s
}

// trim leaves out the empty buckets at the end: most cells have a dozen of 32.
func trim(l *signal.Latency) []uint64 {
	n := len(l)
	for n > 0 && l[n-1] == 0 {
		n--
	}
	return slices.Clone(l[:n])
}

func someOf(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return maps.Clone(m)
}
