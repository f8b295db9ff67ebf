package decode

import (
	"math"
	"strconv"
	"strings"
)

// maxScale bounds what one sampled span may stand for.
const maxScale = 1 << 20

// probabilityOf reads the sampling threshold of OpenTelemetry's tracestate: ot=th:c is a probability of 1/4, th being
// the rejected share in hexadecimal fractions. 0 means that nothing is said.
func probabilityOf(traceState string) float64 {
	for traceState != "" {
		var entry string
		entry, traceState, _ = strings.Cut(traceState, ",")
		value, ok := strings.CutPrefix(strings.TrimSpace(entry), "ot=")
		if !ok {
			continue
		}
		for part := range strings.SplitSeq(value, ";") {
			th, ok := strings.CutPrefix(part, "th:")
			if !ok || th == "" || len(th) > 14 {
				continue
			}
			n, err := strconv.ParseUint(th, 16, 64)
			if err != nil {
				return 0
			}
			return 1 - float64(n)/math.Pow(16, float64(len(th)))
		}
	}
	return 0
}

// scale is the number of requests that a span of this probability stands for. A fraction is rounded by the span's own
// id, so that the sum is right and a replay gives the same.
func scale(p float64, id uint64) (count uint64, ok bool) {
	if !(p > 0 && p <= 1) || 1/p > maxScale {
		return 1, false
	}
	whole, part := math.Modf(1 / p)
	count = uint64(whole)
	if part > 1e-9 && float64(id)/math.MaxUint64 < part {
		count++
	}
	return count, true
}
