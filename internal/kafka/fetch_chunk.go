package kafka

import "sync"

// maxFreeBytes bounds what is kept for later fetches. It is a list of our own, because a sync.Pool forgets everything
// at each second collection, and then the heap grows by what is made anew.
const maxFreeBytes = 32 << 20

// chunks are what record batches are decompressed into. To make each anew costs a third of a fetch: clearing, growing
// and collecting them.
var chunks struct {
	sync.Mutex
	free  []*[]byte
	bytes int
}

func getChunk() *[]byte {
	chunks.Lock()
	defer chunks.Unlock()
	n := len(chunks.free)
	if n == 0 {
		return new([]byte)
	}
	c := chunks.free[n-1]
	chunks.free[n-1] = nil
	chunks.free = chunks.free[:n-1]
	chunks.bytes -= cap(*c)
	return c
}

func putChunk(c *[]byte) {
	chunks.Lock()
	defer chunks.Unlock()
	if cap(*c) > maxPooledBytes || chunks.bytes+cap(*c) > maxFreeBytes {
		return
	}
	chunks.free, chunks.bytes = append(chunks.free, c), chunks.bytes+cap(*c)
}
