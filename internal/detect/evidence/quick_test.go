package evidence_test

import (
	"math/rand/v2"
	"testing"

	"github.com/tocsin-project/tocsin/internal/detect/evidence"
)

// The quick answer may miss that there is no evidence, but never that there is some; and it has to be of use.
func TestBelowIsNeverWrong(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	asked, quick, over := 0, 0, 0
	for range 60 {
		m := evidence.Default()
		k := evidence.New(&m, 1e-6, 0, nil)
		usual, trouble := 0.02*r.Float64()*r.Float64(), 0
		for minute := int64(0); minute < 900; minute++ {
			if r.IntN(300) == 0 {
				trouble = 20
			}
			share := usual
			if trouble--; trouble > 0 {
				share = 0.3 * r.Float64()
			}
			for range 3 {
				n := uint64(r.IntN(60))
				f := uint64(0)
				for range n {
					if r.Float64() < share {
						f++
					}
				}
				k.Observe(minute, n, f)
				below, score := k.Below(), k.Score()
				if below && score >= 0 {
					t.Fatalf("minute %d: quickly below, but the evidence is %g", minute, score)
				}
				if most, gain := k.GainAtMost(minute+1), k.Gain(minute+1); most < gain*(1-1e-9) {
					t.Fatalf("minute %d: a gain of at most %g is %g", minute, most, gain)
				}
				asked++
				if below {
					quick++
				}
				if score >= 0 {
					over++
				}
			}
		}
	}
	if quick < asked/2 || over < 100 {
		t.Errorf("of %d answers %d were quick, %d had evidence", asked, quick, over)
	}
}
