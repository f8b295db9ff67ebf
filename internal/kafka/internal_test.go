package kafka

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/compress"
	"github.com/segmentio/kafka-go/protocol"
)

func TestErrorsAreClassified(t *testing.T) {
	for _, tc := range []struct {
		err    error
		reason Reason
		retry  bool
	}{
		{kafka.SASLAuthenticationFailed, ReasonAuthentication, false},
		{kafka.TopicAuthorizationFailed, ReasonAuthorization, false},
		{kafka.NotLeaderForPartition, ReasonLeader, true},
		{kafka.KafkaStorageError, ReasonBroker, true},
		{kafka.Unknown, ReasonBroker, true},
		{kafka.InvalidTopic, ReasonRejected, false},
		{kafka.GroupCoordinatorNotAvailable, ReasonCoordinator, true},
		{fmt.Errorf("x: %w", protocol.NewErrNoTopic("t")), ReasonUnknownTopic, true},
		{protocol.NewErrNoLeader("t", 1), ReasonLeader, true},
		{context.Canceled, ReasonCanceled, false},
		{context.DeadlineExceeded, ReasonTimeout, true},
		{syscall.ECONNREFUSED, ReasonConnection, true},
		{io.ErrUnexpectedEOF, ReasonConnection, true},
		{errCorrupt, ReasonCorrupt, true},
		{errCredentials, ReasonAuthentication, false},
	} {
		if r, retry := classify(tc.err); r != tc.reason || retry != tc.retry {
			t.Errorf("%v: %s, retry %v; want %s, %v", tc.err, r, retry, tc.reason, tc.retry)
		}
	}
	for code, c := range codes {
		if !slices.Contains(Reasons, c.reason) {
			t.Errorf("reason %s of %v is not in the closed set", c.reason, code)
		}
	}
	if !slices.IsSorted(Reasons) {
		t.Error("reasons are not sorted")
	}
}

// What a coordinator says about its own state proves nothing about a commit, so it must not count as not applied.
func TestCoordinatorTroubleLeavesTheOutcomeOpen(t *testing.T) {
	for _, code := range []kafka.Error{kafka.GroupLoadInProgress, kafka.GroupCoordinatorNotAvailable,
		kafka.NotCoordinatorForGroup, kafka.RequestTimedOut, kafka.Unknown} {
		if notApplied[code] {
			t.Errorf("%v counts as not applied", code)
		}
	}
}

func TestMetricsExistBeforeTheyCount(t *testing.T) {
	reg := prometheus.NewRegistry()
	NewMetrics(reg)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]int{}
	for _, f := range families {
		series[f.GetName()] = len(f.GetMetric())
	}
	want := map[string]int{"tocsin_kafka_fetches_total": 1, "tocsin_kafka_fetched_records_total": 1,
		"tocsin_kafka_fetched_bytes_total": 1, "tocsin_kafka_produced_records_total": 1, "tocsin_kafka_produced_bytes_total": 1,
		"tocsin_kafka_errors_total": len(operations) * len(Reasons), "tocsin_kafka_commits_total": 3,
		"tocsin_kafka_group_generations_total": 1, "tocsin_kafka_group_rejoins_total": 2}
	if !maps.Equal(series, want) {
		t.Errorf("series %v, want %v", series, want)
	}
}

// rawBatch is a batch in message format 2; the record offsets are deltas.
type rawBatch struct {
	base, last  int64
	attrs       int16
	first, maxT int64
	producer    int64
	deltas      []int64
	key         []byte
}

func (r rawBatch) encode() []byte {
	var recs []byte
	for _, d := range r.deltas {
		rec := []byte{0}
		rec = binary.AppendVarint(rec, 5)
		rec = binary.AppendVarint(rec, d)
		if r.key == nil {
			rec = binary.AppendVarint(rec, -1)
		} else {
			rec = append(binary.AppendVarint(rec, int64(len(r.key))), r.key...)
		}
		rec = append(binary.AppendVarint(rec, 1), 'v')
		rec = binary.AppendVarint(rec, 0)
		recs = append(binary.AppendVarint(recs, int64(len(rec))), rec...)
	}
	body := binary.BigEndian.AppendUint16(nil, uint16(r.attrs))
	body = binary.BigEndian.AppendUint32(body, uint32(r.last-r.base))
	body = binary.BigEndian.AppendUint64(body, uint64(r.first))
	body = binary.BigEndian.AppendUint64(body, uint64(r.maxT))
	body = binary.BigEndian.AppendUint64(body, uint64(r.producer))
	body = append(body, make([]byte, 6)...)
	body = binary.BigEndian.AppendUint32(body, uint32(len(r.deltas)))
	body = append(body, recs...)
	b := binary.BigEndian.AppendUint64(nil, uint64(r.base))
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)+9))
	b = append(b, 0, 0, 0, 0, 2)
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(body, castagnoli))
	return append(b, body...)
}

