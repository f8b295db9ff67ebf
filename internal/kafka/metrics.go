package kafka

import "github.com/prometheus/client_golang/prometheus"

// Outcomes of a commit, as labels.
const (
	outcomeOK      = "ok"
	outcomeFenced  = "fenced"
	outcomeUnknown = "unknown"
)

// The operations, as labels.
const (
	opFetch        = "fetch"
	opListOffsets  = "list_offsets"
	opCommit       = "commit"
	opCommitted    = "fetch_committed"
	opProduce      = "produce"
	opMetadata     = "metadata"
	opCreateTopics = "create_topics"
	opDescribe     = "describe_group"
	opJoin         = "join_group"
)

var operations = []string{opFetch, opListOffsets, opCommit, opCommitted, opProduce, opMetadata, opCreateTopics, opDescribe, opJoin}

// Metrics of one process; clients share it.
type Metrics struct {
	fetches         prometheus.Counter
	fetchedRecords  prometheus.Counter
	fetchedBytes    prometheus.Counter
	producedRecords prometheus.Counter
	producedBytes   prometheus.Counter
	errors          *prometheus.CounterVec
	commits         *prometheus.CounterVec
	generations     prometheus.Counter
	rejoins         *prometheus.CounterVec
}

// NewMetrics registers the metrics. A nil registerer keeps them to themselves.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "tocsin", Subsystem: "kafka", Name: name, Help: help})
	}
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(
			prometheus.CounterOpts{Namespace: "tocsin", Subsystem: "kafka", Name: name, Help: help}, labels)
	}
	m := &Metrics{
		fetches:         counter("fetches_total", "Fetch requests answered without an error."),
		fetchedRecords:  counter("fetched_records_total", "Records fetched, without skipped and aborted ones."),
		fetchedBytes:    counter("fetched_bytes_total", "Bytes of fetch responses as sent, compressed."),
		producedRecords: counter("produced_records_total", "Records acknowledged by all in-sync replicas."),
		producedBytes:   counter("produced_bytes_total", "Bytes of keys and values produced, before compression."),
		errors:          vec("errors_total", "Failed operations by reason.", "operation", "reason"),
		commits:         vec("commits_total", "Offset commits by outcome: ok, fenced, unknown.", "outcome"),
		generations:     counter("group_generations_total", "Generations of consumer groups this process took part in."),
		rejoins: vec("group_rejoins_total",
			"Times a member left its group to join anew: poisoned (unknown outcome), returned (the consumer gave up).", "cause"),
	}
	// Made beforehand, so that absent is not zero.
	for _, op := range operations {
		for _, r := range Reasons {
			m.errors.WithLabelValues(op, string(r))
		}
	}
	for _, o := range []string{outcomeOK, outcomeFenced, outcomeUnknown} {
		m.commits.WithLabelValues(o)
	}
	for _, c := range []string{causePoisoned, causeReturned} {
		m.rejoins.WithLabelValues(c)
	}
	if reg != nil {
		reg.MustRegister(m.fetches, m.fetchedRecords, m.fetchedBytes, m.producedRecords, m.producedBytes, m.errors,
			m.commits, m.generations, m.rejoins)
	}
	return m
}
