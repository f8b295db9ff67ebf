// Package kafka is the adapter between Tocsin's loops and a Kafka cluster, over segmentio/kafka-go.
//
// It fetches single partitions (read-committed, any codec, exact positions), keeps group membership, commits offsets so
// that the outcome of each commit is known to be one of three, produces with acks=all, reads compacted topics and makes
// topics. The loops own the interfaces they need; the types here are concrete.
//
// It is not a general client: kafka.Reader and kafka.Writer are not used (the first loses its place, hangs after Close
// and ignores aborted transactions), and there is no background prefetching or batching behind the caller's back.
// Nothing here retries a fetch or a commit: the caller's protocol must see each outcome.
package kafka
