package clickhouse

import "github.com/prometheus/client_golang/prometheus"

// Metrics of all requests to ClickHouse.
type Metrics struct {
	requests   *prometheus.HistogramVec
	errors     *prometheus.CounterVec
	insertRows *prometheus.CounterVec
	inserts    *prometheus.CounterVec
}

// NewMetrics registers the package's metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "tocsin", Subsystem: "clickhouse", Name: "request_duration_seconds",
			Help: "How long requests to ClickHouse took, failed ones included.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}, []string{"operation"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "tocsin", Subsystem: "clickhouse", Name: "errors_total", Help: "Failed requests to ClickHouse.",
		}, []string{"reason"}),
		inserts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "tocsin", Subsystem: "clickhouse", Name: "inserts_total", Help: "Acknowledged inserts, repeated ones included.",
		}, []string{"table"}),
		insertRows: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "tocsin", Subsystem: "clickhouse", Name: "insert_rows_total",
			Help: "Rows of acknowledged inserts, repeated ones included.",
		}, []string{"table"}),
	}
	for _, r := range Reasons {
		m.errors.WithLabelValues(string(r))
	}
	reg.MustRegister(m.requests, m.errors, m.inserts, m.insertRows)
	return m
}
