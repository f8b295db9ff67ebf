package detect

import (
	"encoding/binary"

	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	// ringBuckets is how many buckets a ring holds: those that windows reach and some more, so that who looks a little late finds
	// all. It is a multiple of 64, for the bits of present.
	ringBuckets = int64(384)
	// colTimed counts requests with a known latency, and the columns from colSlow on those of them that were slower than each bound.
	colTimed = int(signal.NumOutcomes)
	colSlow  = colTimed + 1
	// widest is the largest count of which an hour adds up in 32 bits.
	widest = 11_000_000
)

// ring counts the requests of one series by bucket: a column for each outcome and latency bound, each as wide as its largest
// count. Most columns are a byte wide, or hold nothing and take no room. The place of a bucket is its number modulo ringBuckets; which
// buckets are in it the series knows.
type ring struct {
	data    []byte // the columns, one after another
	cols    []column
	present [ringBuckets / 64]uint64 // buckets with any row
	// timed tells that colTimed is counted apart, because once it was not the same as all requests.
	timed bool
}

// column is where a column begins and how many bytes a count takes: 0, 1, 2, 4 or 8.
type column struct {
	off   uint32
	width uint8
}

// columnsFor is how many columns a ring has for a number of latency bounds.
func columnsFor(bounds int) int {
	if bounds == 0 {
		return colTimed
	}
	return colSlow + bounds
}

func placeOf(bucket int64) int { return int(((bucket % ringBuckets) + ringBuckets) % ringBuckets) }

func widthOf(v uint64) uint8 {
	switch {
	case v == 0:
		return 0
	case v <= 0xff:
		return 1
	case v <= 0xffff:
		return 2
	case v <= widest:
		return 4
	}
	return 8
}

func (r *ring) get(col, place int) uint64 {
	c := r.cols[col]
	switch c.width {
	case 0:
		return 0
	case 1:
		return uint64(r.data[int(c.off)+place])
	case 2:
		return uint64(binary.LittleEndian.Uint16(r.data[int(c.off)+2*place:]))
	case 4:
		return uint64(binary.LittleEndian.Uint32(r.data[int(c.off)+4*place:]))
	}
	return binary.LittleEndian.Uint64(r.data[int(c.off)+8*place:])
}

func (r *ring) set(col, place int, v uint64) {
	if w := widthOf(v); w > r.cols[col].width {
		r.widen(col, w)
	}
	c := r.cols[col]
	switch c.width {
	case 0:
	case 1:
		r.data[int(c.off)+place] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(r.data[int(c.off)+2*place:], uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(r.data[int(c.off)+4*place:], uint32(v))
	default:
		binary.LittleEndian.PutUint64(r.data[int(c.off)+8*place:], v)
	}
}

func (r *ring) add(col, place int, n uint64) {
	if n > 0 {
		r.set(col, place, r.get(col, place)+n)
	}
}

// widen makes room in a column for larger counts.
func (r *ring) widen(col int, width uint8) {
	old := ring{data: r.data, cols: r.cols}
	r.lay(func(c int) uint8 {
		if c == col {
			return width
		}
		return old.cols[c].width
	}, len(old.cols))
	for c := range r.cols {
		if c != col {
			copy(r.column(c), old.column(c))
			continue
		}
		for p := range int(ringBuckets) {
			r.set(c, p, old.get(c, p))
		}
	}
}

// lay makes columns of the given widths, without counts.
func (r *ring) lay(width func(col int) uint8, n int) {
	size := 0
	r.cols = make([]column, n)
	for c := range r.cols {
		w := width(c)
		r.cols[c] = column{uint32(size), w}
		size += int(w) * int(ringBuckets)
	}
	r.data = make([]byte, size)
}

func (r *ring) column(col int) []byte {
	c := r.cols[col]
	return r.data[c.off : int(c.off)+int(c.width)*int(ringBuckets)]
}

// clear empties the places of the buckets in [from, to).
func (r *ring) clear(from, to int64) {
	if to-from >= ringBuckets {
		clear(r.data)
		r.present = [ringBuckets / 64]uint64{}
		return
	}
	for from < to {
		a := placeOf(from)
		n := min(int(to-from), int(ringBuckets)-a)
		for _, c := range r.cols {
			if c.width > 0 {
				w := int(c.width)
				clear(r.data[int(c.off)+a*w : int(c.off)+(a+n)*w])
			}
		}
		for p := a; p < a+n; p++ {
			r.present[p/64] &^= 1 << (p % 64)
		}
		from += int64(n)
	}
}

func (r *ring) has(place int) bool { return r.present[place/64]>>(place%64)&1 == 1 }

// sum adds up a column over the buckets in [from, to), no more than the ring holds.
func (r *ring) sum(col int, from, to int64) (n uint64) {
	c := r.cols[col]
	if c.width == 0 || from >= to {
		return 0
	}
	a := placeOf(from)
	b := a + int(to-from)
	if b > int(ringBuckets) {
		return r.sumPlaces(c, a, int(ringBuckets)) + r.sumPlaces(c, 0, b-int(ringBuckets))
	}
	return r.sumPlaces(c, a, b)
}

// sumPlaces adds eight bytes at a time.
func (r *ring) sumPlaces(c column, a, b int) (n uint64) {
	w := int(c.width)
	p := r.data[int(c.off)+a*w : int(c.off)+b*w]
	switch c.width {
	case 1:
		const even = 0x00ff00ff00ff00ff
		var s uint64 // four sums of 16 bits: 48 words of twice 255 fit
		for ; len(p) >= 8; p = p[8:] {
			x := binary.LittleEndian.Uint64(p)
			s += x&even + x>>8&even
		}
		n = s&0xffff + s>>16&0xffff + s>>32&0xffff + s>>48
		for _, x := range p {
			n += uint64(x)
		}
	case 2:
		const even = 0x0000ffff0000ffff
		var s uint64
		for ; len(p) >= 8; p = p[8:] {
			x := binary.LittleEndian.Uint64(p)
			s += x&even + x>>16&even
		}
		n = s&0xffffffff + s>>32
		for ; len(p) >= 2; p = p[2:] {
			n += uint64(binary.LittleEndian.Uint16(p))
		}
	case 4:
		for ; len(p) >= 4; p = p[4:] {
			n += uint64(binary.LittleEndian.Uint32(p))
		}
	default:
		for ; len(p) >= 8; p = p[8:] {
			n += binary.LittleEndian.Uint64(p)
		}
	}
	return n
}

// total is the number of requests of any outcome at a place.
func (r *ring) total(place int) (n uint64) {
	for o := range int(signal.NumOutcomes) {
		n += r.get(o, place)
	}
	return n
}

// timedAt is the number of requests with a known latency at a place.
func (r *ring) timedAt(place int) uint64 {
	if r.timed {
		return r.get(colTimed, place)
	}
	return r.total(place)
}

// timeApart counts requests with a known latency apart from now on.
func (r *ring) timeApart() {
	if r.timed {
		return
	}
	for p := range int(ringBuckets) {
		if n := r.total(p); n > 0 {
			r.set(colTimed, p, n)
		}
	}
	r.timed = true
}
