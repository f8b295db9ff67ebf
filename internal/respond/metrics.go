package respond

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of the loop. Labels are made beforehand for closed sets, so that absent is not zero.
type Metrics struct {
	sent      *prometheus.CounterVec
	failures  *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	pending   *prometheus.GaugeVec
	oldest    *prometheus.GaugeVec
	orphans   prometheus.Gauge
	records   prometheus.Gauge
	pages     *prometheus.CounterVec
	summaries *prometheus.CounterVec
	events    prometheus.Counter
	behind    prometheus.Gauge
	storeErr  prometheus.Counter
	readErr   prometheus.Counter
	bare      *prometheus.CounterVec
	abandoned *prometheus.CounterVec
}

// NewMetrics registers the metrics; a nil registry makes them unregistered.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "tocsin", Subsystem: "respond", Name: name, Help: help}
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts(opts(name, help)), labels)
	}
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts(opts(name, help)), labels)
	}
	m := &Metrics{
		sent:     counter("deliveries_total", "Messages that a provider accepted.", "place", "kind", "action"),
		failures: counter("delivery_failures_total", "Failed deliveries, by reason.", "place", "kind", "reason"),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "tocsin", Subsystem: "respond", Name: "delivery_duration_seconds",
			Help: "Time a provider took to answer.", Buckets: []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10}}, []string{"kind"}),
		pending:   gauges("pending", "Incidents that a place has not yet been told everything about.", "place", "kind"),
		oldest:    gauges("pending_oldest_seconds", "Age of the oldest step that a place is owed.", "place", "kind"),
		orphans:   prometheus.NewGauge(prometheus.GaugeOpts(opts("orphaned", "Incidents open at places that are no longer configured, or unknown to the incident log; they have to be closed by hand."))),
		records:   prometheus.NewGauge(prometheus.GaugeOpts(opts("outbox_records", "Records in the outbox."))),
		pages:     counter("pages_total", "Pages that were accepted, first ones and raised ones.", "place", "severity"),
		summaries: counter("summaries_total", "Messages that stood for several incidents, by kind.", "summary"),
		events:    prometheus.NewCounter(prometheus.CounterOpts(opts("events_total", "Events read from the incident log."))),
		behind:    prometheus.NewGauge(prometheus.GaugeOpts(opts("behind", "1 while event time is too far behind the clock to send."))),
		storeErr:  prometheus.NewCounter(prometheus.CounterOpts(opts("outbox_write_failures_total", "Failed writes of the outbox."))),
		bare:      counter("bare_deliveries_total", "Messages that a provider refused as they were and took without their details.", "place", "kind"),
		abandoned: counter("abandoned_closes_total", "Closes that were given up after two weeks of trying; what they should have closed must be closed by hand.", "place", "kind"),
		readErr:   prometheus.NewCounter(prometheus.CounterOpts(opts("log_read_failures_total", "Failed reads of the incident log."))),
	}
	m.summaries.WithLabelValues("storm")
	m.summaries.WithLabelValues("missed")
	if reg != nil {
		reg.MustRegister(m.sent, m.failures, m.duration, m.pending, m.oldest, m.orphans, m.records, m.pages, m.summaries, m.events, m.behind, m.storeErr, m.readErr, m.bare, m.abandoned)
	}
	return m
}

func (m *Metrics) prepare(places []Place) {
	for _, p := range places {
		for _, a := range Actions {
			m.sent.WithLabelValues(p.ID, p.Kind, string(a))
		}
		for _, r := range Reasons {
			m.failures.WithLabelValues(p.ID, p.Kind, string(r))
		}
		if p.Pages {
			for _, s := range []string{"minor", "major", "critical"} {
				m.pages.WithLabelValues(p.ID, s)
			}
		}
		m.duration.WithLabelValues(p.Kind)
		m.bare.WithLabelValues(p.ID, p.Kind)
		m.abandoned.WithLabelValues(p.ID, p.Kind)
	}
}

// gauge shows what is owed.
func (m *Metrics) gauge(p *Planner, now time.Time) {
	orphans := 0
	for _, r := range p.records {
		open := r.Joined == "" && r.Got.Status != None && r.Got.Status != Closed
		if open && (p.places[r.Place] == nil || p.known && len(r.Members) == 0 && p.incidents[r.Incident] == nil) {
			orphans++
		}
	}
	for id, pl := range p.places {
		n, age := 0, 0.0
		for _, r := range p.byPlace[id] {
			if r.next(pl) != "" {
				n++
				if !r.Since.IsZero() {
					age = max(age, now.Sub(r.Since).Seconds())
				}
			}
		}
		m.pending.WithLabelValues(id, pl.Kind).Set(float64(n))
		m.oldest.WithLabelValues(id, pl.Kind).Set(age)
	}
	m.orphans.Set(float64(orphans))
	m.records.Set(float64(len(p.records)))
	m.behind.Set(0)
	if p.Behind() {
		m.behind.Set(1)
	}
}