func offsetsOf(records []Record) (out []int64) {
	for _, r := range records {
		out = append(out, r.Offset)
	}
	return out
}

func TestBatchesEmptiedByCompactionArePassed(t *testing.T) {
	set := rawBatch{base: 0, last: 9, deltas: []int64{3}}.encode()
	set = append(set, rawBatch{base: 10, last: 19}.encode()...)
	r := batchReader{from: 4, next: 4, limit: maxDecodedBytes}
	if err := r.read(set); err != nil || r.next != 20 || len(r.records) != 0 {
		t.Errorf("from 4: next %d, records %v, %v; want to get past 19 without records", r.next, r.records, err)
	}
}

func TestBrokerTimestampsWin(t *testing.T) {
	r := batchReader{limit: maxDecodedBytes}
	err := r.read(rawBatch{last: 1, attrs: attrLogAppendTime, first: 1000, maxT: 7000, deltas: []int64{0, 1}}.encode())
	if err != nil || len(r.records) != 2 || !r.records[0].Time.Equal(time.UnixMilli(7000)) {
		t.Errorf("records %v, %v; want the broker's time", r.records, err)
	}
	r = batchReader{limit: maxDecodedBytes}
	err = r.read(rawBatch{last: 0, first: 1000, maxT: 7000, deltas: []int64{0}}.encode())
	if err != nil || !r.records[0].Time.Equal(time.UnixMilli(1005)) {
		t.Errorf("records %v, %v; want the producer's time", r.records, err)
	}
}

func TestAbortedTransactionEndsAtItsMarker(t *testing.T) {
	set := rawBatch{base: 0, last: 1, attrs: attrTransactional, producer: 7, deltas: []int64{0, 1}}.encode()
	set = append(set, rawBatch{base: 2, last: 2, attrs: attrTransactional, producer: 8, deltas: []int64{0}}.encode()...)
	set = append(set, rawBatch{base: 3, last: 3, attrs: attrTransactional | attrControl, producer: 7, deltas: []int64{0},
		key: []byte{0, 0, 0, 0}}.encode()...)
	set = append(set, rawBatch{base: 4, last: 4, attrs: attrTransactional, producer: 7, deltas: []int64{0}}.encode()...)
	r := batchReader{limit: maxDecodedBytes, aborted: []abortedTxn{{producer: 7, first: 0}}}
	if err := r.read(set); err != nil || !slices.Equal(offsetsOf(r.records), []int64{2, 4}) || r.next != 5 {
		t.Errorf("records %v, next %d, %v", offsetsOf(r.records), r.next, err)
	}
}

// The records before a damaged batch are delivered; the error belongs to the fetch that begins at it.
func TestDamageIsReportedWhereItIs(t *testing.T) {
	good := rawBatch{base: 0, last: 0, deltas: []int64{0}}.encode()
	bad := rawBatch{base: 1, last: 1, deltas: []int64{0}}.encode()
	bad[len(bad)-1] ^= 1
	r := batchReader{limit: maxDecodedBytes}
	if err := r.read(append(slices.Clone(good), bad...)); !errors.Is(err, errCorrupt) || r.next != 1 || len(r.records) != 1 {
		t.Errorf("%d records, next %d, %v", len(r.records), r.next, err)
	}
	req := fetchRequest{offset: 1, version: 11}
	res, err := req.decode(fetchBody(bad))
	if err != nil || !errors.Is(res.err, errCorrupt) {
		t.Errorf("fetch at the damage: %v, %v", res, err)
	}
	r = batchReader{limit: maxDecodedBytes}
	if err := r.read(append(slices.Clone(good), bad[:40]...)); err != nil || r.next != 1 {
		t.Errorf("a truncated last batch: next %d, %v", r.next, err)
	}
	old := slices.Clone(good)
	old[batchMagicAt] = 1
	r = batchReader{limit: maxDecodedBytes}
	if err := r.read(old); !errors.Is(err, errUnsupported) || !strings.Contains(err.Error(), "format 1") {
		t.Errorf("an old message format: %v", err)
	}
}

