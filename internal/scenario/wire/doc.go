// Package wire puts a scenario's events into the bytes in which a real company would send them to Kafka: spans as the
// OpenTelemetry Collector's Kafka exporter writes them, gauges, tickets and changes as native JSON. It makes records and
// leaves it to the caller to produce them; it talks to no broker. The demo, the tests of ingest and the benchmarks use it.
package wire
