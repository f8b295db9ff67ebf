// Package chaos attacks a whole installation while it ingests, and then holds everything that is stored to the truth:
// several daemons in one group, brokers, and ClickHouse, each a process that is killed and stopped, with proxies between
// them that strike at every step of the protocol. `make chaos` is this, and so is a test of a minute.
//
// It is about ingest and what follows from it in the tables. What the detector concludes and who is paged is none of its
// business.
package chaos
