package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"

	"bytes"

	"github.com/segmentio/kafka-go/compress"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/fetch"
)

// rawFetch is the cheapest way to get at records that we know: one connection, one partition after the other, every
// buffer used again. It trusts the broker and belongs to the floors only.
type rawFetch struct {
	conn     net.Conn
	buf, out []byte
	src      bytes.Reader
	number   int32
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errAnswer = errors.New("unexpected answer to a fetch")

// partition reads records up to end and hands each value to f, valid until f returns.
func (r *rawFetch) partition(topic string, partition int32, end int64, f func(value []byte)) error {
	for offset := int64(0); offset < end; {
		r.number++
		const version, most = 11, 4 << 20
		err := protocol.WriteRequest(r.conn, version, r.number, "floor", &fetch.Request{ReplicaID: -1, MaxWaitTime: 500, MinBytes: 1, MaxBytes: most, SessionEpoch: -1, IsolationLevel: 1,
			Topics: []fetch.RequestTopic{{Topic: topic, Partitions: []fetch.RequestPartition{{Partition: partition, CurrentLeaderEpoch: -1, FetchOffset: offset, LogStartOffset: -1, PartitionMaxBytes: most}}}}})
		if err != nil {
			return fmt.Errorf("write fetch: %w", err)
		}
		set, err := r.answer()
		if err != nil {
			return err
		}
		next, err := r.records(set, offset, f)
		if err != nil {
			return err
		}
		if next == offset {
			return fmt.Errorf("%w: nothing at offset %d", errAnswer, offset)
		}
		offset = next
	}
	return nil
}

func (r *rawFetch) answer() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r.conn, head[:]); err != nil {
		return nil, fmt.Errorf("read fetch: %w", err)
	}
	n := int(binary.BigEndian.Uint32(head[:]))
	if cap(r.buf) < n {
		r.buf = make([]byte, n+n/4)
	}
	b := r.buf[:n]
	if _, err := io.ReadFull(r.conn, b); err != nil {
		return nil, fmt.Errorf("read fetch: %w", err)
	}
	at := 4 + 4 + 2 + 4 + 4                            // correlation, throttle, error, session, topics
	at += 2 + int(binary.BigEndian.Uint16(b[at:])) + 8 // name, partitions, number
	if code := binary.BigEndian.Uint16(b[at:]); code != 0 {
		return nil, fmt.Errorf("%w: error %d", errAnswer, code)
	}
	at += 2 + 8 + 8 + 8
	if aborted := int32(binary.BigEndian.Uint32(b[at:])); aborted > 0 {
		at += 16 * int(aborted)
	}
	at += 4 + 4
	size := int(int32(binary.BigEndian.Uint32(b[at:])))
	return b[at+4 : at+4+max(size, 0)], nil
}

func (r *rawFetch) records(set []byte, offset int64, f func([]byte)) (int64, error) {
	for len(set) >= 61 {
		base, size := int64(binary.BigEndian.Uint64(set)), int(binary.BigEndian.Uint32(set[8:]))
		if 12+size > len(set) {
			break
		}
		b := set[12 : 12+size]
		set = set[12+size:]
		if crc32.Checksum(b[9:], castagnoli) != binary.BigEndian.Uint32(b[5:]) {
			return 0, fmt.Errorf("%w: checksum", errAnswer)
		}
		last, n, body := int64(binary.BigEndian.Uint32(b[11:])), int(binary.BigEndian.Uint32(b[45:])), b[49:]
		if codec := compress.Compression(binary.BigEndian.Uint16(b[9:]) & 7); codec != compress.None {
			var err error
			if body, err = r.decompress(codec, body); err != nil {
				return 0, err
			}
		}
		for range n {
			var size, delta, key, value int64
			size, body = varint(body)
			rec := body[1:size]
			body = body[size:]
			_, rec = varint(rec)
			delta, rec = varint(rec)
			if key, rec = varint(rec); key > 0 {
				rec = rec[key:]
			}
			if value, rec = varint(rec); value >= 0 && base+delta >= offset {
				f(rec[:value])
			}
		}
		offset = base + last + 1
	}
	return offset, nil
}

func (r *rawFetch) decompress(codec compress.Compression, b []byte) ([]byte, error) {
	r.src.Reset(b)
	zr := codec.Codec().NewReader(&r.src)
	defer zr.Close()
	r.out = r.out[:0]
	for {
		if len(r.out) == cap(r.out) {
			r.out = append(make([]byte, 0, 2*cap(r.out)+1<<16), r.out...)
		}
		n, err := zr.Read(r.out[len(r.out):cap(r.out)])
		r.out = r.out[:len(r.out)+n]
		if errors.Is(err, io.EOF) {
			return r.out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decompress: %w", err)
		}
	}
}

func varint(b []byte) (int64, []byte) {
	v, n := binary.Varint(b)
	return v, b[n:]
}
