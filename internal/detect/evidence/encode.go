package evidence

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// version changes with the meaning of the bytes.
const version = 2

var errShort = errors.New("the state of a key ends too early")

// floats lists all numbers of the state that are no counts, in the order in which they are written.
func (k *Key) floats(each func(*float64)) {
	l := &k.learned
	for _, p := range []*float64{
		&k.share, &l.n, &l.f, &l.blocks, &l.excess, &l.scale, &l.driftExcess, &l.driftScale, &l.hourMean, &l.hourCount,
		&k.null.level, &k.null.p0, &k.null.k,
	} {
		each(p)
	}
	for j := range k.before {
		each(&k.before[j])
	}
	for j := range k.capped {
		each(&k.capped[j])
		each(&k.bare[j])
	}
}

// AppendBinary writes the whole state but Model and Season. Equal keys give equal bytes.
func (k *Key) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, version)
	for _, v := range []int64{k.born, k.minute, k.refreshed, k.learned.to, k.learned.last, k.learned.hour, int64(k.guarded)} {
		b = binary.AppendVarint(b, v)
	}
	b = binary.AppendUvarint(binary.AppendUvarint(b, k.n), k.f)
	k.floats(func(p *float64) { b = binary.LittleEndian.AppendUint64(b, math.Float64bits(*p)) })
	for i := range k.ns {
		left := uint64(0)
		if k.left[i] {
			left = 1
		}
		b = binary.AppendUvarint(b, uint64(k.ns[i])<<1|left)
		b = binary.AppendUvarint(b, uint64(k.fs[i]))
		b = append(b, byte(k.scores[i]))
	}
	return b, nil
}

// Decode reads what AppendBinary wrote. Bytes that do not fit are an error, never a panic.
func Decode(m *Model, season Season, b []byte) (*Key, error) {
	if len(b) == 0 || b[0] != version {
		return nil, fmt.Errorf("the state of a key is not of version %d", version)
	}
	k := &Key{model: m, season: season}
	r := reader{b: b[1:]}
	guarded := int64(0)
	for _, p := range []*int64{&k.born, &k.minute, &k.refreshed, &k.learned.to, &k.learned.last, &k.learned.hour, &guarded} {
		*p = r.int()
	}
	k.guarded = int32(guarded)
	k.n, k.f = r.uint(), r.uint()
	k.floats(func(p *float64) { *p = r.float() })
	for i := range k.ns {
		v := r.uint()
		k.ns[i], k.left[i] = uint32(v>>1), v&1 == 1
		k.fs[i] = uint32(r.uint())
		k.scores[i] = r.score()
	}
	if r.err == nil && len(r.b) > 0 {
		r.err = fmt.Errorf("the state of a key has %d bytes too many", len(r.b))
	}
	if r.err != nil {
		return nil, r.err
	}
	if !(k.share > 0) || !(k.null.k > 0) || !(k.null.p0 > 0) || k.born > k.minute {
		return nil, errors.New("the state of a key makes no sense")
	}
	k.null.derive(m)
	return k, nil
}

type reader struct {
	b   []byte
	err error
}

func (r *reader) skip(n int) {
	if n <= 0 || n > len(r.b) {
		r.b, r.err = nil, errShort
		return
	}
	r.b = r.b[n:]
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.b)
	r.skip(n)
	return v
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	r.skip(n)
	return v
}

func (r *reader) float() float64 {
	if len(r.b) < 8 {
		r.b, r.err = nil, errShort
		return 0
	}
	v := math.Float64frombits(binary.LittleEndian.Uint64(r.b))
	r.skip(8)
	return v
}

func (r *reader) float32() float32 {
	if len(r.b) < 4 {
		r.b, r.err = nil, errShort
		return 0
	}
	v := math.Float32frombits(binary.LittleEndian.Uint32(r.b))
	r.skip(4)
	return v
}

func (r *reader) score() int8 {
	if len(r.b) < 1 {
		r.b, r.err = nil, errShort
		return 0
	}
	v := int8(r.b[0])
	r.skip(1)
	return v
}
