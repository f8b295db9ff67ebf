package detect

import "testing"

// What filled up and is low again has not stayed low, whatever it is now: of a resource that ran out nobody may read so.
func TestCalmIsCalmSinceTroubleBegan(t *testing.T) {
	const begin, now = 6 * 60, 6 * 90 // buckets: an hour of before, half an hour of trouble and its end
	for name, limit := range map[string]float64{"with a limit": 100, "without": 0} {
		rose, stayed := &gauge{Spacing: 6}, &gauge{Spacing: 6}
		for b := int64(0); b <= now; b += 6 {
			v := 20.0
			if b > begin+30 && b < begin+90 {
				v = 95
			}
			for g, v := range map[*gauge]float64{rose: v, stayed: 20} {
				p := gaugePoint{b, v, limit}
				g.Points, g.Last = append(g.Points, p), b
				g.Coarse = append(g.Coarse, gaugePoint{minuteOf(b), v, limit})
			}
		}
		if rose.calm(begin, now) {
			t.Errorf("%s: a gauge that was full in between is said to have stayed low", name)
		}
		if !stayed.calm(begin, now) || !rose.calm(begin+96, now) {
			t.Errorf("%s: a gauge that stayed low is not said to have", name)
		}
	}
}