func TestDecodingStopsAtItsLimit(t *testing.T) {
	var set []byte
	for i := range int64(10) {
		set = append(set, rawBatch{base: i, last: i, deltas: []int64{0}}.encode()...)
	}
	r := batchReader{limit: 20} // A record takes 9 bytes.
	if err := r.read(set); err != nil || len(r.records) != 3 || r.next != 3 {
		t.Errorf("%d records, next %d, %v; want to stop behind the third batch", len(r.records), r.next, err)
	}
}

// fetchBody is a Fetch v11 response for topic "t" partition 0 behind the correlation id.
func fetchBody(set []byte) []byte {
	b := make([]byte, 10) // throttle, error, session
	b = append(b, 0, 0, 0, 1, 0, 1, 't', 0, 0, 0, 1, 0, 0, 0, 0, 0, 0)
	b = append(b, make([]byte, 24)...)                            // watermarks
	b = append(b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff) // no aborted transactions, no replica
	b = binary.BigEndian.AppendUint32(b, uint32(len(set)))
	return append(b, set...)
}

func FuzzFetchResponse(f *testing.F) {
	f.Add(fetchBody(rawBatch{base: 5, last: 7, deltas: []int64{0, 2}}.encode()))
	f.Add(fetchBody(nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, version := range []int16{4, 5, 7, 11} {
			req := fetchRequest{offset: 5, version: version}
			res, err := req.decode(body)
			if err != nil || res.err != nil {
				continue
			}
			if res.result.NextOffset < 5 {
				t.Errorf("went back to %d", res.result.NextOffset)
			}
			for _, r := range res.result.Records {
				if r.Offset < 5 {
					t.Errorf("record at %d, before the offset asked for", r.Offset)
				}
			}
		}
	})
}

// FuzzBatch mends the checksum, so that the fuzzer gets behind it, and chooses the codec. Nothing outside of the batch's
// offsets comes out, no more than its bytes can hold, and the same again.
func FuzzBatch(f *testing.F) {
	for codec := range int16(6) {
		f.Add(codec, int64(5), rawBatch{base: 5, last: 7, deltas: []int64{0, 2}}.encode())
	}
	for _, c := range []compress.Compression{compress.Gzip, compress.Snappy, compress.Lz4, compress.Zstd} {
		plain := rawBatch{base: 5, last: 7, deltas: []int64{0, 1, 2}}.encode()
		var packed bytes.Buffer
		w := c.Codec().NewWriter(&packed)
		_, err := w.Write(plain[batchHeaderBytes:])
		if err := errors.Join(err, w.Close()); err != nil {
			f.Fatal(err)
		}
		f.Add(int16(c), int64(6), append(plain[:batchHeaderBytes:batchHeaderBytes], packed.Bytes()...))
	}
	f.Fuzz(func(t *testing.T, attributes int16, from int64, b []byte) {
		if len(b) < batchHeaderBytes || len(b) > 1<<16 || from < 0 {
			return
		}
		hang := time.AfterFunc(time.Minute, func() { panic("it hangs") })
		defer hang.Stop()
		binary.BigEndian.PutUint32(b[batchLengthAt:], uint32(len(b)-12))
		b[batchMagicAt] = 2
		binary.BigEndian.PutUint16(b[batchAttributesAt:], uint16(attributes))
		binary.BigEndian.PutUint32(b[batchCRCAt:], crc32.Checksum(b[batchAttributesAt:], castagnoli))
		r := batchReader{from: from, next: from, limit: maxDecodedBytes}
		err := r.read(b)
		if r.next < from {
			t.Errorf("went back to %d", r.next)
		}
		if r.decoded > maxBatchBytes || len(r.records) > r.decoded/recordBytesMin {
			t.Errorf("%d records of %d bytes", len(r.records), r.decoded)
		}
		bytes := 0
		for _, rec := range r.records {
			bytes += len(rec.Key) + len(rec.Value)
			if rec.Offset < from || err == nil && rec.Offset >= r.next {
				t.Errorf("record at %d of [%d, %d)", rec.Offset, from, r.next)
			}
			for _, h := range rec.Headers {
				bytes += len(h.Key) + len(h.Value)
			}
		}
		if bytes > r.decoded {
			t.Errorf("%d bytes in records of %d", bytes, r.decoded)
		}
		again := batchReader{from: from, next: from, limit: maxDecodedBytes}
		if errAgain := again.read(b); fmt.Sprint(err) != fmt.Sprint(errAgain) || !reflect.DeepEqual(r.records, again.records) {
			t.Errorf("not the same again: %v, %v", err, errAgain)
		}
		for _, c := range append(r.chunks, again.chunks...) {
			putChunk(c)
		}
	})
}

