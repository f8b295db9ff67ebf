package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// selfCPU is what this process has used, in seconds.
func selfCPU() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// memory is what is resident now, and at most was; 0 where there is no /proc.
func memory() (now, peak int64) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0
	}
	field := func(name string) int64 {
		_, rest, ok := strings.Cut(string(status), name+":")
		if !ok {
			return 0
		}
		kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		return kb << 10
	}
	return field("VmRSS"), field("VmHWM")
}

// heap is what is reachable.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// version is that of the Prometheus module which this program was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, d := range info.Deps {
		if d.Path == "github.com/prometheus/prometheus" {
			return d.Version
		}
	}
	return ""
}
