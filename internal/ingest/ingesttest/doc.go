// Package ingesttest has stand-ins for Kafka and the store, in memory, for tests of the ingest loop and of what works
// with it. They keep the contracts of ingest's interfaces, and can be made to fail as the real ones do: processes die or
// sleep at any step, commits get lost or come late, inserts land after whoever sent them is gone.
//
// They are for tests only.
package ingesttest
