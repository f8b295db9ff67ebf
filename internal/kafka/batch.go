package kafka

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"time"

	"github.com/segmentio/kafka-go/compress"
)

// Layout of a record batch, message format 2.
const (
	batchLengthAt     = 8
	batchMagicAt      = 16
	batchCRCAt        = 17
	batchAttributesAt = 21
	batchHeaderBytes  = 61

	attrCodec         = 0x07
	attrLogAppendTime = 0x08
	attrTransactional = 0x10
	attrControl       = 0x20

	controlAbort = 0

	recordBytesMin = 7 // Length, attributes, two deltas, two lengths, number of headers.

	// A header can be two bytes long, and is twenty times that in memory: what is beyond these is left out.
	maxHeaders = 1000

	// One decompressed batch may not be larger than this, however little of it was sent.
	maxBatchBytes = 128 << 20
	// Decoding stops after the batch that passes this many times the bytes asked for, so that many partitions with
	// well-compressed records stay in bounds together; what is left is fetched again.
	decodedFactor   = 16
	minDecodedBytes = 4 << 20
	maxDecodedBytes = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type abortedTxn struct{ producer, first int64 }

// batchReader collects the records of a record set. records point into chunks; the set is only borrowed.
type batchReader struct {
	from    int64
	next    int64 // Behind the last batch examined.
	limit   int   // Of decompressed bytes.
	aborted []abortedTxn
	records []Record
	chunks  []*[]byte

	open    map[int64]struct{} // Producers whose transaction that is being read was aborted.
	decoded int
}

// read stops with an error at the first batch it cannot read. A truncated last batch is normal and ignored.
func (r *batchReader) read(set []byte) error {
	slices.SortFunc(r.aborted, func(a, b abortedTxn) int { return int(min(max(a.first-b.first, -1), 1)) })
	for len(set) > batchMagicAt && r.decoded < r.limit {
		base := int64(binary.BigEndian.Uint64(set))
		size := int64(binary.BigEndian.Uint32(set[batchLengthAt:])) + batchLengthAt + 4
		if magic := set[batchMagicAt]; magic != 2 {
			return fmt.Errorf("%w: message format %d at offset %d", errUnsupported, magic, base)
		}
		if size < batchHeaderBytes {
			return fmt.Errorf("%w at offset %d: %d bytes long", errCorrupt, base, size)
		}
		if size > int64(len(set)) {
			return nil
		}
		if err := r.batch(base, set[:size]); err != nil {
			return fmt.Errorf("record batch at offset %d: %w", base, err)
		}
		set = set[size:]
	}
	return nil
}

func (r *batchReader) batch(base int64, b []byte) error {
	if crc32.Checksum(b[batchAttributesAt:], castagnoli) != binary.BigEndian.Uint32(b[batchCRCAt:]) {
		return fmt.Errorf("%w: checksum", errCorrupt)
	}
	h := wireReader{b: b[batchAttributesAt:]}
	attrs := h.int16()
	last := base + int64(h.int32())
	baseTime, maxTime := h.int64(), h.int64()
	producer := h.int64()
	h.int16() // producer epoch
	h.int32() // base sequence
	count := h.int32()
	if last < base {
		return fmt.Errorf("%w: ends before it begins", errCorrupt)
	}

	if r.open == nil {
		r.open = map[int64]struct{}{}
	}
	for len(r.aborted) > 0 && r.aborted[0].first <= last {
		r.open[r.aborted[0].producer] = struct{}{}
		r.aborted = r.aborted[1:]
	}
	_, skip := r.open[producer]
	switch {
	case attrs&attrControl != 0:
		if isAbort(h.b) {
			delete(r.open, producer)
		}
	case last < r.from, count == 0, attrs&attrTransactional != 0 && skip:
	default:
		chunk := getChunk()
		data, err := decompress(int8(attrs&attrCodec), h.b, (*chunk)[:0])
		if err != nil {
			return err
		}
		*chunk = data
		r.chunks = append(r.chunks, chunk)
		r.decoded += len(data)
		p := recordParser{base: base, last: last, baseTime: baseTime, from: r.from}
		if attrs&attrLogAppendTime != 0 {
			p.brokerTime = &maxTime
		}
		if r.records, err = p.parse(r.records, data, int(count)); err != nil {
			return err
		}
	}
	// From the header, not from the last record: compaction may have taken the batch's last records, or all of them, and a
	// fetch that asks for the missing offset gets this very batch again, for ever.
	r.next = max(r.next, last+1)
	return nil
}

// isAbort reads the key of a transaction marker, which is never compressed.
func isAbort(b []byte) bool {
	p := recordParser{} // The marker's own offset delta is 0.
	recs, err := p.parse(nil, b, 1)
	return err == nil && len(recs) == 1 && len(recs[0].Key) >= 4 && binary.BigEndian.Uint16(recs[0].Key[2:]) == controlAbort
}

// decompress appends to out, and never returns a part of b.
func decompress(codec int8, b, out []byte) ([]byte, error) {
	if codec == int8(compress.None) {
		return append(out, b...), nil
	}
	c := compress.Compression(codec).Codec()
	if c == nil {
		return nil, fmt.Errorf("%w: compression %d", errUnsupported, codec)
	}
	if codec == int8(compress.Lz4) {
		if all, ok, err := lz4Frame(b, out); ok {
			return all, err
		}
	}
	zr := c.NewReader(bytes.NewReader(b))
	defer zr.Close()
	if cap(out) == 0 {
		out = make([]byte, 0, 4*len(b)+bytes.MinRead)
	}
	for {
		if len(out) == cap(out) {
			out = append(out, 0)[:len(out)]
		}
		n, err := zr.Read(out[len(out):cap(out)])
		if out = out[:len(out)+n]; len(out) > maxBatchBytes {
			return nil, fmt.Errorf("%w: more than %d MiB decompressed", errTooLarge, maxBatchBytes>>20)
		}
		if err == io.EOF { // as io.Reader says; a wrapped one is a broken frame
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", errCorrupt, c.Name(), err)
		}
	}
}

type recordParser struct {
	base, last, baseTime, from int64
	brokerTime                 *int64 // If the topic has the broker's time, all records of a batch have this one.
}

var errRecord = errors.New("record ends early")

func (p *recordParser) parse(records []Record, b []byte, count int) ([]Record, error) {
	if count < 0 || count > len(b)/recordBytesMin {
		return records, fmt.Errorf("%w: %d records in %d bytes", errCorrupt, count, len(b))
	}
	records = slices.Grow(records, count)
	for range count {
		size, n := binary.Varint(b)
		if n <= 0 || size < recordBytesMin-1 || size > int64(len(b)-n) {
			return records, fmt.Errorf("%w: %w", errCorrupt, errRecord)
		}
		rec, err := p.record(b[n : n+int(size)])
		if err != nil {
			return records, fmt.Errorf("%w: %w", errCorrupt, err)
		}
		if rec.Offset < p.base || rec.Offset > p.last {
			return records, fmt.Errorf("%w: record at offset %d outside of its batch", errCorrupt, rec.Offset)
		}
		b = b[n+int(size):]
		if rec.Offset >= p.from { // Brokers send whole batches, also what is before the offset asked for.
			records = append(records, rec)
		}
	}
	return records, nil
}

func (p *recordParser) record(b []byte) (Record, error) {
	v := varReader{b: b[1:]} // attributes: none are defined
	timeDelta := v.varint()
	rec := Record{Offset: p.base + v.varint()}
	if p.brokerTime != nil {
		rec.Time = time.UnixMilli(*p.brokerTime).UTC()
	} else {
		rec.Time = time.UnixMilli(p.baseTime + timeDelta).UTC()
	}
	rec.Key = v.bytes()
	rec.Value = v.bytes()
	if n := v.varint(); n > 0 {
		if n > int64(len(v.b)) {
			return rec, errRecord
		}
		rec.Headers = make([]Header, 0, min(n, maxHeaders))
		for i := int64(0); i < n && !v.bad; i++ {
			if key, value := v.bytes(), v.bytes(); i < maxHeaders {
				rec.Headers = append(rec.Headers, Header{Key: string(key), Value: value})
			}
		}
	}
	if v.bad {
		return rec, errRecord
	}
	return rec, nil
}

// varReader reads the zig-zag varints and length-prefixed bytes of a record.
type varReader struct {
	b   []byte
	bad bool
}

func (v *varReader) varint() int64 {
	if len(v.b) > 0 && v.b[0] < 0x80 { // Nearly all of them.
		u := v.b[0]
		v.b = v.b[1:]
		return int64(u>>1) ^ -int64(u&1)
	}
	x, n := binary.Varint(v.b)
	if n <= 0 {
		v.bad, v.b = true, nil
		return 0
	}
	v.b = v.b[n:]
	return x
}

// bytes gives nil for a length of -1. The capacity is cut, so that an append cannot reach the next record.
func (v *varReader) bytes() []byte {
	n := v.varint()
	if n < 0 {
		return nil
	}
	if n > int64(len(v.b)) {
		v.bad, v.b = true, nil
		return nil
	}
	out := v.b[:n:n]
	v.b = v.b[n:]
	return out
}
