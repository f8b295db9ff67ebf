// Package ingest is the first loop: it reads Kafka partitions, decodes records into native events, counts them
// into cells and stores every record exactly once.
//
// The protocol, for each batch [start, end) of a partition: reserve the range by committing start with the range in the
// commit's metadata; insert the rows under the range's token; the next reservation says that it is done. Whoever takes
// the partition over finds the reservation, makes it again under its own generation (which fences the one before), and
// stores exactly that range unless it is stored. A commit of unknown outcome makes the member leave the group, because
// the commit may still be applied as long as the member lives. Where the store and the commit differ, the store is
// right: Kafka's commit is the lock, the markers in the store are the ledger.
//
// The files are numbered in the order of a turn: 1_fetch, 2_decode, 3_cells, 4_store, 5_idle; open.go is what happens
// before the first. Decoders are in ingest/decode, masks in ingest/mask; Kafka and ClickHouse are behind Log, Group and
// Store.
package ingest
