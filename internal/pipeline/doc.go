// Package pipeline is the model of pipelines/*.yaml: which Kafka topic is read, how its records are decoded and what
// their fields mean. It owns the syntax of these files, their defaults and their lint; every mistake has its place.
//
// It reads no Kafka and decodes no record: ingest is the loop that does, and ingest/decode holds the decoders, one for
// each name in Decoders (a test there holds the two together).
package pipeline
