package clickhouse

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// insertCells stores a batch of requests: what batchBlock would make of it, in less time and memory.
func (d *DB) insertCells(ctx context.Context, token string, b *ingest.Batch) error {
	return d.insertNative(ctx, token, tableOf(b.Stream), len(b.Cells)+1, nativeCells(b))
}

const (
	kindTime = "DateTime64(3, 'UTC')"
	kindWord = "LowCardinality(String)"
)

// nativeCells are the columns of a batch, the marker last.
func nativeCells(batch *ingest.Batch) []nativeColumn {
	r, m, cells := batch.Range, batch.Marker, batch.Cells
	n := len(cells)
	number := func(name string, value func(c *ingest.Cell) uint64) nativeColumn {
		return native64(name, "UInt64", n, func(i int) uint64 { return value(&cells[i]) }, 0)
	}
	out := []nativeColumn{
		nativeWord("topic", n, r.Topic, r.Topic),
		native32("incarnation", "UInt32", n, r.Incarnation),
		native32("partition", "Int32", n, uint32(r.Partition)),
		native64("start_offset", "Int64", n, func(int) uint64 { return uint64(r.Start) }, uint64(r.Start)),
		native64("end_offset", "Int64", n, func(int) uint64 { return uint64(r.End) }, uint64(r.End)),
		native64("batch_time", kindTime, n, func(int) uint64 { return milliDB(batch.Time) }, milliDB(batch.Time)),
		native8("marker", n, func(int) uint8 { return 0 }, 1),
		markerOnly("marker_rows", "UInt64", n, uint64(n)),
		markerOnly("marker_records", "UInt64", n, m.Records),
		markerOnly("marker_events", "UInt64", n, m.Events),
		markerOnly("marker_rejected", "UInt64", n, m.Rejected),
		markerOnly("marker_late", "UInt64", n, m.Late),
		markerOnly("marker_gap", "UInt64", n, m.Gap),
		markerOnly("marker_max_event_time", kindTime, n, milliDB(m.MaxEventTime)),
		markerOnly("marker_watermark", kindTime, n, milliDB(m.Watermark)),
		markerOnly("marker_record_time", kindTime, n, milliDB(m.RecordTime)),
		nativeWord("marker_revision", n, "", m.Revision),
		markerOnly("marker_clock", kindTime, n, milliDB(m.Clock)),
		native64("bucket", kindTime, n, func(i int) uint64 { return milliDB(time.Unix(cells[i].Bucket(), 0)) }, 0),
		number("key", func(c *ingest.Cell) uint64 { return c.Key().ID }),
	}
	for o, name := range outcomeColumns {
		out = append(out, number(name, func(c *ingest.Cell) uint64 { return c.Outcome(signal.Outcome(o)) }))
	}
	return append(out, number("retries", (*ingest.Cell).Retries), nativeLatency(cells), nativeAccounts(cells), nativeSamples(cells),
		native8("estimated", n, func(i int) uint8 { return flag(cells[i].Estimated()) }, 0))
}

// milliDB is how a time travels: milliseconds, no time at all is 1970.
func milliDB(t time.Time) uint64 { return uint64(toDB(t).UnixMilli()) }

func native64(name, kind string, n int, value func(i int) uint64, marker uint64) nativeColumn {
	return nativeColumn{name, kind, []nativePart{func(b []byte, from, to int) []byte {
		for i := from; i < min(to, n); i++ {
			b = binary.LittleEndian.AppendUint64(b, value(i))
		}
		if to > n {
			b = binary.LittleEndian.AppendUint64(b, marker)
		}
		return b
	}}}
}

// markerOnly is a column whose data rows are 0.
func markerOnly(name, kind string, n int, marker uint64) nativeColumn {
	return nativeColumn{name, kind, []nativePart{func(b []byte, from, to int) []byte {
		b = append(b, zeros[:8*(min(to, n)-from)]...)
		if to > n {
			b = binary.LittleEndian.AppendUint64(b, marker)
		}
		return b
	}}}
}

var zeros [8 * nativeRows]byte

