// Package senderstest holds Tocsin to what real programs send: an OpenTelemetry Collector, a Prometheus and an
// Alertmanager, built from their modules, send to Kafka and to the door of a running ingest loop, and what is stored is
// compared with what they were given. It has tests only; make senders builds the programs, and without them the tests
// are skipped.
package senderstest
