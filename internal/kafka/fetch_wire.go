package kafka

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/fetch"
)

const (
	// The first version that knows transactions and the last that kafka-go can write.
	fetchVersionMin = 4
	fetchVersionMax = 11

	// An answer larger than this is not one: the largest batch comes on top of maxFetchBytes.
	maxResponseBytes = maxFetchBytes + 256<<20

	maxPooledBytes = 8 << 20 // Buffers for the rare larger answers are not kept.

	readCommitted = 1
)

// fetchRequest is a Fetch for one partition whose answer is read here rather than by kafka-go: its decoder throws away
// the last offset of a batch (so that a compacted tail can never be passed), ignores broker timestamps, drops broken
// batches silently and takes three times the processor time. Connections, routing and login stay kafka-go's.
type fetchRequest struct {
	topic     string
	partition int32
	offset    int64
	maxBytes  int32
	maxWait   time.Duration
	clientID  string

	version int16 // Set by Required, which kafka-go calls on the connection it is about to use.
}

var (
	_ protocol.BrokerMessage = (*fetchRequest)(nil)
	_ protocol.RawExchanger  = (*fetchRequest)(nil)
	_ protocol.Message       = (*fetchResponse)(nil)
)

func (r *fetchRequest) ApiKey() protocol.ApiKey { return protocol.Fetch }

func (r *fetchRequest) Broker(c protocol.Cluster) (protocol.Broker, error) {
	return r.message().Broker(c)
}

func (r *fetchRequest) Required(versions map[protocol.ApiKey]int16) bool {
	r.version = min(versions[protocol.Fetch], fetchVersionMax)
	return true
}

func (r *fetchRequest) message() *fetch.Request {
	return &fetch.Request{
		ReplicaID:      -1,
		MaxWaitTime:    int32(r.maxWait.Milliseconds()),
		MinBytes:       1,
		MaxBytes:       r.maxBytes,
		IsolationLevel: readCommitted,
		SessionEpoch:   -1, // No fetch session.
		Topics: []fetch.RequestTopic{{Topic: r.topic, Partitions: []fetch.RequestPartition{{
			Partition:          r.partition,
			CurrentLeaderEpoch: -1,
			FetchOffset:        r.offset,
			LogStartOffset:     -1,
			PartitionMaxBytes:  r.maxBytes,
		}}}},
	}
}

var fetchBuffers = sync.Pool{New: func() any { return new([]byte) }}

// RawExchange sends the request and reads the answer. Its error breaks the connection; what the broker refuses is inside
// the response instead.
func (r *fetchRequest) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	if r.version < fetchVersionMin {
		return &fetchResponse{err: fmt.Errorf("%w: the broker's Fetch v%d, v%d is needed", errUnsupported, r.version,
			fetchVersionMin)}, nil
	}
	// kafka-go sends one request at a time on a connection, so any correlation id will do.
	const correlation = 1
	if err := protocol.WriteRequest(rw, r.version, correlation, r.clientID, r.message()); err != nil {
		return nil, err
	}
	var head [8]byte
	if _, err := io.ReadFull(rw, head[:]); err != nil {
		return nil, unexpectedEOF(err)
	}
	size := int64(binary.BigEndian.Uint32(head[:])) - 4
	if size < 0 || size > maxResponseBytes || binary.BigEndian.Uint32(head[4:]) != correlation {
		return nil, fmt.Errorf("%w: impossible fetch response of %d bytes", errCorrupt, size)
	}
	buf := fetchBuffers.Get().(*[]byte)
	defer func() {
		if cap(*buf) <= maxPooledBytes {
			fetchBuffers.Put(buf)
		}
	}()
	if int64(cap(*buf)) < size {
		*buf = make([]byte, size)
	}
	body := (*buf)[:size]
	if _, err := io.ReadFull(rw, body); err != nil {
		return nil, unexpectedEOF(err)
	}
	return r.decode(body)
}

type fetchResponse struct {
	result FetchResult
	size   int
	err    error
}

func (*fetchResponse) ApiKey() protocol.ApiKey { return protocol.Fetch }

// decode reads a response of one topic with one partition. body is only borrowed.
func (r *fetchRequest) decode(body []byte) (*fetchResponse, error) {
	d := wireReader{b: body}
	res := &fetchResponse{size: len(body), result: FetchResult{NextOffset: r.offset}}
	d.int32() // throttle time: the broker enforces it itself
	if r.version >= 7 {
		if code := d.int16(); code != 0 {
			res.err = kafka.Error(code)
		}
		d.int32() // session
	}
	if topics := d.int32(); topics == 0 && d.err == nil {
		if res.err == nil {
			res.err = fmt.Errorf("%w: fetch response without the topic", errCorrupt)
		}
		return res, nil
	}
	d.bytes(int(d.int16())) // name
	d.int32()               // number of partitions: one was asked for
	d.int32()               // its number
	if code := d.int16(); code != 0 && res.err == nil {
		res.err = kafka.Error(code)
	}
	res.result.HighWatermark = d.int64()
	res.result.LastStable = d.int64()
	if r.version >= 5 {
		res.result.LogStart = d.int64()
	}
	var aborted []abortedTxn
	for n := d.int32(); n > 0 && d.err == nil; n-- {
		aborted = append(aborted, abortedTxn{producer: d.int64(), first: d.int64()})
	}
	if r.version >= 11 {
		d.int32() // preferred read replica: no rack was given
	}
	set := d.bytes(max(int(d.int32()), 0))
	if d.err != nil {
		return nil, d.err
	}
	if res.err != nil {
		return res, nil
	}
	b := batchReader{from: r.offset, next: r.offset, aborted: aborted,
		limit: min(max(decodedFactor*int(r.maxBytes), minDecodedBytes), maxDecodedBytes)}
	err := b.read(set)
	res.result.Records, res.result.NextOffset, res.result.chunks = b.records, b.next, b.chunks
	if b.next == r.offset {
		// What came before a broken batch is good; the error is for the fetch that begins at it.
		res.err = err
	}
	return res, nil
}

// wireReader reads big-endian fields and remembers the first failure.
type wireReader struct {
	b   []byte
	err error
}

func (d *wireReader) bytes(n int) []byte {
	if d.err != nil {
		return nil
	}
	if n < 0 || n > len(d.b) {
		d.err = fmt.Errorf("%w: response ends early", errCorrupt)
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *wireReader) int16() int16 {
	if b := d.bytes(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (d *wireReader) int32() int32 {
	if b := d.bytes(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (d *wireReader) int64() int64 {
	if b := d.bytes(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
