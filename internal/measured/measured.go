// Package measured is what the benches of this repository have in common: what a process has used, what the machine was busy with, and a
// file of earlier runs. It measures; what a run is, and what its figures mean, the benches say.
package measured

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// SelfCPU is what this process has used.
func SelfCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// clockTick is USER_HZ, which is 100 on every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// ProcessCPU is what another process has used so far; 0 where there is no /proc.
func ProcessCPU(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(f[11], 10, 64)
	system, _ := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * clockTick
}

// Resident is how many bytes of a process are in memory now, and at most were; 0 where there is no /proc.
func Resident(pid int) (now, peak int64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0
	}
	field := func(name string) int64 {
		_, rest, ok := strings.Cut(string(status), name+":")
		if f := strings.Fields(rest); ok && len(f) > 0 {
			kb, _ := strconv.ParseInt(f[0], 10, 64)
			return kb << 10
		}
		return 0
	}
	return field("VmRSS"), field("VmHWM")
}

// Load is the machine's load average over the last minute, 0 where it cannot be told.
func Load() float64 {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(b), " ")
	f, _ := strconv.ParseFloat(first, 64)
	return f
}
