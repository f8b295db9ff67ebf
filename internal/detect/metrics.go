package detect

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// Metrics are the loop's.
type Metrics struct {
	ticks, failures      prometheus.Counter
	seconds              prometheus.Histogram
	rows                 prometheus.Counter
	transitions, events  *prometheus.CounterVec
	lag, position, parts prometheus.Gauge
}

// NewMetrics makes the metrics and registers them where reg is not nil.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "tocsin", Subsystem: "detect", Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "tocsin", Subsystem: "detect", Name: name, Help: help})
	}
	m := &Metrics{
		ticks: counter("ticks_total", "Ticks that were evaluated."), failures: counter("failures_total", "Turns of the loop that failed and were repeated."),
		rows: counter("input_rows_total", "Rows that ticks took in."),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "tocsin", Subsystem: "detect", Name: "evaluation_duration_seconds", Help: "Time to evaluate one tick.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}),
		transitions: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "tocsin", Subsystem: "detect", Name: "transitions_total", Help: "Changes of findings, by the state they changed to."}, []string{"state"}),
		events:      prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "tocsin", Subsystem: "detect", Name: "incident_events_total", Help: "Events of the incident log."}, []string{"type"}),
		lag:         gauge("lag_seconds", "How far what has been judged is behind the ingest clock."),
		position:    gauge("position_timestamp_seconds", "Event time up to which all has been judged."),
		parts:       gauge("partial_streams", "Streams that were not waited for at the last tick."),
	}
	for s := incident.Inactive; s <= incident.Unknown; s++ {
		m.transitions.WithLabelValues(s.String())
	}
	if reg != nil {
		reg.MustRegister(m.ticks, m.failures, m.rows, m.seconds, m.transitions, m.events, m.lag, m.position, m.parts)
	}
	return m
}

func (m *Metrics) evaluated(in *Inputs, out *Outputs, took time.Duration) {
	m.ticks.Inc()
	m.seconds.Observe(took.Seconds())
	m.rows.Add(float64(len(in.Cells) + len(in.Gauges) + len(in.Tickets) + len(in.Changes) + len(in.Alerts)))
	for _, t := range out.Transitions {
		m.transitions.WithLabelValues(t.Finding.State.String()).Inc()
	}
	for _, e := range out.Events {
		m.events.WithLabelValues(string(e.Type)).Inc()
	}
}

func (m *Metrics) at(h Health) {
	if h.To.IsZero() {
		return
	}
	m.lag.Set(max(h.Clock.Sub(h.To).Seconds(), 0))
	m.position.Set(float64(h.To.Unix()))
	m.parts.Set(float64(len(h.Partial)))
}
