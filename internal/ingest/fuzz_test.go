package ingest

import (
	"testing"
)

// The metadata of a commit may be anybody's: another consumer's that had the group's name before, or cut off. What is
// taken for a reservation reserves something ahead, and says the same when it is written and read again.
func FuzzReservation(f *testing.F) {
	f.Add(int64(5), reservation{End: 9, Incarnation: 2, Revision: "a1b2c3d4e5f6", Watermark: 1789288985000, ReadAt: 1789288990000}.String())
	f.Add(int64(0), `{"end":1}`)
	f.Add(int64(-1), `{"end":9223372036854775807,"incarnation":4294967296}`)
	f.Add(int64(1<<62), `{"END":1e3,"end":null,"revision":["x"]}`)
	f.Add(int64(3), "")
	f.Fuzz(func(t *testing.T, offset int64, metadata string) {
		r, ok := parseReservation(offset, metadata)
		if !ok {
			if r != (reservation{}) {
				t.Fatalf("refused, and yet %+v", r)
			}
			return
		}
		if offset < 0 || r.End <= offset {
			t.Fatalf("reserved [%d, %d)", offset, r.End)
		}
		again, ok := parseReservation(offset, r.String())
		if !ok || again != r {
			t.Fatalf("%+v becomes %+v, %v", r, again, ok)
		}
		if millis(fromMillis(r.Watermark)) != r.Watermark {
			t.Fatalf("watermark %d becomes %d", r.Watermark, millis(fromMillis(r.Watermark)))
		}
	})
}
