package clickhouse

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	ch "github.com/ClickHouse/clickhouse-go/v2"
)

const (
	rowBuffer = 256 << 10
	// rowElements bounds the elements of an array and the bytes of a string that are believed: more is a stream that is not understood.
	rowElements = 1 << 24
)

// binaryRows reads ClickHouse's format RowBinary: values one after another, in the order of the query's columns. The driver's rows take
// each value through an interface and each element of an array by reflection, which is ten times what a cell costs in every other
// place. The first error sticks; values after it are zero.
type binaryRows struct {
	r   *bufio.Reader
	err error
	buf [8]byte
}

// queryBinary runs a SELECT over HTTP and gives each row to read. The engine holds its answer back until it is whole, so that there is
// no telling a part from it.
func (d *DB) queryBinary(ctx context.Context, op, sql string, read func(*binaryRows) error, args ...any) error {
	return d.request(ctx, op, func(ctx context.Context) error {
		settings := ch.Settings{"wait_end_of_query": 1}
		if d.cfg.InsertQuorum != "" {
			settings["select_sequential_consistency"] = 1
		}
		stream, err := d.conn.QueryFormat(ch.Context(ctx, ch.WithSettings(settings)), "RowBinary", sql, args...)
		if err != nil {
			return err
		}
		defer stream.Close()
		rows := &binaryRows{r: bufio.NewReaderSize(stream, rowBuffer)}
		for rows.more() {
			if err := read(rows); err != nil {
				return fmt.Errorf("read row: %w", err)
			}
		}
		return rows.err
	})
}

// more tells whether a row follows.
func (b *binaryRows) more() bool {
	if b.err != nil {
		return false
	}
	_, err := b.r.Peek(1)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return err == nil
}

func (b *binaryRows) fill(n int) []byte {
	if b.err == nil {
		_, b.err = io.ReadFull(b.r, b.buf[:n])
	}
	if b.err != nil {
		clear(b.buf[:])
		if errors.Is(b.err, io.EOF) {
			b.err = io.ErrUnexpectedEOF
		}
	}
	return b.buf[:n]
}

func (b *binaryRows) uint8() uint8   { return b.fill(1)[0] }
func (b *binaryRows) uint64() uint64 { return binary.LittleEndian.Uint64(b.fill(8)) }
func (b *binaryRows) int64() int64   { return int64(b.uint64()) } //nolint:gosec // two's complement is what is sent

// len reads the length of what follows.
func (b *binaryRows) len() int {
	if b.err != nil {
		return 0
	}
	n, err := binary.ReadUvarint(b.r)
	if err == nil && n > rowElements {
		err = fmt.Errorf("%d elements or bytes in one value", n)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if b.err = err; err != nil {
		return 0
	}
	return int(n) //nolint:gosec // bounded above
}

func (b *binaryRows) text() string {
	n := b.len()
	if n == 0 {
		return ""
	}
	p := make([]byte, n)
	if _, err := io.ReadFull(b.r, p); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		b.err = err
		return ""
	}
	return string(p)
}

// uint64s appends an array to out.
func (b *binaryRows) uint64s(out []uint64) []uint64 {
	for range b.len() {
		if out = append(out, b.uint64()); b.err != nil {
			return nil
		}
	}
	return out
}

func (b *binaryRows) texts() (out []string) {
	for range b.len() {
		if out = append(out, b.text()); b.err != nil {
			return nil
		}
	}
	return out
}

// texts2 reads a map of strings.
func (b *binaryRows) texts2() map[string]string {
	n := b.len()
	if n == 0 {
		return nil
	}
	out := make(map[string]string, min(n, 64))
	for range n {
		k := b.text()
		if out[k] = b.text(); b.err != nil {
			return nil
		}
	}
	return out
}
