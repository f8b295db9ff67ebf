package kafka

import "sync"

// chunks are what record batches are decompressed into. To make each anew costs a third of a fetch: clearing, growing
// and collecting them.
var chunks = sync.Pool{New: func() any { return new([]byte) }}

func getChunk() *[]byte { return chunks.Get().(*[]byte) }

func putChunk(c *[]byte) {
	if cap(*c) <= maxPooledBytes {
		chunks.Put(c)
	}
}
