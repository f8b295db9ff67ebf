package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
)

// variant is what a Collector does with the spans.
type variant struct {
	name string
	null bool // the spans go into a table that keeps nothing, of which a view counts 10 s buckets
}

const (
	roleCollector     = "collector"
	roleCollectorNull = "collector+null"
)

var variants = []variant{{roleCollector, false}, {roleCollectorNull, true}}

// setting is how a Collector is tuned. The first one is what is measured; -sweep runs all of them once.
type setting struct {
	name      string
	gogc      string // of its process, "" for Go's default
	compress  string // of its inserts
	consumers int    // that insert at a time
	spans     int    // of an insert, at least; at most twice as many
	records   int    // of a partition that are on their way
}

// settings were found by trying. Every one of them gives the Collector large inserts and room to collect them in, as its
// exporter's documentation advises; what is left to choose hardly matters. The first cost least.
var settings = []setting{
	{name: "uncompressed", compress: "none", consumers: 2, spans: 50_000, records: 100},
	{name: "lz4", compress: "lz4", consumers: 2, spans: 50_000, records: 100},
	{name: "GOGC 400", gogc: "400", compress: "lz4", consumers: 2, spans: 50_000, records: 100},
	{name: "one consumer", compress: "lz4", consumers: 1, spans: 50_000, records: 100},
	{name: "large inserts", compress: "lz4", consumers: 2, spans: 100_000, records: 250},
	{name: "GOGC 400, large inserts, uncompressed", gogc: "400", compress: "none", consumers: 2, spans: 100_000, records: 250},
}

// json is the Collector's configuration (JSON is YAML): from a topic of spans into ClickHouse, at least once. An
// offset is marked when the INSERT that has the record was answered, which nothing but the queue's wait_for_result
// tells the receiver.
func (s setting) json(c config, topic, group string, createSchema bool) ([]byte, error) {
	type object = map[string]any
	receiver := object{
		"brokers": []string{c.Kafka}, "group_id": group, "initial_offset": "earliest",
		"traces":         object{"topics": []string{topic}, "encoding": "otlp_proto"},
		"max_fetch_size": 8 << 20, "max_partition_fetch_size": 4 << 20,
		"message_marking": object{"after": true, "on_error": false},
		"error_backoff":   object{"enabled": true, "initial_interval": "100ms", "max_interval": "5s", "max_elapsed_time": "0"},
		"partition_processing": object{"independent": true, "max_prefetch": object{"batches": 4},
			"max_in_flight": object{"records": s.records, "bytes": 256 << 20, "window": "cross_fetch"}},
	}
	exporter := object{
		"endpoint": "http://" + c.ClickHouse, "database": collectorDatabase, "create_schema": createSchema,
		"timeout": "60s", "compress": s.compress, "async_insert": false,
		"sending_queue": object{"enabled": true, "num_consumers": s.consumers, "sizer": "items", "queue_size": 8 * s.spans,
			"block_on_overflow": true, "wait_for_result": true,
			"batch": object{"min_size": s.spans, "max_size": 2 * s.spans, "flush_timeout": "1s"}},
	}
	j, err := json.MarshalIndent(object{
		"receivers": object{"kafka": receiver}, "exporters": object{"clickhouse": exporter},
		"service": object{
			"telemetry": object{"metrics": object{"level": "none"}, "logs": object{"level": "warn"}},
			"pipelines": object{"traces": object{"receivers": []string{"kafka"}, "exporters": []string{"clickhouse"}}}},
	}, "", " ")
	if err != nil {
		return nil, fmt.Errorf("write the Collector's configuration: %w", err)
	}
	return j, nil
}

const collectorDatabase = "otel"

// The counting view of the Null variant keeps what failure rates need, and nothing else.
const (
	countedTable = `CREATE TABLE otel.path_10s (ts DateTime CODEC(Delta, ZSTD(1)), service LowCardinality(String), route LowCardinality(String),
		method LowCardinality(String), region LowCardinality(String), total UInt64, failed UInt64)
		ENGINE = SummingMergeTree((total, failed)) PARTITION BY toDate(ts) ORDER BY (service, route, method, region, ts)`
	countingView = `CREATE MATERIALIZED VIEW otel.path_10s_mv TO otel.path_10s AS
		SELECT toStartOfInterval(toDateTime(Timestamp), INTERVAL 10 SECOND) AS ts, ServiceName AS service, SpanAttributes['http.route'] AS route,
			SpanAttributes['http.request.method'] AS method, ResourceAttributes['cloud.region'] AS region,
			count() AS total, countIf(StatusCode = 'Error') AS failed
		FROM otel.otel_traces WHERE SpanKind = 'Server' GROUP BY ts, service, route, method, region`
)

// landed says how many spans are stored.
func (v variant) landed() string {
	if v.null {
		return "SELECT toString(sum(total)) FROM otel.path_10s"
	}
	return "SELECT toString(count()) FROM otel.otel_traces"
}

// totals are what is compared with the truth.
func (v variant) totals() string {
	if v.null {
		return "SELECT service, route, method, region, toString(sum(total)), toString(sum(failed)) FROM otel.path_10s GROUP BY 1, 2, 3, 4"
	}
	return `SELECT toString(ServiceName), SpanAttributes['http.route'], SpanAttributes['http.request.method'], ResourceAttributes['cloud.region'],
		toString(count()), toString(countIf(StatusCode = 'Error')) FROM otel.otel_traces WHERE SpanKind = 'Server' GROUP BY 1, 2, 3, 4`
}

func configFile(dir, name string) string { return filepath.Join(dir, name+".json") }
