package clickhouse

import (
	"fmt"
	"strings"
)

const (
	blockRowsMax  = 200_000
	blockBytesMax = 64 << 20
)

// block is one insert: columns of equal length for one table.
type block struct {
	table  string
	names  []string
	values []any // a slice for each column
	rows   int
	bytes  int // of its long texts, roughly
	first  int // place of its first row among those of the tick, where they are cut into several
}

func newBlock(table string, rows int) *block { return &block{table: table, rows: rows} }

// column fills one column by asking for each row's value.
func column[T any](b *block, name string, value func(i int) T) {
	values := make([]T, b.rows)
	for i := range values {
		values[i] = value(i)
	}
	b.names = append(b.names, name)
	b.values = append(b.values, values)
	if texts, ok := any(values).([]string); ok {
		for _, s := range texts {
			b.bytes += len(s)
		}
	}
}

// same fills one column with one value.
func same[T any](b *block, name string, value T) { column(b, name, func(int) T { return value }) }

// data fills one column of a base table whose last row is the marker: it gets the zero value there.
func data[R, T any](b *block, name string, rows []R, value func(*R) T) {
	column(b, name, func(i int) (v T) {
		if i < len(rows) {
			v = value(&rows[i])
		}
		return v
	})
}

// last fills one column of a base table whose last row is the marker: only that one has a value.
func last[T any](b *block, name string, value T) {
	column(b, name, func(i int) (v T) {
		if i == b.rows-1 {
			v = value
		}
		return v
	})
}

func (b *block) check() error {
	if b.rows > blockRowsMax || b.rows > 1 && b.bytes > blockBytesMax { // one row is one block, whatever its size
		return &Error{Op: "insert " + b.table, Reason: ReasonTooLarge, Err: fmt.Errorf(
			"%d rows with %d bytes of text do not fit into one block of at most %d rows and %d bytes, and only one block is stored exactly once",
			b.rows, b.bytes, blockRowsMax, blockBytesMax)}
	}
	return nil
}

func (b *block) statement() string {
	return "INSERT INTO " + b.table + " (`" + strings.Join(b.names, "`, `") + "`)"
}

// chunk is the part [from, to) of a list of rows.
type chunk struct{ from, to int }

const (
	chunkRowsMax  = 100_000
	chunkBytesMax = 16 << 20
)

// cut divides rows that need not be seen all at once into blocks, by what they are and nothing else, so that a repetition
// cuts them alike and each block finds its token.
func cut(rows int, size func(i int) int) (chunks []chunk) {
	for from := 0; from < rows; {
		to, bytes := from, 0
		for to < rows && to-from < chunkRowsMax && (to == from || bytes+size(to) <= chunkBytesMax) {
			bytes += size(to)
			to++
		}
		chunks = append(chunks, chunk{from, to})
		from = to
	}
	return chunks
}
