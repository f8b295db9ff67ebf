package detect

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Metrics are the loop's own. Label values are made beforehand, so that absent is not zero.
type Metrics struct {
	ticks, steps, partial prometheus.Counter
	duration              prometheus.Histogram
	lag, checkpoint       prometheus.Gauge
	failures              *prometheus.CounterVec
	events                *prometheus.CounterVec
	transitions           *prometheus.CounterVec
	warnings              prometheus.Counter
	queries               *prometheus.CounterVec
	queriesSkipped        prometheus.Counter
	queryDuration         prometheus.Histogram
}

// NewMetrics registers them; a nil registerer makes metrics that nobody reads.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "tocsin", Subsystem: "detect", Name: name, Help: help})
	}
	vec := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "tocsin", Subsystem: "detect", Name: name, Help: help}, []string{label})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "tocsin", Subsystem: "detect", Name: name, Help: help})
	}
	m := &Metrics{
		ticks:   counter("ticks_total", "Ticks evaluated."),
		steps:   counter("steps_total", "Buckets of event time evaluated."),
		partial: counter("partial_ticks_total", "Ticks that did not wait for a lagging stream any longer."),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "tocsin", Subsystem: "detect", Name: "tick_duration_seconds", Help: "Time that the evaluation of a tick took.",
			Buckets: []float64{0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10},
		}),
		lag:         gauge("lag_seconds", "How far the judged event time is behind the ingest clock."),
		checkpoint:  gauge("checkpoint_bytes", "Size of the newest checkpoint."),
		failures:    vec("failures_total", "Rounds that failed, by stage; each is tried again.", "stage"),
		events:      vec("incident_events_total", "Entries in the incident log, by type.", "type"),
		transitions: vec("finding_transitions_total", "Findings that changed their state, by the new state.", "state"),
		warnings:    counter("warnings_total", "Warnings that a resource runs out."),

		queries:        vec("queries_total", "Queries of sql rules, by what came of them.", "outcome"),
		queriesSkipped: counter("queries_skipped_total", "Queries of sql rules that were due while the one before still ran."),
		queryDuration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "tocsin", Subsystem: "detect", Name: "query_duration_seconds", Help: "Time that queries of sql rules took.",
			Buckets: prometheus.ExponentialBuckets(0.01, 3, 9),
		}),
	}
	for _, o := range queryOutcomes {
		m.queries.WithLabelValues(o)
	}
	for _, s := range []string{"lead", "resume", "progress", "decide", "claim", "evaluate", "commit"} {
		m.failures.WithLabelValues(s)
	}
	for _, t := range []incident.EventType{incident.EventSuspected, incident.EventDeclared, incident.EventMitigated, incident.EventResolved, incident.EventDismissed} {
		m.events.WithLabelValues(string(t))
	}
	for s := incident.Inactive; s <= incident.Unknown; s++ {
		m.transitions.WithLabelValues(s.String())
	}
	if reg != nil {
		reg.MustRegister(m.ticks, m.steps, m.partial, m.duration, m.lag, m.checkpoint, m.failures, m.events, m.transitions, m.warnings, m.queries, m.queriesSkipped, m.queryDuration)
	}
	return m
}

func (m *Metrics) evaluated(t *Tick, took time.Duration) {
	m.ticks.Inc()
	m.steps.Add(max(0, float64(t.To.Sub(t.From)/signal.BucketSize)))
	if len(t.Partial) > 0 {
		m.partial.Inc()
	}
	m.duration.Observe(took.Seconds())
}

func (m *Metrics) concluded(o *Outputs) {
	for i := range o.Events {
		m.events.WithLabelValues(string(o.Events[i].Type)).Inc()
	}
	for i := range o.Transitions {
		m.transitions.WithLabelValues(o.Transitions[i].Finding.State.String()).Inc()
	}
	m.warnings.Add(float64(len(o.Warnings)))
}