// FuzzScram: what a broker answers to a login is nobody's to trust.
func FuzzScram(f *testing.F) {
	f.Add("r=%,s=QSXCR+Q6sek8bf92,i=4096", "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=")
	f.Add("r=%x,s=QSXCR+Q6sek8bf92,i=4096", "e=other-error")
	f.Add("r=%x,s=,i=99999999999999999999", "")
	f.Fuzz(func(t *testing.T, first, final string) {
		m, _, err := startScram(sha256.New, "user", "password")
		if err != nil {
			t.Fatal(err)
		}
		s := m.(*scram)
		first = strings.Replace(first, "%", s.nonce, 1)
		if i, _ := strconv.Atoi(scramFields(first)["i"]); i > 1<<16 && i <= scramIterMax {
			return // allowed, and too slow for a fuzzer
		}
		done, answer, err := m.Next(t.Context(), []byte(first))
		if done || err == nil && !strings.HasPrefix(string(answer), "c=biws,r="+s.nonce) {
			t.Fatalf("%v %q %v", done, answer, err)
		}
		if err != nil {
			return
		}
		if done, _, err = m.Next(t.Context(), []byte(final)); done || err == nil {
			t.Fatalf("a broker that does not know the password is believed: %q", final)
		}
	})
}

// Memory of fetched records that was given back is used again, in bounds, and nothing that was not given back.
func TestChunksAreUsedAgain(t *testing.T) {
	c := getChunk()
	*c = append((*c)[:0], "kept"...)
	other := getChunk()
	if c == other {
		t.Fatal("one chunk for two")
	}
	putChunk(c)
	if again := getChunk(); again != c {
		t.Error("a chunk that was given back is not used again")
	}
	for range 64 {
		b := make([]byte, 0, 1<<20)
		putChunk(&b)
	}
	huge := make([]byte, 0, maxPooledBytes+1)
	putChunk(&huge)
	if chunks.bytes > maxFreeBytes {
		t.Errorf("%d bytes are kept", chunks.bytes)
	}
	sum := 0
	for _, f := range chunks.free {
		sum += cap(*f)
	}
	if sum != chunks.bytes || sum == 0 {
		t.Errorf("%d bytes are kept, %d counted", sum, chunks.bytes)
	}
}

// Many small headers, which compress to nothing, must not become a thousand times their size.
func TestHeadersAreBounded(t *testing.T) {
	rec := []byte{0}
	for _, v := range []int64{0, 0, -1} {
		rec = binary.AppendVarint(rec, v)
	}
	rec = append(binary.AppendVarint(rec, 1), 'v')
	const n = 200_000
	rec = append(binary.AppendVarint(rec, n), bytes.Repeat([]byte{0, 1}, n)...)
	var p recordParser
	got, err := p.record(rec)
	if err != nil || len(got.Headers) != maxHeaders || cap(got.Headers) > 2*maxHeaders || string(got.Value) != "v" {
		t.Errorf("%d headers, room for %d, %v", len(got.Headers), cap(got.Headers), err)
	}
	if _, err := p.record(rec[:len(rec)-1]); err == nil {
		t.Error("headers that end early are read")
	}
}
