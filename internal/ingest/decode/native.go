package decode

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest/series"
	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/signal/signaljson"
)

// Native writes an event as a line of a recording. Tests and golden files compare events in this form.
func Native(e signal.Event) string {
	var total *series.Point
	if p, ok := e.(*series.Point); ok {
		total, e = p, &p.Request
	}
	b, err := signaljson.AppendTyped(nil, e)
	if err != nil {
		return err.Error() // NaN and infinity cannot be written, and no decoder lets them in
	}
	if total != nil { // no native event: how many there were since when
		b = append(bytes.TrimSuffix(b, []byte("}")), `,"cumulative":{"total":`...)
		b = strconv.AppendUint(b, total.Count, 10)
		if !total.Start.IsZero() {
			b = total.Start.AppendFormat(append(b, `,"start":"`...), "2006-01-02T15:04:05.000Z\"")
		}
		for i, n := range total.Latencies {
			if n > 0 {
				b = fmt.Appendf(b, `,"at_most_%s":%d`, signal.LatencyBound(i).Round(time.Millisecond/10), n)
			}
		}
		b = append(b, "}}"...)
	}
	return string(b)
}
