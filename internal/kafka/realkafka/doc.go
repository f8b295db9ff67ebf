// Package realkafka runs Apache Kafka on 127.0.0.1: one broker or several, each a process of its own that can be killed,
// stopped, let go on and started again on its ports and data. It needs no Kafka distribution: the jars come from Maven,
// pinned with their checksums, into the user's cache, and run on Java 17 or newer.
//
// It is for tests and fault campaigns. It is no way to run a cluster that anybody relies on: heaps are small, caches of
// the compiler too, and what is stored is gone with Close unless a folder is given.
package realkafka
