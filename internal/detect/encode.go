package detect

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// Series are most of a snapshot: their points are numbers, mostly small, so they are written as variable-length
// integers, each bucket as its distance from the one before.

type seriesJSON struct {
	Key  signal.Key
	Data []byte
}

// MarshalJSON writes the key in words and the rest as packed numbers.
func (s series) MarshalJSON() ([]byte, error) {
	var w packer
	w.int(s.last)
	w.float(s.spacing)
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
	w.uint(uint64(len(s.points)))
	last := int64(0)
	for i := range s.points {
		p := &s.points[i]
		w.int(p.bucket - last)
		last = p.bucket
		for _, n := range p.outcomes {
			w.uint(n)
		}
		w.uint(p.timed)
		w.uint(uint64(len(p.slow)))
		for _, n := range p.slow {
			w.uint(n)
		}
		w.uint(uint64(len(p.accounts)))
		for _, h := range p.accounts {
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
	w.int(s.quietFrom)
	return json.Marshal(seriesJSON{s.key, w.b})
}

// UnmarshalJSON is the reverse. Numbers that do not fit are an error, never a panic: a snapshot comes from outside.
func (s *series) UnmarshalJSON(b []byte) error {
	var j seriesJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	r := unpacker{b: j.Data}
	*s = series{key: j.Key, last: r.int(), spacing: r.float(), quietTo: r.int(), usualTo: r.int()}
	for i := range s.usual {
		s.usual[i] = r.float()
	}
	s.usualTimed = r.float()
	for range r.len() {
		s.usualSlow = append(s.usualSlow, r.float())
	}
	last := int64(0)
	for range r.len() {
		p := point{bucket: last + r.int()}
		last = p.bucket
		for o := range p.outcomes {
			p.outcomes[o] = r.uint()
		}
		p.timed = r.uint()
		for range r.len() {
			p.slow = append(p.slow, r.uint())
		}
		p.slowBefore = make([]uint64, len(p.slow))
		for range r.len() {
			p.accounts = append(p.accounts, r.fixed())
		}
		s.points = append(s.points, p)
	}
	s.accumulate(0)
	for range r.len() {
		l := &leaf{attributes: signal.Attributes(r.text())}
		for range r.len() {
			l.minutes = append(l.minutes, leafMinute{minute: r.int(), total: r.uint(), failures: r.uint()})
		}
		s.leaves = append(s.leaves, l)
	}
	if len(r.b) > 0 { // one that was written before this was kept has all up to quietTo
		s.quietFrom = r.int()
	}
	if r.err != nil {
		return fmt.Errorf("series %s: %w", j.Key.Path, r.err)
	}
	return nil
}

type packer struct{ b []byte }

func (w *packer) int(v int64)     { w.b = binary.AppendVarint(w.b, v) }
func (w *packer) uint(v uint64)   { w.b = binary.AppendUvarint(w.b, v) }
func (w *packer) fixed(v uint64)  { w.b = binary.LittleEndian.AppendUint64(w.b, v) }
func (w *packer) float(v float64) { w.fixed(math.Float64bits(v)) }
func (w *packer) text(s string)   { w.uint(uint64(len(s))); w.b = append(w.b, s...) }

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
		r.err, r.b = errShort, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *unpacker) fixed() uint64 {
	if len(r.b) < 8 {
		r.err, r.b = errShort, nil
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
		r.err, r.b = errShort, nil
		return 0
	}
	return int(n)
}

func (r *unpacker) text() string {
	n := r.len()
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}
