package main

import (
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/tocsin-project/tocsin/internal/measured"
)

// config is what a child process is told, as JSON in its environment.
type config struct {
	Kafka, ClickHouse, Database string
	Topic, Group                string
	Ends                        []int64 // of the partitions
	Spans, Failed               int64
	Letters                     map[string]int64 // dead letters by reason
	Patience                    time.Duration    // how much longer ingest may take
	Profile                     string           // where the ingest process writes its CPU profile, "" for none
}

// result is what one run of one process cost.
type result struct {
	CPU, Wall     time.Duration
	PeakBytes     int64
	Allocs        uint64
	DatabaseCPU   time.Duration
	DatabasePeak  int64
	Rows, Inserts int64
	LoadAverage   float64
	Queries       map[string]cost `json:",omitempty"` // what failure rates read afterwards
}

type meter struct {
	cpu    time.Duration
	wall   time.Time
	allocs uint64
}

func startMeter() meter {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return meter{measured.SelfCPU(), time.Now(), m.Mallocs}
}

func (m meter) stop() result {
	r := result{CPU: measured.SelfCPU() - m.cpu, Wall: time.Since(m.wall)}
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	r.Allocs = s.Mallocs - m.allocs
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) == nil {
		r.PeakBytes = u.Maxrss << 10
	}
	return r
}

// processCPU is what another process has used so far, its peak memory beside it.
func processCPU(pid int) (cpu time.Duration, peak int64) {
	_, peak = measured.Resident(pid)
	return measured.ProcessCPU(pid), peak
}

// median is the middle one of what value gives for each.
func median(rs []result, value func(result) float64) float64 {
	var vs []float64
	for _, r := range rs {
		vs = append(vs, value(r))
	}
	if len(vs) == 0 {
		return 0
	}
	slices.Sort(vs)
	return vs[len(vs)/2]
}
