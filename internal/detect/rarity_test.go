package detect

import (
	"strings"
	"testing"

	"github.com/tocsin-project/tocsin/internal/detect/departure"
)

// How rare a value is was learned from a few thousand others: a number to the last digit would claim what nobody knows.
func TestRarityIsToldRoughly(t *testing.T) {
	g := &gauge{Key: gaugeKey{Resource: "queue/mail", Metric: "depth"}}
	for _, c := range []struct {
		rarity float64
		want   string
	}{
		{1.0 / 387331, "; about one of its values in 400000 lies so far out"},
		{1.0 / 1234, "; about one of its values in 1000 lies so far out"},
		{1.0 / 95, "; about one of its values in 100 lies so far out"},
		{1e-7, "; none of its values has come near to that"},
	} {
		if got := explainDeparture(g, departure.Judgement{Value: 900, Expected: 20, Abnormal: true, Rarity: c.rarity}); !strings.HasSuffix(got, c.want) {
			t.Errorf("%v: %q, want %q at its end", c.rarity, got, c.want)
		}
	}
}
