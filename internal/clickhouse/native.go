package clickhouse

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"

	"github.com/ClickHouse/ch-go/compress"
	ch "github.com/ClickHouse/clickhouse-go/v2"
)

const (
	// frameBytes is about how much of a block is compressed at once. Little of a block is in memory at any time.
	frameBytes = 128 << 10
	// nativeRows is how many rows of a column are written at once.
	nativeRows = 1024
	// bodiesMax is how many bodies keep their memory for later inserts.
	bodiesMax = 8
)

// nativeColumn is a column of a block in ClickHouse's format Native, written straight from the rows. The driver's
// columns take each value through an interface and keep the whole block in memory three times over: as its columns, encoded
// and compressed.
type nativeColumn struct {
	name, kind string
	// parts are written one after another, each for all rows: an array has its offsets before its elements.
	parts []nativePart
}

// nativePart appends rows [from, to).
type nativePart func(b []byte, from, to int) []byte

// nativeBody is a block as it is sent: LZ4 frames of the format Native, made as they are read.
type nativeBody struct {
	rows    int
	columns []nativeColumn
	z       *compress.Writer

	mu           sync.Mutex
	done         bool // nothing is read from the rows any more
	column, part int
	row          int
	began        bool
	plain        []byte
	out          []byte
}

var _ io.ReadCloser = (*nativeBody)(nil)

var errBodyDone = errors.New("the insert is over")

// bodies are those whose memory is used again.
var bodies struct {
	sync.Mutex
	free []*nativeBody
}

func newNativeBody(rows int, columns []nativeColumn) *nativeBody {
	bodies.Lock()
	defer bodies.Unlock()
	n := len(bodies.free)
	if n == 0 {
		return &nativeBody{rows: rows, columns: columns, z: compress.NewWriter(compress.LevelZero, compress.LZ4)}
	}
	b := bodies.free[n-1]
	bodies.free = bodies.free[:n-1]
	return &nativeBody{rows: rows, columns: columns, z: b.z, plain: b.plain[:0]}
}

// Close ends reading: the connection's goroutines may still hold the body when the insert has failed.
func (b *nativeBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done {
		return nil
	}
	b.done, b.columns, b.out = true, nil, nil
	bodies.Lock()
	defer bodies.Unlock()
	if len(bodies.free) < bodiesMax {
		bodies.free = append(bodies.free, &nativeBody{z: b.z, plain: b.plain})
	}
	b.z, b.plain = nil, nil
	return nil
}

// Read gives the next part of the body.
func (b *nativeBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done {
		return 0, errBodyDone
	}
	if len(b.out) == 0 {
		for len(b.plain) < frameBytes && b.step() {
		}
		if len(b.plain) == 0 {
			return 0, io.EOF
		}
		if err := b.z.Compress(b.plain); err != nil {
			return 0, err
		}
		b.out, b.plain = b.z.Data, b.plain[:0]
	}
	n := copy(p, b.out)
	b.out = b.out[n:]
	return n, nil
}

// step writes some rows of a part of a column, or tells that there is no more.
func (b *nativeBody) step() bool {
	if !b.began {
		b.began = true
		b.plain = binary.AppendUvarint(binary.AppendUvarint(b.plain, uint64(len(b.columns))), uint64(b.rows))
	}
	if b.column == len(b.columns) {
		return false
	}
	c := &b.columns[b.column]
	if b.part == 0 && b.row == 0 {
		b.plain = appendText(appendText(b.plain, c.name), c.kind)
	}
	to := min(b.row+nativeRows, b.rows)
	b.plain = c.parts[b.part](b.plain, b.row, to)
	if b.row = to; b.row == b.rows {
		b.row = 0
		if b.part++; b.part == len(c.parts) {
			b.part = 0
			b.column++
		}
	}
	return true
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// insertNative sends a block over HTTP as one insert under the token.
func (d *DB) insertNative(ctx context.Context, token, table string, rows int, columns []nativeColumn) error {
	b := &block{table: table, rows: rows}
	for _, c := range columns {
		b.names = append(b.names, c.name)
	}
	if err := b.check(); err != nil {
		return err
	}
	err := d.request(ctx, "insert "+table, func(ctx context.Context) error {
		settings, err := d.settings(ctx, token)
		if err != nil {
			return err
		}
		if _, err := d.types(ctx, b); err != nil {
			return err
		}
		settings["decompress"] = 1
		body := newNativeBody(rows, columns)
		defer body.Close()
		return d.conn.InsertFormat(ch.Context(ctx, ch.WithSettings(settings)), "Native", b.statement(), body)
	})
	if err == nil {
		d.metrics.inserts.WithLabelValues(table).Inc()
		d.metrics.insertRows.WithLabelValues(table).Add(float64(rows))
	}
	d.doubt(table, err)
	return err
}
