package ingest

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// Metrics of the loop.
type Metrics struct {
	records     *prometheus.CounterVec
	events      *prometheus.CounterVec
	late        *prometheus.CounterVec
	rejected    *prometheus.CounterVec
	batches     *prometheus.CounterVec
	heartbeats  prometheus.Counter
	rows        *prometheus.CounterVec
	replays     *prometheus.CounterVec
	reserved    *prometheus.CounterVec
	failures    *prometheus.CounterVec
	notices     *prometheus.CounterVec
	others      *prometheus.CounterVec
	insert      prometheus.Histogram
	batchRows   prometheus.Histogram
	linger      prometheus.Gauge
	blocked     prometheus.Gauge
	generations prometheus.Counter
	lag         *prometheus.GaugeVec
	watermark   *prometheus.GaugeVec
}

// Steps that may fail and are tried again; labels of a metric.
const (
	doingFetch    = "fetch"
	doingOpen     = "open"
	doingInsert   = "insert"
	doingIdle     = "heartbeat"
	outcomeOK     = "ok"
	outcomeFenced = "fenced"
	outcomeWhat   = "unknown"
)

// NewMetrics registers them; reg may be nil in tests.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := promauto.With(reg)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Name: "tocsin_ingest_" + name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return f.NewGaugeVec(prometheus.GaugeOpts{Name: "tocsin_ingest_" + name, Help: help}, labels)
	}
	m := &Metrics{
		records:     counter("records_total", "Kafka records examined and stored.", "stream"),
		events:      counter("events_total", "Events counted and stored.", "stream"),
		late:        counter("late_events_total", "Events older than the watermark when they came.", "stream"),
		rejected:    counter("dead_letters_total", "Records or events that could not be counted, by reason.", "stream", "reason"),
		batches:     counter("batches_total", "Batches stored.", "stream"),
		rows:        counter("rows_total", "Rows stored, markers not counted.", "stream"),
		replays:     counter("takeovers_total", "Reservations found when a partition was taken over: stored already, or replayed.", "result"),
		reserved:    counter("reservations_total", "Commits that reserve a range or say that it is done, by outcome.", "outcome"),
		failures:    counter("failures_total", "Failed steps that are tried again.", "step"),
		notices:     counter("notices_total", "Gaps, topics made anew, positions that differed between Kafka and the store, services that are usually late, and attributes with too many values.", "kind"),
		others:      counter("other_keys_total", "Keys of batches that were counted as __other__ because their attribute, or the operations, had too many values.", "attribute"),
		heartbeats:  f.NewCounter(prometheus.CounterOpts{Name: "tocsin_ingest_heartbeats_total", Help: "Signs of life stored for caught-up partitions."}),
		generations: f.NewCounter(prometheus.CounterOpts{Name: "tocsin_ingest_generations_total", Help: "Assignments of partitions received."}),
		linger:      f.NewGauge(prometheus.GaugeOpts{Name: "tocsin_ingest_linger_seconds", Help: "How long batches gather at present."}),
		blocked:     f.NewGauge(prometheus.GaugeOpts{Name: "tocsin_ingest_blocked_partitions", Help: "Partitions that cannot go on at present."}),
		lag:         gauge("lag_records", "Records of the partition that are not stored yet.", "topic", "partition"),
		watermark:   gauge("watermark_timestamp_seconds", "Watermark of the partition.", "topic", "partition"),
		insert: f.NewHistogram(prometheus.HistogramOpts{Name: "tocsin_ingest_insert_duration_seconds", Help: "Duration of successful inserts.",
			Buckets: prometheus.ExponentialBuckets(0.002, 2, 14)}),
		batchRows: f.NewHistogram(prometheus.HistogramOpts{Name: "tocsin_ingest_batch_rows", Help: "Rows of a batch.",
			Buckets: prometheus.ExponentialBuckets(1, 4, 10)}),
	}
	// Absent is not zero: every label value exists from the start.
	for _, s := range signal.Streams {
		for _, v := range []*prometheus.CounterVec{m.records, m.events, m.late, m.batches, m.rows} {
			v.WithLabelValues(string(s))
		}
		for _, r := range Reasons {
			m.rejected.WithLabelValues(string(s), r)
		}
	}
	for _, r := range []string{"stored", "replayed"} {
		m.replays.WithLabelValues(r)
	}
	for _, o := range []string{outcomeOK, outcomeFenced, outcomeWhat} {
		m.reserved.WithLabelValues(o)
	}
	for _, s := range []string{doingFetch, doingOpen, doingInsert, doingIdle} {
		m.failures.WithLabelValues(s)
	}
	for _, k := range NoticeKinds {
		m.notices.WithLabelValues(string(k))
	}
	return m
}

// stored counts a batch.
func (m *Metrics) stored(b *Batch, took time.Duration) {
	s := string(b.Stream)
	m.records.WithLabelValues(s).Add(float64(b.Marker.Records))
	m.events.WithLabelValues(s).Add(float64(b.Marker.Events))
	m.late.WithLabelValues(s).Add(float64(b.Marker.Late))
	m.rows.WithLabelValues(s).Add(float64(b.Marker.Rows))
	m.batches.WithLabelValues(s).Inc()
	m.insert.Observe(took.Seconds())
	m.batchRows.Observe(float64(b.Marker.Rows))
}
