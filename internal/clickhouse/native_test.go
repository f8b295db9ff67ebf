package clickhouse

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// A batch is the same rows whether it is written straight from its cells or by the driver's columns.
func TestNativeBlockIsTheDriversBlock(t *testing.T) {
	db := migrated(t)
	for round, rows := range []int{0, 1, nativeRows - 1, 3 * nativeRows} { // the marker is one more, or alone behind a full part
		b := requests(int64(round)*10, int64(round)*10+10, 0)
		b.Marker.Gap = 3
		for i := range rows {
			c := signal.Cell{Bucket: at(10 * (i % 3)), Key: signal.Key{Path: pathOf(fmt.Sprint("s", i))}, Retries: uint64(i % 2), Estimated: i%5 == 0}
			for j := range i % 70 {
				c.Count(&signal.Request{Time: at(1), Outcome: signal.Outcome(j % 4), Account: fmt.Sprint("a", j), TraceID: fmt.Sprint(i, "-", j), Error: "é\x00", Latency: time.Duration(j*i) * time.Millisecond})
			}
			if i == 0 {
				c.Outcomes[signal.Throttled] = 1 << 60
			}
			b.Cells = append(b.Cells, ingest.NewCell(c))
		}
		if err := db.insertCells(t.Context(), "", b); err != nil {
			t.Fatal(err)
		}
		b.Range.Partition++
		if err := db.insert(t.Context(), "", batchBlock(b)); err != nil {
			t.Fatal(err)
		}
	}
	if got := one[string](t, db, `SELECT toString((count(), uniqExact(partition), countIf(marker = 1), sum(throttled) > 1e18)) FROM cells`); got != fmt.Sprintf("(%d,2,8,1)", 2*(1+nativeRows-1+3*nativeRows+4)) {
		t.Errorf("stored %s", got)
	}
	if n := one[uint64](t, db, `SELECT count() FROM (SELECT *, count() AS n FROM (SELECT * EXCEPT partition FROM cells) GROUP BY ALL HAVING n != 2)`); n != 0 {
		t.Errorf("%d rows differ", n)
	}
}

// A connection that still holds the body of an insert that has failed gets nothing more of the rows, whose memory is used again.
func TestBodyEndsWithItsInsert(t *testing.T) {
	reads := 0
	b := newNativeBody(10*nativeRows, []nativeColumn{{"x", "UInt8", []nativePart{func(b []byte, from, to int) []byte {
		reads++
		return append(b, make([]byte, frameBytes)...)
	}}}})
	if _, err := b.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	before := reads
	if err := errors.Join(b.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
	if n, err := b.Read(make([]byte, 1<<20)); n != 0 || err == nil || errors.Is(err, io.EOF) || reads != before {
		t.Errorf("after the end %d bytes, %v", n, err)
	}
	// Its memory serves the next one, which has nothing of it.
	if again := newNativeBody(0, nil); len(again.out) != 0 || len(again.plain) != 0 || again.done {
		t.Error("a body begins with another's rest")
	}
}

// Inserts open the connections that they need themselves: several at once do, and all after the server was away.
func TestInsertsOpenTheirConnections(t *testing.T) {
	db := migrated(t)
	if err := db.insertCells(t.Context(), "", requests(0, 10, 1)); err != nil { // the types of the columns are known from here on
		t.Fatal(err)
	}
	var g errgroup.Group
	for i := range 8 {
		g.Go(func() error {
			b := requests(int64(i+1)*10, int64(i+2)*10, 1)
			return db.insertCells(t.Context(), b.Range.Token(), b)
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}
