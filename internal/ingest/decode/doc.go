// Package decode holds the decoders that pipelines name: each turns one Kafka record into native events. It knows
// formats and conventions, not Kafka, batches or bounds of time, which are the loop's.
//
// Decoders are listed in Entries. RunTests runs the *_test.yaml files beside pipelines.
package decode
