package main

import (
	"os"
	"runtime"
	"slices"

	"github.com/tocsin-project/tocsin/internal/measured"
)

// selfCPU is what this process has used, in seconds.
func selfCPU() float64 { return measured.SelfCPU().Seconds() }

// processCPU is what another process has used so far, in seconds.
func processCPU(pid int) float64 { return measured.ProcessCPU(pid).Seconds() }

// resident is what of this process is in memory now, and at most was.
func resident() (now, peak int64) { return measured.Resident(os.Getpid()) }

// reachable is the heap after a collection.
func reachable() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func mean(vs []float64) (m float64) {
	for _, v := range vs {
		m += v / float64(len(vs))
	}
	return m
}

func median(vs []float64) float64 {
	if len(vs) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(vs))
	if len(s)%2 == 0 {
		return (s[len(s)/2-1] + s[len(s)/2]) / 2
	}
	return s[len(s)/2]
}

func worst(vs []float64) float64 {
	if len(vs) == 0 {
		return 0
	}
	return slices.Max(vs)
}
