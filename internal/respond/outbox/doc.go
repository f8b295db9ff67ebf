// Package outbox keeps what the respond loop decided and did: a write-ahead file on the local disk, and beside it, where
// there is one, a compacted Kafka topic, which outlives the machine. It knows keys and values, not what they mean.
package outbox
