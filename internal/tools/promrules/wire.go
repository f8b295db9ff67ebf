package main

// What comes in on standard input, by encoding/gob: one header, then frames until the end of the input. The sender has types
// of the same fields; it is another module, so that Prometheus does not enter the go.mod of what is measured beside it.

type header struct {
	Series []map[string]string // with __name__
	Rules  string              // a Prometheus rule file; its groups are evaluated in order
	// Concurrency is how many rules of a group may be evaluated at once; 0 leaves Prometheus' default, one after another.
	Concurrency int
	Reopen      bool // at the end the TSDB is closed and opened again, and evaluated once more
}

// frame is one moment: a sample of each series, in order of the header.
type frame struct {
	Time   int64 // Unix milliseconds
	Values []float64
	Eval   []string // groups to evaluate at this moment; "*" is all
	Timed  bool     // its costs are reported
}

// report goes out as one line of JSON when the input has ended.
type report struct {
	Version     string
	Ticks       []tick
	Heap, RSS   int64 // bytes, after a collection; RSS before it
	Peak        int64
	Series      uint64
	Alerts      []map[string]string // that fire at the last moment
	WarmCPU     float64             // seconds, of all frames that are not timed, appending and evaluating
	WarmFrames  int
	WholeCPU    float64 // seconds, from the first timed frame to the end, with what the collector does between
	WholeFrames int
	// To be back after a restart, by the clock and of processor time: reading the write-ahead log, and the first evaluation.
	OpenWall, OpenCPU, FirstWall, FirstCPU float64
}

// tick is what one timed frame cost, in seconds.
type tick struct {
	AppendCPU, AppendWall float64
	EvalCPU, EvalWall     float64
	Rules                 map[string]float64 // wall by rule
}
