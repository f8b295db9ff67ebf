package detect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// Series are most of a snapshot. Their rings are written as they are, column by column: that is fast both ways, and what is small
// or zero the compression takes out.

// series writes one.
func (w *packer) series(s *series) {
	w.key(s.key)
	w.int(s.last)
	w.float(s.spacing)
	w.int(s.quietFrom)
	w.int(s.quietTo)
	w.int(s.usualTo)
	for _, v := range s.usual {
		w.float(v)
	}
	w.float(s.usualTimed)
	w.uint(uint64(len(s.usualSlow)))
	for _, v := range s.usualSlow {
		w.float(v)
	}
	w.uint(uint64(len(s.cols)))
	for _, c := range s.cols {
		w.b = append(w.b, c.width)
	}
	w.bool(s.timed)
	for _, v := range s.present {
		w.fixed(v)
	}
	w.b = append(w.b, s.data...)
	w.uint(uint64(len(s.accounts)))
	for _, x := range s.accounts {
		w.int(x.bucket)
		w.uint(uint64(len(x.sketch)))
		for _, h := range x.sketch {
			w.fixed(h)
		}
	}
	w.uint(uint64(len(s.leaves)))
	for _, l := range s.leaves {
		w.text(string(l.attributes))
		w.uint(uint64(len(l.minutes)))
		for _, m := range l.minutes {
			w.int(m.minute)
			w.uint(m.total)
			w.uint(m.failures)
		}
	}
	w.bool(s.leafOverflow)
}

// series reads one, into a ring of so many columns. Numbers that do not fit are an error, never a panic: a snapshot comes from outside.
func (r *unpacker) series(columns int) *series {
	s := &series{key: r.key(), last: r.int(), spacing: r.float(), quietFrom: r.int(), quietTo: r.int(), usualTo: r.int()}
	for i := range s.usual {
		s.usual[i] = r.float()
	}
	s.usualTimed = r.float()
	for range r.len() {
		s.usualSlow = append(s.usualSlow, r.float())
	}
	widths := r.bytes(r.len())
	if len(widths) != 0 && len(widths) != columns {
		r.fail(fmt.Errorf("a ring of %d columns", len(widths)))
		return s
	}
	for _, w := range widths {
		if w > 8 || w&(w-1) != 0 {
			r.fail(fmt.Errorf("a column that is %d bytes wide", w))
			return s
		}
	}
	s.timed = r.bool()
	for i := range s.present {
		s.present[i] = r.fixed()
	}
	if len(widths) > 0 {
		s.lay(func(c int) uint8 { return widths[c] }, columns)
		copy(s.data, r.bytes(len(s.data)))
	}
	for range r.len() {
		x := accounted{bucket: r.int()}
		for range r.len() {
			x.sketch = append(x.sketch, r.fixed())
		}
		s.accounts = append(s.accounts, x)
	}
	for range r.len() {
		l := &leaf{attributes: signal.Attributes(r.text())}
		for range r.len() {
			l.minutes = append(l.minutes, leafMinute{minute: r.int(), total: r.uint(), failures: r.uint()})
		}
		s.leaves = append(s.leaves, l)
	}
	s.leafOverflow = r.bool()
	s.troubled = s.last // to be on the safe side
	s.hour = s.total(s.last+1-keepBuckets, s.last+1)
	return s
}

type packer struct{ b []byte }

func (w *packer) int(v int64)     { w.b = binary.AppendVarint(w.b, v) }
func (w *packer) uint(v uint64)   { w.b = binary.AppendUvarint(w.b, v) }
func (w *packer) fixed(v uint64)  { w.b = binary.LittleEndian.AppendUint64(w.b, v) }
func (w *packer) float(v float64) { w.fixed(math.Float64bits(v)) }
func (w *packer) text(s string)   { w.uint(uint64(len(s))); w.b = append(w.b, s...) }
func (w *packer) blob(b []byte)   { w.uint(uint64(len(b))); w.b = append(w.b, b...) }
func (w *packer) bool(v bool) {
	if v {
		w.b = append(w.b, 1)
	} else {
		w.b = append(w.b, 0)
	}
}

var errShort = errors.New("the packed numbers end too early")

type unpacker struct {
	b   []byte
	err error
}

func (r *unpacker) int() int64 {
	v, n := binary.Varint(r.b)
	return int64(r.took(uint64(v), n))
}

func (r *unpacker) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	return r.took(v, n)
}

func (r *unpacker) took(v uint64, n int) uint64 {
	if n <= 0 {
		r.fail(errShort)
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *unpacker) fixed() uint64 {
	if len(r.b) < 8 {
		r.fail(errShort)
		return 0
	}
	v := binary.LittleEndian.Uint64(r.b)
	r.b = r.b[8:]
	return v
}

func (r *unpacker) float() float64 { return math.Float64frombits(r.fixed()) }

// len is a length that what is left can hold.
func (r *unpacker) len() int {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.fail(errShort)
		return 0
	}
	return int(n)
}

func (r *unpacker) text() string { return string(r.blob()) }
func (r *unpacker) blob() []byte { return r.bytes(r.len()) }

func (r *unpacker) bool() bool {
	b := r.bytes(1)
	return len(b) == 1 && b[0] == 1
}

func (r *unpacker) bytes(n int) []byte {
	if n > len(r.b) {
		r.fail(errShort)
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *unpacker) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.b = nil
}
