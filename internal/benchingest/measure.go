package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
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
	return meter{selfCPU(), time.Now(), m.Mallocs}
}

func (m meter) stop() result {
	r := result{CPU: selfCPU() - m.cpu, Wall: time.Since(m.wall)}
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	r.Allocs = s.Mallocs - m.allocs
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) == nil {
		r.PeakBytes = u.Maxrss << 10
	}
	return r
}

func selfCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// clockTick is USER_HZ, which is 100 on every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// processCPU is what another process has used so far, its peak memory beside it. Both are 0 where there is no /proc.
func processCPU(pid int) (cpu time.Duration, peak int64) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	if f := strings.Fields(rest); len(f) > 13 {
		user, _ := strconv.ParseInt(f[11], 10, 64)
		system, _ := strconv.ParseInt(f[12], 10, 64)
		cpu = time.Duration(user+system) * clockTick
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return cpu, 0
	}
	if _, rest, ok := strings.Cut(string(status), "VmHWM:"); ok {
		kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		peak = kb << 10
	}
	return cpu, peak
}

// load is the machine's load average over the last minute, 0 where it cannot be told.
func load() float64 {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	f, _ := strconv.ParseFloat(strings.Fields(string(b))[0], 64)
	return f
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
