// Package clickhouse keeps Tocsin's past: it implements the stores that the loops ask for (ingest.Store,
// detect.Timeline, respond.IncidentLog) and what the console and the command line read, over any ClickHouse that
// speaks HTTP or its native protocol. Tables are files in schemas/clickhouse, queries are files in sql/.
//
// Three facts of the engine shape everything here. An insert token is remembered for each storage partition, so
// tables are partitioned by what the token determines, never by time of insert or by what two writers could see
// differently. A token is checked block by block, so what must be stored once is one block. A reader sees a block
// wholly or not at all if it falls into one storage partition, so a batch ends with a marker row of its own and a
// tick's conclusions with a row in ticks_done.
//
// It is not a general client: it retries nothing by itself (the loops do, under the same tokens), holds no queue and
// starts no goroutine that outlives a call. internal/app is the only importer besides tests.
package clickhouse
