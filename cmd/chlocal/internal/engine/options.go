package engine

import "time"

// Options say where the engine lives and what it may use.
type Options struct {
	LibPath  string        // libchdb.so
	DataDir  string        // made if missing; one process at a time
	Database string        // created at start
	LockWait time.Duration // how long to wait for the folder of a dying predecessor

	MemoryMaxBytes int64 // whole engine; queries fail with MEMORY_LIMIT_EXCEEDED above it
	Threads        int   // a query's threads and the size of the background pools
}
