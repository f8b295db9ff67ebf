// Package front serves the part of ClickHouse's HTTP interface that clickhouse-go, curl and analysts' tools use, from
// the engine in this process: statements, inserts in every compression, settings, query parameters, external tables,
// exceptions, cancellation. It is for one machine: it has no passwords, so it answers only to loopback, and it has no
// sessions. What the engine's own access control leaves open to readers is closed here by an allow-list.
package front
