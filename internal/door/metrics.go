package door

import "github.com/prometheus/client_golang/prometheus"

// Outcomes of a request, as labels.
const (
	outcomeAccepted    = "accepted"
	outcomeDenied      = "denied"      // no proof of who sent it
	outcomeBad         = "bad_request" // not what the address takes
	outcomeTooLarge    = "too_large"
	outcomeBusy        = "busy"        // too many at a time
	outcomeUnavailable = "unavailable" // Kafka did not take it
)

var outcomes = []string{outcomeAccepted, outcomeDenied, outcomeBad, outcomeTooLarge, outcomeBusy, outcomeUnavailable}

// Metrics of one process.
type Metrics struct {
	requests *prometheus.CounterVec
	bytes    *prometheus.CounterVec
	serving  prometheus.Gauge
}

// NewMetrics registers the metrics. A nil registerer keeps them to themselves.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "tocsin", Subsystem: "door", Name: "requests_total", Help: "Requests over HTTP that bring records, by pipeline and outcome.",
		}, []string{"pipeline", "outcome"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "tocsin", Subsystem: "door", Name: "accepted_bytes_total", Help: "Bytes of bodies that were put onto a topic.",
		}, []string{"pipeline"}),
		serving: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "tocsin", Subsystem: "door", Name: "requests_in_flight", Help: "Requests that are being served; door.concurrent_max at most.",
		}),
	}
	if reg != nil {
		reg.MustRegister(m.requests, m.bytes, m.serving)
	}
	return m
}