func native32(name, kind string, n int, value uint32) nativeColumn {
	return nativeColumn{name, kind, []nativePart{func(b []byte, from, to int) []byte {
		for range to - from {
			b = binary.LittleEndian.AppendUint32(b, value)
		}
		return b
	}}}
}

func native8(name string, n int, value func(i int) uint8, marker uint8) nativeColumn {
	return nativeColumn{name, "UInt8", []nativePart{func(b []byte, from, to int) []byte {
		for i := from; i < min(to, n); i++ {
			b = append(b, value(i))
		}
		if to > n {
			b = append(b, marker)
		}
		return b
	}}}
}

// nativeWord has one word in all data rows and one in the marker. As LowCardinality it is written as a dictionary of
// both, and a byte a row.
func nativeWord(name string, n int, data, marker string) nativeColumn {
	const (
		version    = 1
		ownKeys    = 1 << 9
		newKeys    = 1 << 10
		indexUInt8 = 0
	)
	return nativeColumn{name, kindWord, []nativePart{func(b []byte, from, to int) []byte {
		if from == 0 {
			b = binary.LittleEndian.AppendUint64(b, version)
			b = binary.LittleEndian.AppendUint64(b, ownKeys|newKeys|indexUInt8)
			words := []string{data}
			if marker != data {
				words = append(words, marker)
			}
			b = binary.LittleEndian.AppendUint64(b, uint64(len(words)))
			for _, w := range words {
				b = appendText(b, w)
			}
			b = binary.LittleEndian.AppendUint64(b, uint64(n+1))
		}
		b = append(b, zeros[:min(to, n)-from]...)
		if to > n {
			b = append(b, flag(marker != data))
		}
		return b
	}}}
}

// nativeOffsets are the ends of the rows' elements; the marker has none.
func nativeOffsets(n int, length func(i int) int) nativePart {
	end := uint64(0)
	return func(b []byte, from, to int) []byte {
		if from == 0 {
			end = 0
		}
		for i := from; i < to; i++ {
			if i < n {
				end += uint64(length(i))
			}
			b = binary.LittleEndian.AppendUint64(b, end)
		}
		return b
	}
}

func nativeLatency(cells []ingest.Cell) nativeColumn {
	n := len(cells)
	var l signal.Latency
	return nativeColumn{"latency", "Array(UInt64)", []nativePart{
		nativeOffsets(n, func(i int) int { return cells[i].Latency(&l) }),
		func(b []byte, from, to int) []byte {
			for i := from; i < min(to, n); i++ {
				for _, v := range l[:cells[i].Latency(&l)] {
					b = binary.LittleEndian.AppendUint64(b, v)
				}
			}
			return b
		},
	}}
}

func nativeAccounts(cells []ingest.Cell) nativeColumn {
	n := len(cells)
	return nativeColumn{"accounts", "Array(UInt64)", []nativePart{
		nativeOffsets(n, func(i int) int { return len(cells[i].Accounts()) }),
		func(b []byte, from, to int) []byte {
			for i := from; i < min(to, n); i++ {
				for _, v := range cells[i].Accounts() {
					b = binary.LittleEndian.AppendUint64(b, v)
				}
			}
			return b
		},
	}}
}

func nativeSamples(cells []ingest.Cell) nativeColumn {
	n := len(cells)
	each := func(write func(b []byte, s *signal.Sample) []byte) nativePart {
		return func(b []byte, from, to int) []byte {
			for i := from; i < min(to, n); i++ {
				samples := cells[i].Samples()
				for j := range samples {
					b = write(b, &samples[j])
				}
			}
			return b
		}
	}
	return nativeColumn{"samples", "Array(Tuple(hash UInt64, trace_id String, error String, account String))", []nativePart{
		nativeOffsets(n, func(i int) int { return len(cells[i].Samples()) }),
		each(func(b []byte, s *signal.Sample) []byte { return binary.LittleEndian.AppendUint64(b, s.Hash) }),
		each(func(b []byte, s *signal.Sample) []byte { return appendText(b, s.TraceID) }),
		each(func(b []byte, s *signal.Sample) []byte { return appendText(b, s.Error) }),
		each(func(b []byte, s *signal.Sample) []byte { return appendText(b, s.Account) }),
	}}
}
